package proxmox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// lockTimeout is how long a task waits for another task on the same VM.
const lockTimeout = 10 * time.Second

// job describes a task that is to run.
type job struct {
	node     *Node
	kind     string // as in the UPID: qmcreate, qmstart, download …
	id       string // VM id, file name, or empty
	token    *Token
	duration time.Duration
	machine  *machine // locked while the task runs; nil if none
	held     bool     // the machine is locked for this task already
	work     func(context.Context, *task) error
	undo     func() // runs if the task fails; may be nil
}

// task is a running or finished task. The cluster's mutex guards its mutable fields.
type task struct {
	c       *Cluster
	upid    string
	node    string
	kind    string
	id      string
	token   *Token
	pid     int
	started time.Time

	done   chan struct{}
	cancel context.CancelFunc
	exit   string // exit status; empty while it runs
	ended  time.Time
	log    []string
}

// logf adds a line to the task's log.
func (t *task) logf(format string, args ...any) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.log = append(t.log, fmt.Sprintf(format, args...))
}

// forkVM starts a task on a VM, in the name of the request.
func (q *request) forkVM(kind string, m *machine, work func(context.Context, *task) error) (any, error) {
	return q.c.fork(job{
		node: q.node, kind: kind, id: strconv.Itoa(m.id), token: q.token, duration: q.c.cfg.Latency.Task, machine: m, work: work,
	})
}

// changeVM starts a task that changes a VM with the mutex held. The task fails if the VM is gone by then.
func (q *request) changeVM(kind string, m *machine, change func(*task) error) (any, error) {
	return q.forkVM(kind, m, func(_ context.Context, t *task) error {
		q.c.mu.Lock()
		defer q.c.mu.Unlock()
		if _, err := q.c.machineOn(q.node.Name, m.id); err != nil {
			return err
		}
		return change(t)
	})
}

// fork starts a task in the background and returns its UPID.
func (c *Cluster) fork(j job) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil, internalError("got no worker upid - start worker failed")
	}
	c.pids++
	ctx, cancel := context.WithCancel(c.ctx)
	t := &task{
		c: c, node: j.node.Name, kind: j.kind, id: j.id, token: j.token, pid: c.pids, started: time.Now(),
		done: make(chan struct{}), cancel: cancel,
	}
	t.upid = fmt.Sprintf("UPID:%s:%08X:%08X:%08X:%s:%s:%s:",
		t.node, t.pid, time.Since(c.started).Milliseconds()/10, t.started.Unix(), t.kind, encodeTaskID(t.id), t.token.ID)
	c.tasks[t.upid] = t
	if j.machine != nil {
		j.held = j.machine.tryAcquire() // now, so that the task that was asked for first is the first
	}
	c.running.Go(func() {
		defer cancel()
		c.run(ctx, t, j)
	})
	return t.upid, nil
}

// encodeTaskID replaces the characters of an id that separate the parts of a UPID.
func encodeTaskID(id string) string {
	return strings.NewReplacer("%", "%25", ":", "%3A", "/", "%2F", " ", "%20").Replace(id)
}

func (c *Cluster) run(ctx context.Context, t *task, j job) {
	c.log.Info("task starts", "upid", t.upid)
	err := c.perform(ctx, t, j)
	if err != nil && j.undo != nil {
		j.undo()
	}
	c.mu.Lock()
	if err != nil {
		t.exit = cmp.Or(err.Error(), "unexpected status")
		t.log = append(t.log, "TASK ERROR: "+t.exit)
	} else {
		t.exit = "OK"
		t.log = append(t.log, "TASK OK")
	}
	t.ended = time.Now()
	exit := t.exit
	c.mu.Unlock()
	close(t.done)
	c.log.Info("task ends", "upid", t.upid, "exit", exit)
}

func (c *Cluster) perform(ctx context.Context, t *task, j job) error {
	if j.machine != nil {
		if !j.held {
			if err := j.machine.acquire(ctx); err != nil {
				return err
			}
		}
		defer j.machine.release()
	}
	defer c.cfg.Latency.Record.Begin("Proxmox VE: "+j.kind, c.subject(j))()
	timer := time.NewTimer(c.slowed(j.kind, j.duration))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return errInterrupted
	case <-timer.C:
	}
	if err := c.awaitHang(ctx, j.kind); err != nil {
		return err
	}
	if err := c.taskError(j); err != nil {
		return err
	}
	err := j.work(ctx, t)
	if err != nil && ctx.Err() != nil && !errors.Is(err, errInterrupted) {
		return errInterrupted
	}
	return err // of some tasks, which say what was interrupted
}

// subject is what a job is about: the VM's name, or else the job's id, or the node.
func (c *Cluster) subject(j job) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := ""
	if j.machine != nil {
		name = j.machine.config["name"]
	}
	return cmp.Or(name, j.id, j.node.Name)
}

var errInterrupted = errors.New("interrupted by signal")

func (c *Cluster) task(upid string) (*task, error) {
	if parts := strings.Split(upid, ":"); len(parts) != 9 || parts[0] != "UPID" {
		return nil, invalid(map[string]string{"upid": "unable to parse worker upid"})
	}
	t := c.tasks[upid]
	if t == nil {
		return nil, invalid(map[string]string{"upid": "no such task"})
	}
	return t, nil
}

// visible refuses a token that may not see a task: a token sees its own tasks, and with Sys.Audit all.
func (t *task) visible(token *Token) error {
	if t.token.ID == token.ID {
		return nil
	}
	return token.require("/nodes/"+t.node, "Sys.Audit")
}

// describe returns what every form of a task has in the API.
func (t *task) describe() map[string]any {
	return map[string]any{
		"upid": t.upid, "node": t.node, "pid": t.pid, "pstart": t.pid, "starttime": t.started.Unix(),
		"type": t.kind, "id": t.id, "user": t.token.user(), "tokenid": t.token.name(),
	}
}

// current returns the task's form as an object of its own.
func (t *task) current() map[string]any {
	out := t.describe()
	out["status"] = "running"
	if t.exit != "" {
		out["status"], out["exitstatus"] = "stopped", t.exit
	}
	return out
}

// listed returns the task's form in lists. A task that runs has the status running there.
func (t *task) listed(running string) map[string]any {
	out := t.describe()
	out["status"] = running
	if t.exit != "" {
		out["status"], out["endtime"] = t.exit, t.ended.Unix()
	}
	return out
}

// withTask runs fn on the task of a request, with the mutex held, if the token may see the task.
func (q *request) withTask(fn func(*task) any) (any, error) {
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	t, err := q.c.task(q.r.PathValue("upid"))
	if err != nil {
		return nil, err
	}
	if err := t.visible(q.token); err != nil {
		return nil, err
	}
	return fn(t), nil
}

func getTaskStatus(q *request) (any, error) {
	return q.withTask(func(t *task) any { return t.current() })
}

func getTaskLog(q *request) (any, error) {
	return q.withTask(func(t *task) any {
		start, limit := number(q.form, "start", 0), number(q.form, "limit", 50)
		out := []any{}
		for i, line := range t.log {
			if i >= start && len(out) < limit {
				out = append(out, map[string]any{"n": i + 1, "t": line})
			}
		}
		return out
	})
}

// listTasks lists the tasks of a Proxmox node, by default those that have ended.
func listTasks(q *request) (any, error) {
	source, kind := cmp.Or(q.form.Get("source"), "archive"), q.form.Get("typefilter")
	if !slices.Contains([]string{"archive", "active", "all"}, source) {
		return nil, invalid(map[string]string{"source": "value '" + source + "' does not have a value in the enumeration 'archive, active, all'"})
	}
	return q.tasks("RUNNING", number(q.form, "limit", 50), func(t *task) bool {
		return t.node == q.node.Name && t.visible(q.token) == nil && (kind == "" || t.kind == kind) &&
			(source == "all" || (source == "active") == (t.exit == ""))
	}), nil
}

// listClusterTasks lists the latest tasks of all Proxmox nodes. Here the real list compares a task's user with the token's id. These are
// never equal, so without Sys.Audit a token sees nothing.
func listClusterTasks(q *request) (any, error) {
	return q.tasks("", 25*len(q.c.nodes()), func(*task) bool { return q.token.has("Sys.Audit") }), nil
}

// tasks lists the latest tasks of some, at most limit of them.
func (q *request) tasks(running string, limit int, some func(*task) bool) []any {
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	list := slices.DeleteFunc(slices.Collect(maps.Values(q.c.tasks)), func(t *task) bool { return !some(t) })
	slices.SortFunc(list, func(a, b *task) int { return b.pid - a.pid })
	out := []any{}
	for _, t := range list[:min(len(list), limit)] {
		out = append(out, t.listed(running))
	}
	return out
}

// stopTask interrupts a running task.
func stopTask(q *request) (any, error) {
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	t, err := q.c.task(q.r.PathValue("upid"))
	if err != nil {
		return nil, err
	}
	if t.token.user() != q.token.user() {
		if err := q.token.require("/nodes/"+t.node, "Sys.Modify"); err != nil {
			return nil, err
		}
	}
	t.cancel()
	return nil, nil
}

// number reads a number from a form; def replaces a missing or malformed one.
func number(form url.Values, key string, def int) int {
	if n, err := strconv.Atoi(form.Get(key)); err == nil && n >= 0 {
		return n
	}
	return def
}
