package reclaim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Named is a name in the stack file.
type Named struct {
	Path, Name string // key in the stack file, and its value
}

// Host is a Proxmox node that VMs of a cluster run on, and what they use there.
type Host struct {
	Named

	Disks   []Named // storages of disks, each once
	Bridges []Named // each once
}

// Content types of storages, in Proxmox VE's words.
const (
	contentISO   = "iso"
	contentDisks = "images"
)

// checkHosts returns what the Proxmox nodes of a cluster lack, all of it together. A bridge that Proxmox VE does not list may work, because
// the list has only those of /etc/network/interfaces and of SDN: warn gets it.
func checkHosts(ctx context.Context, pve *proxmox, cluster Cluster, warn func(string)) error {
	var nodes []struct{ Node, Status string }
	if err := pve.do(ctx, http.MethodGet, "nodes", &nodes); err != nil {
		return err
	}
	var names []string
	offline := map[string]bool{}
	for _, node := range nodes {
		names = append(names, node.Node)
		offline[node.Node] = node.Status == "offline" // and not unknown, as after the start of a node
	}
	slices.Sort(names)
	var problems, warnings findings
	var failed []error
	for _, host := range cluster.Hosts {
		switch {
		case !slices.Contains(names, host.Name):
			problems.add("", fmt.Sprintf("%s: %s is no node of this Proxmox VE; it has: %s", host.Path, host.Name, strings.Join(names, ", ")), "")
		case offline[host.Name]:
			problems.add("", fmt.Sprintf("%s: %s is offline; start it, or write it into proxmox.maintenance", host.Path, host.Name), "")
		default:
			if err := checkHost(ctx, pve, cluster, host, &problems, &warnings); err != nil {
				failed = append(failed, fmt.Errorf("%s: %s: %w", host.Path, host.Name, err))
			}
		}
	}
	for _, line := range warnings.lines() {
		warn(line)
	}
	for _, line := range problems.lines() {
		failed = append(failed, errors.New(line))
	}
	return errors.Join(failed...)
}

// checkHost finds what a Proxmox node lacks.
func checkHost(ctx context.Context, pve *proxmox, cluster Cluster, host Host, problems, warnings *findings) error {
	path := "nodes/" + url.PathEscape(host.Name)
	var storages storages
	if err := pve.do(ctx, http.MethodGet, path+"/storage", &storages); err != nil {
		return err
	}
	var bridges []struct{ IFace string }
	if err := pve.do(ctx, http.MethodGet, path+"/network?type=any_bridge", &bridges); err != nil {
		return err
	}
	storages.check(host.Name, cluster, host.Disks, problems)
	var names []string
	for _, bridge := range bridges {
		names = append(names, bridge.IFace)
	}
	slices.Sort(names)
	for _, bridge := range host.Bridges {
		switch {
		case len(names) == 0:
			warnings.add(host.Name, bridge.Path+": Proxmox VE lists no bridge of ", "; "+bridge.Name+" does not exist, or the token lacks SDN.Use")
		case !slices.Contains(names, bridge.Name):
			warnings.add(host.Name, bridge.Path+": Proxmox VE does not list "+bridge.Name+" among the bridges of ",
				", which are: "+strings.Join(names, ", ")+"; a VM does not start without its bridge")
		}
	}
	return nil
}

// storages are the storages of a Proxmox node that the token may see. A token that may use a storage sees it.
type storages []struct {
	Storage, Content        string
	Enabled, Active, Shared any // 0 or 1, as a number or as a text
}

// check finds what is wrong with the storages of the boot image and of the disks on a host.
func (s storages) check(host string, cluster Cluster, disks []Named, problems *findings) {
	if len(s) == 0 {
		problems.add(host, "Proxmox VE lists no storage of ", "; "+giveRole)
		return
	}
	iso := Named{"proxmox.datastores.iso", cluster.ISO}
	if before, after := s.problem(iso, contentISO); before != "" {
		problems.add(host, before, after)
	} else if shared := s.shared(iso.Name); shared != cluster.ISOShared && len(cluster.Hosts) > 1 {
		// A file on a shared storage belongs to no single host, and a file on a local storage is on one host only.
		problem := "is local to each Proxmox node; leave proxmox.datastores.isoShared out"
		if shared {
			problem = "is shared by the Proxmox nodes; write proxmox.datastores.isoShared: true"
		}
		problems.add("", iso.Path+": "+iso.Name+" "+problem, "")
	}
	for _, disk := range disks {
		if before, after := s.problem(disk, contentDisks); before != "" {
			problems.add(host, before, after)
		}
	}
}

// problem returns why a storage cannot hold a type of content, as the text before and after the names of the hosts; "" if it can.
func (s storages) problem(wanted Named, content string) (before, after string) {
	var fit []string
	for _, storage := range s {
		if isSet(storage.Active) && holds(storage.Content, content) {
			fit = append(fit, storage.Storage)
		}
	}
	slices.Sort(fit)
	if len(fit) > 0 {
		after = "; with the content type " + content + ": " + strings.Join(fit, ", ")
	}
	before = wanted.Path + ": " + wanted.Name
	const settings = " in Proxmox VE, under Datacenter, Storage"
	for _, storage := range s {
		switch {
		case storage.Storage != wanted.Name:
			continue
		case !isSet(storage.Enabled):
			return before + " is not enabled on ", "; enable it" + settings + after
		case !holds(storage.Content, content):
			if after == "" { // some types of storage cannot have it
				after = "; add the type" + settings
			}
			return before + " has no content type " + content + " on ", after
		case !isSet(storage.Active):
			return before + " is not active on ", "; look why Proxmox VE does not reach it" + after
		}
		return "", ""
	}
	if after == "" {
		after = "; no storage there has the content type " + content + ": add the type to one" + settings
	}
	return before + " is no storage of ", after
}

// shared reports whether a storage is shared by Proxmox nodes.
func (s storages) shared(name string) bool {
	for _, storage := range s {
		if storage.Storage == name {
			return isSet(storage.Shared)
		}
	}
	return false
}

// holds reports whether a list of content types has one.
func holds(list, content string) bool { return slices.Contains(strings.Split(list, ","), content) }

// findings are sentences about Proxmox nodes. Those that differ in the Proxmox node only are one.
type findings []finding

type finding struct {
	before, after string   // text before and after the hosts
	hosts         []string // none in a sentence about no single host
}

// add adds a sentence about a host, or about none.
func (f *findings) add(host, before, after string) {
	at := slices.IndexFunc(*f, func(one finding) bool { return one.before == before && one.after == after })
	if at < 0 {
		at = len(*f)
		*f = append(*f, finding{before: before, after: after})
	}
	if host != "" {
		(*f)[at].hosts = append((*f)[at].hosts, host)
	}
}

// lines returns the sentences in the order in which they were found.
func (f findings) lines() (lines []string) {
	for _, one := range f {
		hosts := strings.Join(one.hosts, ", ")
		switch len(one.hosts) {
		case 0:
		case 1:
			hosts = "Proxmox node " + hosts
		default:
			hosts = "Proxmox nodes " + hosts
		}
		lines = append(lines, one.before+hosts+one.after)
	}
	return lines
}
