package proxmox

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

// haRound is how many short tasks the HA manager needs to notice a request: in Proxmox VE, it and its part on each node look every few
// seconds.
const haRound = 5

// resource finds the VM of an HA resource, which has an id such as vm:1111. The caller holds the mutex.
func (c *Cluster) resource(sid string) *machine {
	id, err := strconv.Atoi(strings.TrimPrefix(sid, "vm:"))
	if err != nil {
		return nil
	}
	return c.machines[id]
}

// onHA runs fn on the VM of a resource that the HA manager has, with the mutex held. Without such a resource, the error says unknown.
func (q *request) onHA(privilege, unknown string, fn func(sid string, m *machine) (any, error)) (any, error) {
	if err := q.token.require("/", privilege); err != nil {
		return nil, err
	}
	sid := q.r.PathValue("sid")
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	m := q.c.resource(sid)
	if m == nil || !m.ha {
		return nil, internalError(unknown, sid)
	}
	return fn(sid, m)
}

func getHAResource(q *request) (any, error) {
	return q.onHA("Sys.Audit", "no such resource '%s'", func(sid string, _ *machine) (any, error) {
		return map[string]any{"sid": sid, "type": "vm", "state": "started", "digest": strings.Repeat("0", 40)}, nil
	})
}

// addHAResource gives a VM to the HA manager.
func addHAResource(q *request) (any, error) {
	if err := q.token.require("/", "Sys.Console"); err != nil {
		return nil, err
	}
	sid := q.form.Get("sid")
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	switch m := q.c.resource(sid); {
	case m == nil:
		return nil, internalError("resource '%s' does not exist in cluster", sid)
	case m.ha:
		return nil, internalError("create resource failed: resource ID '%s' already defined", sid)
	default:
		m.ha = true
		return nil, nil
	}
}

func removeHAResource(q *request) (any, error) {
	return q.onHA("Sys.Console", "cannot delete service '%s', not HA managed!", func(_ string, m *machine) (any, error) {
		m.ha = false
		return nil, nil
	})
}

// migrateHAResource only requests a migration.
func migrateHAResource(q *request) (any, error) {
	target := q.form.Get("node")
	return q.onHA("Sys.Console", "resource '%s' is not HA managed", func(sid string, m *machine) (any, error) {
		if !slices.ContainsFunc(q.c.nodes(), func(n *Node) bool { return n.Name == target }) {
			return nil, invalid(map[string]string{"node": "invalid format - value does not look like a valid node name"})
		}
		q.c.requestMigration(m, target)
		return map[string]any{"sid": sid, "requested-node": target}, nil
	})
}

// requestMigration has the HA manager migrate a VM some time later, as root, with its local disks. The caller holds the mutex.
func (c *Cluster) requestMigration(m *machine, target string) {
	if c.ctx.Err() != nil {
		return
	}
	c.running.Go(func() {
		select {
		case <-c.ctx.Done():
			return
		case <-time.After(haRound * c.cfg.Latency.Task):
		}
		c.mu.Lock()
		from, err := c.node(m.node)
		moves := m.ha && m.node != target && c.machines[m.id] == m
		c.mu.Unlock()
		if err != nil || !moves {
			return
		}
		_, err = c.fork(job{
			node: from, kind: "qmigrate", id: strconv.Itoa(m.id), token: &Token{ID: "root@pam"}, duration: c.cfg.Latency.Task, machine: m,
			work: func(_ context.Context, t *task) error {
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.migration(t, m, target, true, true)
			},
		})
		if err != nil {
			c.log.Warn("HA", "vm", m.id, "err", err)
		}
	})
}
