package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/nodes/versions"
)

// upgrade is what the step does that brings running machines to other versions (components/talos/upgrade.go).
type upgrade struct {
	sentences []string // in the order in which it does it: Talos, then Kubernetes
	reboots   bool     // the machines
	images    []string // paths of a machine configuration whose images run by the time that it is applied
}

// The images that machine configurations name. kube-proxy is off.
var (
	talosImages      = []string{"machine.install.image"}
	kubernetesImages = []string{
		"cluster.apiServer.image", "cluster.controllerManager.image", "cluster.proxy.image", "cluster.scheduler.image", "machine.kubelet.image",
	}
)

// upgrade returns what is upgraded. Other extensions of Talos are another image of it, which is installed like another version.
func (r *StackReport) upgrade(before, after *Stack) (up upgrade) {
	if len(before.Keys) == 0 {
		return up // everything is new
	}
	version := func(name, key string) string {
		if was, is := before.Keys[key], after.Keys[key]; was != is {
			return fmt.Sprintf("%s %s instead of %s", name, code(is), code(was))
		}
		return ""
	}
	talos := version("Talos", "talos.version")
	if extensions := changedExtensions(before.Keys, after.Keys); extensions != "" && talos != "" {
		talos += ", " + extensions
	} else if extensions != "" {
		talos = "Talos " + extensions
	}
	if talos != "" {
		up.reboots, up.images = true, talosImages
		up.sentences = append(up.sentences, talos+": `up` drains, upgrades and reboots all machines, control planes one after the other, then "+
			"`lifecycle.maxUnavailable` workers at once.")
	}
	if kubernetes := version("Kubernetes", "kubernetes.version"); kubernetes != "" {
		up.images = slices.Concat(up.images, kubernetesImages)
		up.sentences = append(up.sentences, kubernetes+": `up` upgrades the API servers one after the other, then the controller managers, the "+
			"schedulers and the kubelets, without a drain.")
	}
	if was, is := before.Keys["lifecycle.bootedSince"], after.Keys["lifecycle.bootedSince"]; is != "" && was != is {
		up.reboots = true
		up.sentences = append(up.sentences, "`lifecycle.bootedSince` "+code(is)+": `up` drains and reboots the nodes that have booted before, "+
			"control planes one after the other, then `lifecycle.maxUnavailable` workers at once.")
	}
	return up
}

// refusals returns why up refuses the versions of a change, if the cluster runs what the base declares.
func (r *StackReport) refusals(before, after *Stack) []string {
	of := func(s *Stack) versions.Releases {
		return versions.Releases{Talos: s.Keys["talos.version"], Kubernetes: s.Keys["kubernetes.version"],
			Cilium: versions.Cilium{Version: s.Keys["cilium.version"], Flux: engineOf(s.Owners[cilium]) != ""}}
	}
	changed := func(change Change) bool {
		return slices.Contains([]string{"talos.version", "kubernetes.version", "cilium.version"}, change.Path)
	}
	if len(before.Keys) == 0 || !slices.ContainsFunc(r.Keys, changed) {
		return nil
	}
	err := of(after).Refused(of(before))
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

// changedExtensions says which extensions Talos gets and loses; "" without a difference. Their order makes another image, too.
func changedExtensions(before, after map[string]string) string {
	was, is := itemsOf(before, "talos.extensions"), itemsOf(after, "talos.extensions")
	without := func(all, others []string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(one string) bool { return slices.Contains(others, one) })
	}
	var parts []string
	if added := without(is, was); len(added) > 0 {
		parts = append(parts, "with "+list(added))
	}
	if removed := without(was, is); len(removed) > 0 {
		parts = append(parts, "without "+list(removed))
	}
	if len(parts) == 0 && !slices.Equal(was, is) {
		parts = []string{"with its extensions in another order"}
	}
	return strings.Join(parts, ", ")
}

// itemsOf returns the values of a list, in their order.
func itemsOf(keys map[string]string, list string) []string {
	var items []string
	for {
		item, is := keys[fmt.Sprintf("%s[%d]", list, len(items))]
		if !is {
			return items
		}
		items = append(items, item)
	}
}

// hasDone reports whether the lines of a machine configuration differ only in what the upgrade has done by then.
func (u upgrade) hasDone(lines []string) bool {
	return !slices.ContainsFunc(lines, func(line string) bool {
		path, _, _ := strings.Cut(line[2:], " = ")
		return !slices.Contains(u.images, path)
	})
}
