package newcluster

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/syntax"
)

// answer is a flag. Its value is of a form, and replaces a text of the template.
type answer struct{ name, replaces, form, does string }

var answers = []answer{
	{"proxmox", "https://pve.home.arpa:8006/", "https-host-url", "host name, address or `URL` of the API of Proxmox VE"},
	{"host", "pve1", "proxmox-node", "`name` of the Proxmox VE node; without it, if --proxmox is a host name, the first part of that"},
	{"network", "192.168.1.0/24", "ipv4-network", "`network` of the nodes, a /24; the cluster has its addresses from .230 to .249"},
	{"git", cluster.ExampleRepository, "git-url", "`URL` of the repository that Flux reads"},
}

// switches are flags without a value. The text of the template is replaced if they are given.
var switches = []struct{ name, replaces, by, does string }{
	{"public", "path: kubernetes/cluster}", "public: true, path: kubernetes/cluster}", "Flux reads the repository without a password"},
	{"insecure", "nodes: [", "insecure: true, nodes: [", "do not verify the certificate of Proxmox VE"},
}

// given are the values of the flags.
type given struct {
	answers                 map[string]*string
	switches                map[string]*bool
	gateway, domain, source string
}

// nameInDomain stands for the cluster's name in the domain that the flag has by default. RFC 8375 reserves home.arpa for home networks.
const (
	nameInDomain  = "NAME"
	defaultDomain = nameInDomain + ".home.arpa"
)

// add adds the flags to a command.
func (g *given) add(c *cobra.Command) {
	g.answers, g.switches = map[string]*string{}, map[string]*bool{}
	for _, one := range answers {
		g.answers[one.name] = c.Flags().String(one.name, one.replaces, one.does)
	}
	for _, one := range switches {
		g.switches[one.name] = c.Flags().Bool(one.name, false, one.does)
	}
	c.Flags().StringVar(&g.gateway, "gateway", "", "`address` of the router; without it, the first of the network")
	c.Flags().StringVar(&g.domain, "domain", defaultDomain, "`name` below which applications get theirs: "+
		"Flux then also applies a gateway with a certificate, and the example podinfo; \"\" for none of it")
	c.Flags().StringVar(&g.source, "source", "",
		"`folder` of a checkout of Slipway, which go.mod then uses instead of a version, and from which Pulumi compiles the program")
}

// assume fills in flags that were not given and follow from others, and returns what it took, to be printed.
func (g *given) assume(c *cobra.Command, name string) (lines string) {
	*g.answers["proxmox"] = endpoint(*g.answers["proxmox"])
	node := nodeOf(*g.answers["proxmox"])
	if c.Flags().Changed("proxmox") && !c.Flags().Changed("host") && node != "" {
		_ = c.Flags().Set("host", node) // it is no example from here on
		lines += "Without --host, the Proxmox node is " + node + ": the first part of the name in --proxmox\n"
	}
	if g.domain == defaultDomain {
		g.domain = strings.Replace(g.domain, nameInDomain, name, 1)
		lines += "Without --domain, applications get names below " + g.domain + "\n"
	}
	return lines
}

// endpoint returns the URL of the API of a host, and a URL as it is.
func endpoint(given string) string {
	switch {
	case strings.Contains(given, "/"):
		return given
	case !strings.Contains(given, ":"):
		given += ":8006"
	}
	return "https://" + given + "/"
}

// nodeOf returns the node whose name the installer of Proxmox VE makes of the server's: its first part. An address has none.
func nodeOf(endpoint string) string {
	parsed, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	if _, err := netip.ParseAddr(parsed.Hostname()); err == nil {
		return ""
	}
	node, _, _ := strings.Cut(parsed.Hostname(), ".")
	return node
}

// usable checks each answer by itself, and puts an example in the place of a wrong one, so that the others can be checked together.
func (g *given) usable(name string) (goodName string, problems []error) {
	if err := wellFormed("NAME", "cluster-name", name, ""); err != nil {
		problems = append(problems, err)
		if g.domain == strings.Replace(defaultDomain, nameInDomain, name, 1) {
			g.domain = ""
		}
		name = "home"
	}
	right := true // the network
	for _, one := range answers {
		value := g.answers[one.name]
		err := wellFormed("--"+one.name, one.form, *value, one.replaces)
		if err == nil && one.name == "network" && !strings.HasSuffix(*value, "/24") {
			err = fmt.Errorf("--network: %s is not a /24; write a /24, such as %s", *value, one.replaces)
		}
		if err != nil {
			problems = append(problems, err)
			*value, right = one.replaces, right && one.name != "network"
		}
	}
	if g.gateway != "" {
		if err := wellFormed("--gateway", "ipv4-address", g.gateway, "192.168.1.1"); err != nil {
			problems, right = append(problems, err), false
		}
		if !right {
			g.gateway = "" // it would be compared with the network of the example
		}
	}
	return name, problems
}

// wellFormed checks an answer by its form.
func wellFormed(flag, form, value, example string) error {
	known, _ := syntax.Lookup(form)
	known.Example = cmp.Or(example, known.Example)
	fault := known.Check(value)
	switch {
	case fault == nil:
		return nil
	case value == "":
		return fmt.Errorf("%s: %s; %s", flag, fault.Problem, fault.Remedy)
	}
	return fmt.Errorf("%s: %s %s; %s", flag, syntax.Shown(known, value), fault.Problem, fault.Remedy)
}

// byFlag names the flags that the problems of a stack file are about. Each answer is well-formed by itself.
func byFlag(err error) error {
	var lines []error
	for _, problem := range cluster.ProblemsOf(err) {
		line := error(problem)
		switch {
		case problem.Path == "network.gateway":
			line = fmt.Errorf("--gateway: %s; %s", problem.Problem, problem.Remedy)
		case strings.HasPrefix(problem.Path, "network."):
			line = fmt.Errorf("--network: %w", problem)
		case strings.HasPrefix(problem.Path, "gitops."):
			line = fmt.Errorf("--git: %w", problem)
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return err
	}
	return errors.Join(lines...)
}
