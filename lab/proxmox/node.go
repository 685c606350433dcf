package proxmox

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Node is one Proxmox VE host.
type Node struct {
	Name    string
	CPUs    int      // 0 means 16; a VM with more cores does not start
	Bridges []string // nil means vmbr0; a VM on another bridge does not start
}

const (
	defaultVersion = "9.2.11"

	repoID     = "2a5fa54a8503f96d"
	serverName = "pve-api-daemon/3.0"
)

func (n *Node) setDefaults() {
	if n.CPUs == 0 {
		n.CPUs = 16
	}
	if n.Bridges == nil {
		n.Bridges = []string{"vmbr0"}
	}
}

// node finds a node by name. For an unknown one, the error is that of the API proxy, which cannot resolve the name.
func (c *Cluster) node(name string) (*Node, error) {
	for _, n := range c.nodes() {
		if n.Name == name {
			return n, nil
		}
	}
	return nil, internalError("hostname lookup '%s' failed - failed to get address info for: %s: Name or service not known", name, name)
}

// nodes are the nodes of the Proxmox cluster, without those that it has forgotten.
func (c *Cluster) nodes() []*Node {
	var out []*Node
	for i := range c.cfg.Nodes {
		if n := &c.cfg.Nodes[i]; !c.forgotten(n.Name) {
			out = append(out, n)
		}
	}
	return out
}

func getVersion(q *request) (any, error) {
	version := q.c.cfg.Version
	return map[string]any{"version": version, "release": version[:strings.LastIndexByte(version, '.')], "repoid": repoID}, nil
}

// before tells whether the cluster's version is older than MAJOR.MINOR.
func (c *Cluster) before(major, minor int) bool {
	var have [2]int
	for i, part := range strings.SplitN(c.cfg.Version, ".", 3)[:2] {
		have[i], _ = strconv.Atoi(part) // Config says what form it has
	}
	return slices.Compare(have[:], []int{major, minor}) < 0
}

// getNodes lists the nodes. How much they are used is not modelled.
func getNodes(q *request) (any, error) {
	var out []any
	for _, n := range q.c.nodes() {
		status := "online"
		if q.c.gone(n.Name) {
			status = "offline"
		}
		out = append(out, map[string]any{"node": n.Name, "id": "node/" + n.Name, "type": "node", "status": status, "maxcpu": n.CPUs})
	}
	return out, nil
}

// unimplemented answers an unknown path, as Proxmox VE does.
func unimplemented(q *request) (any, error) {
	return nil, &apiError{code: http.StatusNotImplemented, reason: "Method '" + q.r.Method + " " + q.path() + "' not implemented"}
}

// getPools lists no pool: pools are not modelled.
func getPools(*request) (any, error) { return []any{}, nil }
