//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fewestKills is the least number of runs that TestResume must have killed.
const fewestKills = 50

// fewestPlanned leaves points to spare: operations beside a killed one go on for a moment, or to their end if only its plugin was killed.
// So the next run finds some of it done, and does not pass the points of that.
const fewestPlanned = fewestKills * 3 / 2

// fewestReached returns how many of the planned points of one command must be reached, so that none goes without.
func fewestReached(planned int) int { return (planned + 2) / 3 }

// TestResume_AKilledRunIsFinishedByTheNext creates and destroys infra once undisturbed, and then again in series: each run is killed at a
// point of that undisturbed run, and the next one goes on until the next point. A series ends with a run that is not killed. What exists
// then is compared with what the undisturbed run has made, object by object.
func TestResume_AKilledRunIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "resume", smallChain, "--latency=0.001")
	l.smallTree()
	r := &resume{lab: l}
	l.part("undisturbed", r.undisturbed)
	all := []series{
		{name: "everything is killed", victim: func(operation) victim { return everything }},
		{name: "Pulumi is killed and its plugins go on", victim: func(operation) victim { return pulumi }},
		{name: "one of the other processes is killed", victim: nextProcess()},
	}
	planned := 0
	for i := range all {
		all[i].plan(r, i, len(all))
		planned += len(all[i].up) + len(all[i].refresh) + len(all[i].destroy)
	}
	require.GreaterOrEqual(t, planned, fewestPlanned)
	for i := range all {
		l.part(all[i].name, func(*lab) { r.completes(&all[i]) })
	}
	l.part("a destroy after half an up", r.destroysHalf)
	t.Logf("%d runs were killed at %d planned points, and finished by another one %d times", r.killed, planned, r.finished)
	require.GreaterOrEqual(t, r.killed, fewestKills)
}

// smallChain has every phase and few machines.
func smallChain(s settings) {
	s.pool(1)["nodes"] = s.pool(1)["nodes"].([]any)[:1]
	s.withoutStorage()
	skip := map[string]any{"skip": true}
	s.set("crds", map[string]any{"victoriaMetrics": skip, "prometheusOperator": skip, "cloudnativePG": skip, "rook": skip,
		"cephCSI": skip})
}

// smallTree commits a tree of one ConfigMap: Flux applies the tree beside the runs.
func (l *lab) smallTree() {
	l.t.Helper()
	folder := filepath.Join(l.project, "kubernetes", "clusters", "infra")
	for file, text := range map[string]string{
		"infrastructure/kustomization.yaml": `{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization, resources: [applied.yaml]}`,
		"infrastructure/applied.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: applied, namespace: flux-system}, ` +
			`data: {by: Flux}}`,
		"workloads/kustomization.yaml": `{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization, resources: []}`,
	} {
		require.NoError(l.t, os.WriteFile(filepath.Join(folder, file), []byte(text+"\n"), 0o600))
	}
	l.commit("small tree", nil)
}

// operation is what the undisturbed run has done with a resource.
type operation struct {
	urn, op string
	end     moment // a refresh ends with another name, such as same
	took    time.Duration
}

// kind returns the type of the operation's resource.
func (o operation) kind() string { kind, _, _ := strings.Cut(shortURN(o.urn), " "); return kind }

// point is where a run is killed.
type point struct {
	moment moment
	after  time.Duration // after the moment
	victim victim
}

func (p point) String() string {
	return fmt.Sprintf("%s: %s after the %s", p.victim, p.after.Round(time.Millisecond), p.moment)
}

// series are the points at which the runs of one life of the cluster are killed.
type series struct {
	name                 string
	victim               func(operation) victim
	up, refresh, destroy []point
}

// plan takes each of-th operation of the undisturbed runs, beginning with a number of its own: all of `up`, and some of the others.
func (s *series) plan(r *resume, number, of int) {
	s.up = s.points(r.up, number, of)
	s.refresh = s.points(r.refresh, 6*number+3, 6*of)
	s.destroy = s.points(r.destroy, 3*number+2, 3*of)
}

// points returns a point of each operation, in turns at its begin, in its middle, and at its end.
func (s *series) points(all []operation, from, step int) (points []point) {
	for i := from; i < len(all); i += step {
		p := point{moment: moment{urn: all[i].urn, op: all[i].op}, victim: s.victim(all[i])}
		switch len(points) % 3 {
		case 1:
			p.after = all[i].took / 2
		case 2:
			p.moment = all[i].end
		}
		points = append(points, p)
	}
	return points
}

func TestSeries_HaveSparePointsForThoseThatAreNotReached(t *testing.T) {
	operations := make([]operation, 60) // infra has more
	for i := range operations {
		urn := fmt.Sprintf("urn:pulumi:infra::slipway::a::resource-%d", i)
		operations[i] = operation{urn: urn, op: "create", end: moment{urn: urn, op: "create", ended: true}}
	}
	r, planned, all := &resume{up: operations, refresh: operations, destroy: operations}, map[string]int{}, 0
	for i := range 3 {
		s := series{victim: func(operation) victim { return everything }}
		s.plan(r, i, 3)
		for _, p := range s.up {
			planned[p.moment.urn]++
		}
		all += len(s.up) + len(s.refresh) + len(s.destroy)
	}
	require.Len(t, planned, len(operations), "each operation of an up is a point of one series")
	require.GreaterOrEqual(t, all, fewestPlanned)
	require.Equal(t, 1, fewestReached(1), "no command goes without a kill")
}

func TestSeries_KillWhatWorksInTheCommand(t *testing.T) {
	create, other := map[victim]bool{}, map[victim]bool{}
	ofCreate, ofOther := nextProcess(), nextProcess()
	for i := range 8 {
		for _, resource := range []string{
			"command:local:Command::gate-probe", "pulumi:index:Stash::cilium-mode", "tls:index/privateKey:PrivateKey::ca",
		} {
			urn := "urn:pulumi:infra::slipway::" + resource
			create[ofCreate(operation{urn: urn, op: "create"})] = true
			other[ofOther(operation{urn: urn, op: []string{"refresh", "delete"}[i%2]})] = true
		}
	}
	require.Equal(t, map[victim]bool{
		program: true, languageHost: true, probe: true, "pulumi-resource-command": true, "pulumi-resource-tls": true,
	}, create)
	require.Equal(t, map[victim]bool{pulumi: true, "pulumi-resource-command": true, "pulumi-resource-tls": true}, other,
		"neither the program nor a probe runs")
}

// nextProcess returns the plugin that does an operation, or Pulumi, which does some itself. In a run, it returns in turns with them the
// process that works for them: the probe, or the program and its language host.
func nextProcess() func(operation) victim {
	number := map[string]int{}
	return func(o operation) victim {
		name, _, _ := strings.Cut(o.kind(), ":")
		number[name]++
		odd := number[name]%2 == 1
		switch {
		case name == "pulumi" && o.op != "create":
			return pulumi
		case name == "pulumi" && odd:
			return program
		case name == "pulumi":
			return languageHost
		case name == "command" && o.op == "create" && odd && strings.HasSuffix(o.urn, "-probe"):
			return probe
		}
		return victim("pulumi-resource-" + name)
	}
}

// resume is the test's knowledge of the undisturbed runs.
type resume struct {
	lab                  *lab
	made                 inventory
	up, refresh, destroy []operation

	killed, finished int
}

// undisturbed creates and destroys the cluster.
func (r *resume) undisturbed(l *lab) {
	r.up = r.operations("up", "create")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	r.made = l.inventory()
	r.refresh = r.operations("refresh", "refresh")
	l.pulumi("state", "unprotect", "--all", "--yes", "--stack", "infra")
	r.destroy = r.operations("destroy", "delete")
	l.nothingIsLeft()
}

// operations runs a command, and returns its operations of a kind on resources of plugins, in their order.
func (r *resume) operations(command, op string) (all []operation) {
	l := r.lab
	l.t.Helper()
	began := map[string]time.Time{}
	run := l.engine(command, "--yes", "--skip-preview")
	run.follows(func(m moment) bool {
		from, begun := began[m.urn]
		switch {
		case m.ended && begun:
			all = append(all, operation{urn: m.urn, op: op, end: m, took: time.Since(from)})
		case m.op == op && !strings.Contains(shortURN(m.urn), "slipway:") && !strings.HasPrefix(shortURN(m.urn), "pulumi:pulumi:"):
			began[m.urn] = time.Now()
		}
		return true
	})
	out, err := run.end(longestRun)
	require.NoError(l.t, err, "%s", end(out))
	l.checkOutput(out, "")
	require.Greater(l.t, len(all), 40, "operations of %s", command)
	return all
}

// completes creates and destroys the cluster in runs that are killed.
func (r *resume) completes(s *series) {
	l := r.lab
	l.t.Helper()
	r.finishes(s.up, "up")
	l.pulumiSays(pendingOperations, "refresh", "--clear-pending-creates", "--yes", "--skip-preview", "--stack", "infra")
	different := r.made.differences(l.inventory())
	require.Empty(l.t, strings.Join(different, "\n"), "what the killed runs have made differs from what the undisturbed run has made")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")

	r.finishes(s.refresh, "refresh")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	state, want := inventory{}, inventory{}
	l.addState(state)
	for field, value := range r.made {
		if strings.HasPrefix(field, "state ") {
			want[field] = value
		}
	}
	require.Empty(l.t, strings.Join(want.differences(state), "\n"), "the killed refreshes have changed the state")

	l.pulumi("state", "unprotect", "--all", "--yes", "--stack", "infra")
	r.finishes(s.destroy, "destroy")
	l.nothingIsLeft()
}

// vmIsGone is the provider's message about a VM that a killed run has deleted without recording it. docs/operations.md tells what to do.
const vmIsGone = "error retrieving VM status: the requested resource does not exist"

// finishes runs a command again and again. Each run is killed at the first point that it reaches, unless it ends before. A run that is not
// killed must succeed, and the first one that reaches no point is the last.
func (r *resume) finishes(points []point, command string) {
	l := r.lab
	l.t.Helper()
	killed, planned, forgotten := 0, len(points), false
	for {
		run := l.engine(command, "--yes", "--skip-preview")
		var hit *point
		run.follows(func(m moment) bool {
			i := slices.IndexFunc(points, func(p point) bool { return p.moment == m })
			if i < 0 {
				return true
			}
			reached := points[i]
			hit, points = &reached, slices.Delete(points, i, i+1)
			return false
		})
		if hit != nil && run.diesAt(*hit) {
			killed++
			l.t.Logf("killed %s", hit)
			continue
		}
		out, err := run.end(longestRun)
		if err != nil && strings.Contains(out, vmIsGone) && !forgotten {
			forgotten = true
			l.pulumiSays(pendingOperations, "refresh", "--yes", "--skip-preview", "--target", "**-vm", "--stack", "infra")
			continue
		}
		require.NoError(l.t, err, "%s after kills\n%s", command, end(out))
		l.checkOutput(out, pendingOperations)
		if hit == nil {
			break
		}
	}
	r.killed += killed
	r.finished++
	for _, p := range points {
		l.t.Logf("not reached, because it was done beside another one: %s", p)
	}
	require.GreaterOrEqual(l.t, killed, fewestReached(planned), "%d of %d runs of %s were killed", killed, planned, command)
}

// diesAt kills the run at a point that it has reached, and waits for its end. It returns false if the run ended before.
func (r *engineRun) diesAt(p point) bool {
	l := r.lab
	l.t.Helper()
	if p.after > 0 {
		<-time.After(p.after)
	}
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for r.kills(p.victim) == 0 {
		select {
		case err := <-r.ended:
			r.ended <- err
			return false
		case <-look.C:
		}
	}
	_, _ = r.end(longestRun) // it may have been able to do without the process
	if p.victim == everything || p.victim == pulumi {
		l.cancel("infra")
	}
	return true
}

// nothingIsLeft waits until Proxmox VE has neither VMs nor volumes, and checks that the state is empty.
func (l *lab) nothingIsLeft() {
	l.t.Helper()
	resources, _ := l.state() // Pulumi keeps the note of an interrupted creation until a refresh clears it
	require.LessOrEqual(l.t, len(resources), 1, "resources are left in the state, beside the stack's")
	var s status
	require.Eventually(l.t, func() bool {
		s = l.status()
		return len(s.VMs)+len(s.Processes)+len(s.Volumes) == 0
	}, 15*time.Second, 250*time.Millisecond, "something is left of the destroyed stack: %+v", &s)
}

// destroysHalf kills a run at several points, takes away the API server, and destroys what there is, in one run.
func (r *resume) destroysHalf(l *lab) {
	powerOff := func() {
		for name, id := range map[string]string{"pve1": "1111", "pve2": "1112", "pve3": "1113"} {
			l.proxmox("POST", "nodes/"+name+"/qemu/"+id+"/status/stop", new(any))
		}
	}
	apiGone := func() { l.must("fault", "api-server-gone", "infra") }
	for _, half := range []struct {
		name  string // of the resource in whose middle the run is killed
		fault func() // after the kill
	}{
		{"talos-pve2-iso", nil},
		{"talos-infra-cp-2-vm", nil},
		{"talos-bootstrap", powerOff},
		{"cilium-release", apiGone},
		{"gitops-probe", apiGone},
	} {
		l.part(half.name, func(l *lab) {
			i := slices.IndexFunc(r.up, func(o operation) bool { return strings.HasSuffix(o.urn, "::"+half.name) })
			require.GreaterOrEqual(l.t, i, 0)
			p := point{moment: moment{urn: r.up[i].urn, op: "create"}, after: r.up[i].took / 2}
			run := l.engine("up", "--yes", "--skip-preview")
			require.False(l.t, run.follows(func(m moment) bool { return m != p.moment }), "the up ended")
			require.True(l.t, run.diesAt(p))
			l.t.Logf("killed %s", p)
			if half.fault != nil {
				half.fault()
				defer l.must("fault", "--clear")
			}
			l.pulumi("state", "unprotect", "--all", "--yes", "--stack", "infra")
			l.pulumiSays(pendingOperations, "destroy", "--yes", "--skip-preview", "--stack", "infra")
			l.nothingIsLeft()
			l.pulumiSays(pendingOperations, "refresh", "--clear-pending-creates", "--yes", "--skip-preview", "--stack", "infra")
		})
	}
}
