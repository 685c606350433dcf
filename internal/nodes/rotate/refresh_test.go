package rotate

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/live"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// pods is a fake with a Kubernetes API, whose kube-controller-manager leads on cp-1, and with kubelets. A restart replaces all pods of a
// workload at once. After each change of a node it checks that no pod and no worker has lost the API.
type pods struct {
	*fake
	t       *testing.T
	roots   map[string]*Root
	running map[string]*pod   // by namespace/name
	kubelet map[string]string // authority of each kubelet's client certificate

	stuck     bool                         // no pod is ever replaced
	starts    time.Duration                // how long a new pod is not available
	onPods    func()                       // before pods are listed
	onRelease func(namespace string) error // its error is the API's answer
	onRestart func() error                 // after a restart; its error is the API's answer
	deleted   string                       // namespace/name of the only pod of a workload that is deleted before it is restarted
	takenBack bool                         // an owner of workloads removes restarts from their templates
	ahead     map[string]time.Duration     // clocks of control planes
	onClock   func()                       // before a clock is read
}

// pod is a pod with what it has read.
type pod struct {
	Pod
	trusts []string
}

func withPods(t *testing.T, s *Spec) *pods {
	t.Helper()
	s.Of = Kubernetes
	p := &pods{fake: generations(s), t: t, roots: map[string]*Root{}, running: map[string]*pod{}, kubelet: map[string]string{}}
	for i := range p.certificates {
		p.certificates[i] = Split(p.certificates[i])[0]
	}
	for name := range p.trust {
		p.trust[name] = Trust{Issuing: p.certificates[0]}
		p.kubelet[name] = p.certificates[0]
	}
	for _, namespace := range []string{"default", "flux-system"} {
		p.roots[namespace] = &Root{Namespace: namespace, UID: "1", Certificates: p.certificates[:1]}
	}
	p.add("flux-system", "a", Workload{Kind: "Deployment", Namespace: "flux-system", Name: "source-controller"})
	p.add("flux-system", "b", Workload{Kind: "Deployment", Namespace: "flux-system", Name: "source-controller"})
	p.add("default", "c", Workload{Kind: "DaemonSet", Namespace: "default", Name: "agent"})
	return p
}

// add creates a pod, long ago unless a time is set.
func (p *pods) add(namespace, name string, by Workload, created ...time.Time) {
	one := &pod{Pod: Pod{Namespace: namespace, Name: name, Workload: by}, trusts: p.roots[namespace].Certificates}
	if len(created) > 0 {
		one.Created = created[0]
	}
	p.running[namespace+"/"+name] = one
}

func (p *pods) Apply(ctx context.Context, node turn.Node, trust Trust) error {
	if err := p.fake.Apply(ctx, node, trust); err != nil {
		return err
	}
	if !p.accepts(trust, p.kubelet[node.Name]) {
		p.kubelet[node.Name] = p.trust["cp-1"].Issuing
	}
	for server, api := range p.trust {
		if !strings.HasPrefix(server, "cp") {
			continue
		}
		for name, one := range p.running {
			assert.Contains(p.t, one.trusts, api.Issuing, "%s does not trust the API server of %s", name, server)
		}
		assert.True(p.t, p.accepts(api, p.kubelet["worker-1"]), "%s refuses the kubelet of worker-1", server)
		assert.True(p.t, p.accepts(api, p.kubelet[server]), "%s refuses its own kubelet", server)
	}
	return nil
}

// publish is what kube-controller-manager does.
func (p *pods) publish() {
	for _, root := range p.roots {
		if !root.Kept {
			root.UID, root.Certificates = "1", []string{p.trust["cp-1"].Issuing}
		}
	}
}

func (p *pods) Settled(_ context.Context, node turn.Node, trust Trust) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if have := p.trust[node.Name]; !Equal(have.All(), trust.All()) {
		return "is behind"
	}
	return ""
}

func (p *pods) Roots(context.Context) ([]Root, error) {
	p.publish()
	var all []Root
	for _, root := range p.roots {
		all = append(all, *root)
	}
	return all, nil
}

func (p *pods) Keep(_ context.Context, root Root, certificates string) error {
	*p.roots[root.Namespace] = Root{
		Namespace: root.Namespace, UID: root.UID, Certificates: Split(certificates), Kept: true, Since: time.Now(),
	}
	return nil
}

func (p *pods) Release(_ context.Context, root Root) error {
	if p.onRelease != nil {
		if err := p.onRelease(root.Namespace); err != nil {
			return err
		}
	}
	p.log = append(p.log, "releases "+root.Namespace)
	p.roots[root.Namespace] = &Root{Namespace: root.Namespace}
	return nil
}

func (p *pods) Pods(context.Context) (all []Pod, err error) {
	if p.onPods != nil {
		p.onPods()
	}
	for _, one := range p.running {
		all = append(all, one.Pod)
	}
	return all, nil
}

func (p *pods) Restart(_ context.Context, workload Workload, since time.Time) error {
	require.True(p.t, p.roots[workload.Namespace].Kept)
	require.Equal(p.t, p.roots[workload.Namespace].Since, since)
	p.log = append(p.log, "restarts "+workload.String())
	for _, one := range p.running {
		if one.Workload == workload && !p.stuck {
			p.add(one.Namespace, one.Name, workload, time.Now())
			p.running[one.Namespace+"/"+one.Name].Restarted = since
		}
	}
	if p.onRestart != nil {
		return p.onRestart()
	}
	return nil
}

func (p *pods) Rollout(_ context.Context, workload Workload) (rollout, error) {
	if p.takenBack {
		return rollout{}, nil
	}
	if one := p.running[p.deleted]; one != nil && one.Workload == workload {
		delete(p.running, p.deleted)
		return rollout{gone: true}, nil
	}
	now := rollout{restarted: p.roots[workload.Namespace].Since}
	for _, one := range p.running {
		if one.Workload == workload {
			now.wanted++
			if p.available(one) {
				now.available++
			}
		}
	}
	return now, nil
}

// available reports whether a pod has run for long enough.
func (p *pods) available(one *pod) bool { return time.Since(one.Created) >= p.starts }

// changes returns the log with neighbours in order that come in any order.
func (p *pods) changes() string {
	log := slices.Clone(p.log)
	if at := slices.IndexFunc(log, func(line string) bool { return strings.HasPrefix(line, "releases") }); at >= 0 {
		slices.Sort(log[at : at+2])
	}
	return strings.Join(log, "; ")
}

const wholeRun = "cp-1 1+2; cp-2 1+2; worker-1 1+2; restarts DaemonSet default/agent; restarts Deployment flux-system/source-controller; " +
	"cp-1 2+1; cp-2 2+1; worker-1 2+1; releases default; releases flux-system; worker-1 2; cp-1 2; cp-2 2"

func TestRun_OfKubernetesRestartsWhatReadsTheCABeforeItIssues(t *testing.T) {
	s := spec(t)
	p := withPods(t, s)
	report, said, err := rotated(t, s, p)
	require.NoError(t, err)
	assert.Equal(t, wholeRun, p.changes(), "workers come first at the end: API servers take former certificates as long as kubelets have them")
	assert.Equal(t, []string{"DaemonSet default/agent", "Deployment flux-system/source-controller"}, report.Restarted)
	assert.Contains(t, said, "restarts DaemonSet default/agent: its pods may not trust both CAs")
	assert.Contains(t, report.Sentence(), "all nodes have generation 2 of Kubernetes's CA after")
	for _, root := range p.roots {
		assert.Equal(t, p.certificates[1:], root.Certificates)
	}
	p.log = nil
	report, _, err = rotated(t, s, p)
	require.NoError(t, err)
	assert.Empty(t, p.log)
	assert.Empty(t, report.Restarted)
}

func TestRun_OfKubernetesMovesTheVirtualIPBeforeAnAPIServerRestarts(t *testing.T) {
	for of, moves := range map[Subject]int{Kubernetes: 6, Talos: 0} { // twice in each pass
		s := spec(t)
		p := withPods(t, s)
		s.Of, p.holder, p.takes = of, "cp-1", turn.AsideTimeout*2/3
		on := machines(p)
		if of == Talos {
			on = p.fake
		}
		_, said, err := rotated(t, s, on)
		require.NoError(t, err)
		assert.NotContains(t, said, "the virtual IP does not answer")
		for i, line := range p.log {
			if node, moved := strings.CutPrefix(line, "virtual IP leaves "); moved {
				moves--
				require.True(t, strings.HasPrefix(p.log[i+1], node+" "), "its configuration is the next that changes")
			}
		}
		require.Zero(t, moves, "%s: %s", of, p.log)
	}
}

func TestRun_OfKubernetesGoesOnWithWhatAnInterruptedOneHasLeft(t *testing.T) {
	for killed := range 9 {
		s := spec(t)
		p := withPods(t, s)
		applied := 0
		p.onApply = func(string, Trust) error {
			if applied++; applied > killed {
				return live.RefusedError("killed")
			}
			return nil
		}
		_, _, err := rotated(t, s, p)
		require.ErrorContains(t, err, "killed")
		p.onApply = nil
		_, _, err = rotated(t, s, p)
		require.NoError(t, err)
		assert.Equal(t, wholeRun, p.changes(), "killed before change %d", killed)
	}
}

func TestRun_OfKubernetesRestartsPodsOfNamespacesThatAreNew(t *testing.T) {
	s := spec(t)
	p := withPods(t, s)
	p.onApply = func(node string, trust Trust) error {
		if node == "worker-1" && trust.Issuing == p.certificates[1] && p.roots["new"] == nil {
			p.roots["new"] = &Root{Namespace: "new", UID: "1", Certificates: p.certificates[1:]}
			p.add("new", "d", Workload{Kind: "StatefulSet", Namespace: "new", Name: "d"})
		}
		return nil
	}
	report, _, err := rotated(t, s, p)
	require.NoError(t, err)
	assert.Contains(t, report.Restarted, "StatefulSet new/d", "it may have read the former CA alone")
}

func TestRun_OfKubernetesIssuesNothingWhileAPodHasReadTheFormerCAAlone(t *testing.T) {
	s := spec(t)
	p := withPods(t, s)
	p.stuck = true
	_, _, err := rotated(t, s, p)
	require.ErrorContains(t, err, "DaemonSet default/agent: gave up after 15m0s without progress (last: pod c may not trust both CAs); "+
		"all nodes still accept each other, and the next run goes on")
	assert.NotContains(t, p.changes(), "2+1")

	p = withPods(t, s)
	p.add("default", "job", Workload{})
	_, _, err = rotated(t, s, p)
	require.ErrorContains(t, err, "gave up after 1h0m0s (last: default/job)")
	assert.NotContains(t, p.changes(), "2+1")
}

func TestRun_OfKubernetesChangesNothingForPodsThatNothingRestarts(t *testing.T) {
	s := spec(t)
	p := withPods(t, s)
	p.add("default", "bare", Workload{})
	p.running["default/bare"].Problem = "has no controller"
	_, _, err := rotated(t, s, p)
	require.ErrorContains(t, err, "this run has changed nothing: these pods read Kubernetes' CA when they start")
	require.ErrorContains(t, err, "default/bare has no controller")
	assert.Empty(t, p.log)

	delete(p.running, "default/bare")
	p.add("default", "left", Workload{})
	p.running["default/left"].Problem, p.running["default/left"].trusts = "has no controller", p.certificates
	delete(p.running, "default/c")
	s.LeaveNamespaces = []string{"default"}
	_, _, err = rotated(t, s, p)
	require.NoError(t, err)
	assert.NotContains(t, p.changes(), "restarts DaemonSet")
}

func TestRun_OfKubernetesNeedsEveryNodeToBeReady(t *testing.T) {
	for name, change := range map[string]func(*pods){
		"worker-1: its Node is not Ready": func(p *pods) { p.joined["worker-1"] = turn.KubeNode{Address: netip.MustParseAddr("10.0.0.3")} },
		"worker-1: it has no Node object": func(p *pods) { delete(p.joined, "worker-1") },
		"dead: no route to host":          func(p *pods) { p.joined["dead"] = turn.KubeNode{Address: netip.MustParseAddr("10.0.0.9")} },
		"worker-1: no route to host":      func(p *pods) { delete(p.trust, "worker-1") },
	} {
		s := spec(t)
		p := withPods(t, s)
		change(p)
		_, _, err := rotated(t, s, p)
		require.ErrorContains(t, err, "these nodes would be left behind: "+name)
		require.ErrorContains(t, err, "fix them, or remove them from the stack file and run kubectl delete node NAME")
		assert.Empty(t, p.log)
	}
}

func TestRun_OfKubernetesLooksAgainAfterPodsThatEndByThemselves(t *testing.T) {
	s := spec(t)
	p := withPods(t, s)
	p.add("default", "job", Workload{})
	ends := 20
	p.onPods = func() {
		if ends--; ends != 0 || p.running["default/job"] == nil {
			return
		}
		delete(p.running, "default/job")
		p.add("default", "e", Workload{Kind: "Deployment", Namespace: "default", Name: "late"}) // it may have read less
		p.running["default/e"].trusts = p.certificates[:1]
	}
	report, _, err := rotated(t, s, p)
	require.NoError(t, err)
	assert.Contains(t, report.Restarted, "Deployment default/late")
}

func TestRun_OfKubernetesNamesAnOwnerThatTakesARestartBack(t *testing.T) {
	s := spec(t)
	p := withPods(t, s)
	p.stuck, p.takenBack = true, true
	_, _, err := rotated(t, s, p)
	require.ErrorContains(t, err, "DaemonSet default/agent: whoever owns it takes the restart back; write its namespace into "+
		"lifecycle.certificateAuthorities.leaveNamespaces")
	assert.NotContains(t, p.changes(), "2+1")
}

func TestRun_OfKubernetesGoesOnAlthoughAPodHasStartedWithBothCAsThatNothingRestarts(t *testing.T) {
	s := spec(t)
	p := withPods(t, s)
	p.onApply = func(string, Trust) error {
		if p.roots["default"].Kept {
			return live.RefusedError("killed")
		}
		return nil
	}
	_, _, err := rotated(t, s, p)
	require.ErrorContains(t, err, "killed")
	p.onApply = nil
	p.add("default", "runner", Workload{}, p.roots["default"].Since.Add(clocksApart+time.Second))
	p.running["default/runner"].Problem = "has no controller"
	_, _, err = rotated(t, s, p)
	require.NoError(t, err)
	assert.Equal(t, wholeRun, p.changes())
}

func TestRun_OfKubernetesRestartsNothingAgainAfterItHasReleasedAConfigMap(t *testing.T) {
	s := spec(t)
	p := withPods(t, s)
	p.onRelease = func(namespace string) error {
		if namespace != "default" {
			return errors.New("refused by a webhook")
		}
		return nil
	}
	_, _, err := rotated(t, s, p)
	require.ErrorContains(t, err, "the one of flux-system cannot be deleted: refused by a webhook")
	p.onRelease = nil
	_, _, err = rotated(t, s, p)
	require.NoError(t, err)
	assert.Equal(t, wholeRun, p.changes())
}

func TestRun_OfKubernetesReleasesWhatAnotherGenerationHasKept(t *testing.T) {
	s := spec(t)
	p := withPods(t, s)
	p.roots["default"].Kept = true // by a run for a generation that is not declared any more
	_, _, err := rotated(t, s, p)
	require.NoError(t, err)
	assert.Equal(t, "releases default", p.log[0])
}

// withCeph adds three monitors and three disks of Ceph, with the check of a provider's stack file. It fails while one
// is away, and for as long afterwards as Rook's word may be old.
func (p *pods) withCeph(s *Spec, stale time.Duration) (away func() int) {
	p.roots["rook-ceph"] = &Root{Namespace: "rook-ceph", UID: "1", Certificates: p.certificates[:1]}
	for _, name := range []string{"mon-a", "mon-b", "mon-c", "osd-0", "osd-1", "osd-2"} {
		p.add("rook-ceph", name, Workload{Kind: "Deployment", Namespace: "rook-ceph", Name: "rook-ceph-" + name})
	}
	s.Checks = []cluster.Check{{Name: "Ceph has all copies, disks and monitors", Objects: cluster.CheckedObjects{Kind: "CephCluster"}}}
	s.Settle = cluster.Duration{Duration: stale}
	away = func() (count int) {
		for _, one := range p.running {
			if one.Namespace == "rook-ceph" && !p.available(one) {
				count++
			}
		}
		return count
	}
	var last time.Time
	p.unmet = func() string {
		if away() > 0 {
			last = time.Now()
		}
		if time.Since(last) < stale {
			return "MON_DOWN"
		}
		return ""
	}
	return away
}

func TestRun_OfKubernetesRestartsOneMonitorOrDiskOfCephAfterTheOther(t *testing.T) {
	s := spec(t)
	p := withPods(t, s)
	p.starts = 40 * time.Second
	away, most := p.withCeph(s, 75*time.Second), 0
	p.onPods = func() { most = max(most, away()) }
	report, _, err := rotated(t, s, p)
	require.NoError(t, err)
	assert.Contains(t, report.Restarted, "Deployment rook-ceph/rook-ceph-osd-2")
	assert.LessOrEqual(t, most, 1, "monitors and disks that were away at once")
}

func TestRun_OfKubernetesRestartsNoMonitorWhileAnotherIsAway(t *testing.T) {
	s := spec(t)
	p := withPods(t, s)
	p.withCeph(s, 75*time.Second)
	p.unmet = func() string { // from the restarts on, as after a run that was interrupted in them
		if p.roots["rook-ceph"].Kept {
			return "MON_DOWN"
		}
		return ""
	}
	_, _, err := rotated(t, s, p)
	require.ErrorContains(t, err, "Ceph, before Deployment rook-ceph/rook-ceph-mon-a is restarted: gave up after")
	assert.NotContains(t, p.changes(), "rook-ceph-mon")
}

func TestRun_OfKubernetesDoesNotWaitForAWorkloadThatWasNotAvailable(t *testing.T) {
	s := spec(t)
	p := withPods(t, s)
	p.starts = 24 * time.Hour // those of the fake were created long ago; none of the new ones becomes available
	for _, one := range p.running {
		one.Created = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // when synctest begins
	}
	_, _, err := rotated(t, s, p)
	require.NoError(t, err)

	p = withPods(t, s)
	p.starts = 24 * time.Hour
	_, _, err = rotated(t, s, p)
	require.ErrorContains(t, err, "gave up after 15m0s without progress (last: 0 of its pods are available, and 1 were before)")
}

func TestRun_OfKubernetesKnowsWhatWasAvailableBeforeARestartWhoseAnswerWasLost(t *testing.T) {
	s := spec(t)
	p := withPods(t, s)
	p.starts = 24 * time.Hour
	lost := []error{errors.New("timed out")}
	p.onRestart = func() (err error) {
		if len(lost) > 0 {
			err, lost = lost[0], nil
		}
		return err
	}
	_, _, err := rotated(t, s, p)
	require.ErrorContains(t, err, "gave up after 15m0s without progress (last: 0 of its pods are available, and 1 were before)")
}

func TestRun_OfKubernetesGoesOnWithoutAWorkloadThatIsDeletedBeforeItsRestart(t *testing.T) {
	s := spec(t)
	p := withPods(t, s)
	p.deleted = "default/c"
	report, _, err := rotated(t, s, p)
	require.NoError(t, err)
	assert.Equal(t, []string{"Deployment flux-system/source-controller"}, report.Restarted)
}
