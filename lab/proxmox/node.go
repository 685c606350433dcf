package proxmox

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Node is one Proxmox VE host.
type Node struct {
	Name      string
	CPUs      int      // 0 means 16; a VM with more cores does not start
	MemoryMiB int      // 0 means 65536; reported, not enforced
	Bridges   []string // nil means vmbr0; a VM on another bridge does not start
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
	if n.MemoryMiB == 0 {
		n.MemoryMiB = 64 << 10
	}
	if n.Bridges == nil {
		n.Bridges = []string{"vmbr0"}
	}
}

// node finds a node by name. For an unknown one, the error is that of the API proxy, which cannot resolve the name.
func (c *Cluster) node(name string) (*Node, error) {
	i := slices.IndexFunc(c.cfg.Nodes, func(n Node) bool { return n.Name == name })
	if i < 0 {
		return nil, internalError("hostname lookup '%s' failed - failed to get address info for: %s: Name or service not known", name, name)
	}
	return &c.cfg.Nodes[i], nil
}

func (c *Cluster) uptime() int64 { return int64(time.Since(c.started).Seconds()) + 1 }

// usedMemory is the memory of the powered-on VMs on a node, in bytes.
func (c *Cluster) usedMemory(node string) int64 {
	var used int64
	for _, m := range c.machines {
		if m.node == node && m.guest != nil {
			used += int64(m.hardware.MemoryMiB) << 20
		}
	}
	return used
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

func getNodes(q *request) (any, error) {
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	var out []any
	for _, n := range q.c.cfg.Nodes {
		out = append(out, map[string]any{
			"node": n.Name, "id": "node/" + n.Name, "type": "node", "status": "online", "level": "",
			"cpu": 0.02, "maxcpu": n.CPUs, "mem": q.c.usedMemory(n.Name), "maxmem": int64(n.MemoryMiB) << 20,
			"uptime": q.c.uptime(),
		})
	}
	return out, nil
}

func getNodeStatus(q *request) (any, error) {
	if err := q.token.require("/nodes/"+q.node.Name, "Sys.Audit"); err != nil {
		return nil, err
	}
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	total, used := int64(q.node.MemoryMiB)<<20, q.c.usedMemory(q.node.Name)
	return map[string]any{
		"uptime": q.c.uptime(), "pveversion": "pve-manager/" + q.c.cfg.Version + "/" + repoID, "cpu": 0.02,
		"loadavg": []string{"0.10", "0.10", "0.10"},
		"cpuinfo": map[string]any{"cores": q.node.CPUs, "cpus": q.node.CPUs, "sockets": 1, "model": "simulated"},
		"memory":  map[string]any{"total": total, "used": used, "free": total - used},
	}, nil
}

func getNodeNetwork(q *request) (any, error) {
	if err := q.token.require("/nodes/"+q.node.Name, "Sys.Audit"); err != nil {
		return nil, err
	}
	var out []any
	for i, b := range q.node.Bridges {
		out = append(out, map[string]any{
			"iface": b, "type": "bridge", "method": "manual", "method6": "manual", "families": []string{"inet"},
			"active": 1, "autostart": 1, "exists": 1, "priority": i + 1,
		})
	}
	return out, nil
}

func getPermissions(q *request) (any, error) {
	granted := q.token.Privileges
	if granted == nil {
		granted = append([]string{q.c.agentPrivilege()}, Privileges...)
	}
	root := map[string]int{}
	for _, p := range granted {
		root[p] = 1
	}
	return map[string]any{"/": root}, nil
}

func getClusterStatus(q *request) (any, error) {
	if err := q.token.require("/", "Sys.Audit"); err != nil {
		return nil, err
	}
	n := len(q.c.cfg.Nodes)
	out := []any{map[string]any{"type": "cluster", "id": "cluster", "name": "pve", "nodes": n, "quorate": 1, "version": n}}
	for i, node := range q.c.cfg.Nodes {
		out = append(out, map[string]any{"type": "node", "id": "node/" + node.Name, "name": node.Name, "nodeid": i + 1, "online": 1, "local": 0})
	}
	return out, nil
}

// unimplemented answers an unknown path, as Proxmox VE does.
func unimplemented(q *request) (any, error) {
	return nil, &apiError{code: http.StatusNotImplemented, reason: "Method '" + q.r.Method + " " + q.path() + "' not implemented"}
}

// getPools lists no pool: pools are not modelled.
func getPools(*request) (any, error) { return []any{}, nil }

// getHAResource knows no resource: HA is not modelled.
func getHAResource(q *request) (any, error) {
	if err := q.token.require("/", "Sys.Audit"); err != nil {
		return nil, err
	}
	return nil, internalError("no such resource '%s'", q.r.PathValue("sid"))
}
