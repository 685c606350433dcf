package rotate

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/live"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/fakes/snapshottest"
)

// fake is a cluster whose nodes have new certificates at once, except those that are stuck. It does not model connections.
type fake struct {
	certificates []string

	mu     sync.Mutex
	trust  map[string]Trust // by name; a node that is not in it does not answer
	joined map[string]turn.KubeNode
	stuck  map[string]bool // their API keeps the certificate of the first authority
	etcd   []byte          // snapshot
	log    []string
	holder string // of the virtual IP
	free   time.Time
	boots  map[string]time.Time // when nodes begin to answer
	takes  time.Duration        // until another control plane has it

	onApply func(node string, trust Trust) error // its error is the node's answer
	unmet   func() string                        // which check fails; nil: none
}

func text(name string) string {
	return base64.StdEncoding.EncodeToString([]byte("-----BEGIN " + name + "-----\naGk=\n-----END " + name + "-----\n"))
}

var names = []string{"cp-1", "cp-2", "worker-1"}

// spec declares the second generation, for a worker that comes before the control planes.
func spec(t *testing.T) *Spec {
	t.Helper()
	s := &Spec{Of: Talos, Target: turn.Target{Cluster: "infra", Nodes: []turn.Node{
		{Name: "worker-1", Role: cluster.Worker, Address: netip.MustParseAddr("10.0.0.3")},
		{Name: "cp-1", Role: cluster.ControlPlane, Address: netip.MustParseAddr("10.0.0.1")},
		{Name: "cp-2", Role: cluster.ControlPlane, Address: netip.MustParseAddr("10.0.0.2")},
	}}}
	for _, name := range []string{"ONE", "TWO"} {
		s.Authorities = append(s.Authorities, Authority{
			Certificate: text(name), Key: text("KEY"), ClientCertificate: text("CLIENT"), ClientKey: text("CLIENT KEY"),
		})
	}
	require.NoError(t, probe.Complete(s))
	return s
}

// generations returns a cluster in which all nodes have the first generation.
func generations(s *Spec) *fake {
	f := &fake{certificates: s.Certificates(), trust: map[string]Trust{}, joined: map[string]turn.KubeNode{}, stuck: map[string]bool{}}
	for i, name := range names {
		f.trust[name] = Trust{Issuing: f.certificates[0]}
		f.joined[name] = turn.KubeNode{Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), Ready: true}
	}
	return f
}

func (f *fake) Look(_ context.Context, node turn.Node) (Trust, cluster.Role, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	trust, answers := f.trust[node.Name]
	if at, boots := f.boots[node.Name]; !answers || boots && time.Now().Before(at) {
		return trust, "", errors.New("no route to host")
	}
	if strings.HasPrefix(node.Name, "cp") {
		return trust, cluster.ControlPlane, nil
	}
	return trust, cluster.Worker, nil
}

func (f *fake) Apply(_ context.Context, node turn.Node, trust Trust) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.onApply != nil {
		if err := f.onApply(node.Name, trust); err != nil {
			return err
		}
	}
	f.trust[node.Name] = trust
	f.log = append(f.log, fmt.Sprintf("%s %s", node.Name, f.short(trust)))
	// Whatever has been done so far: every node accepts the certificate of every other, and one client is accepted by all.
	for name, one := range f.trust {
		for other, issuer := range f.trust {
			if !f.accepts(one, issuer.Issuing) {
				panic(name + " refuses " + other)
			}
		}
	}
	return nil
}

// short returns the generations of a node: the issuing one, and those that are accepted.
func (f *fake) StepAside(_ context.Context, node turn.Node) (netip.Addr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.holder != node.Name {
		return netip.Addr{}, nil
	}
	f.log = append(f.log, "virtual IP leaves "+node.Name)
	f.holder, f.free = "cp-"+map[string]string{"cp-1": "2", "cp-2": "1"}[node.Name], time.Now()
	return netip.MustParseAddr("10.0.0.10"), nil
}

func (f *fake) Holds(_ context.Context, node turn.Node, _ netip.Addr) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.holder == node.Name && time.Since(f.free) >= f.takes, nil
}

func (f *fake) short(trust Trust) string {
	var list []string
	for _, one := range append([]string{trust.Issuing}, trust.Accepted...) {
		list = append(list, fmt.Sprint(slices.Index(f.certificates, one)+1))
	}
	return strings.Join(list, "+")
}

func (f *fake) accepts(trust Trust, certificate string) bool {
	return trust.Issuing == certificate || slices.Contains(trust.Accepted, certificate)
}

func (f *fake) Ask(_ context.Context, node turn.Node, client int, servers ...int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	trust := f.trust[node.Name]
	issuer := trust.Issuing
	if f.stuck[node.Name] {
		issuer = f.certificates[0]
	}
	if !slices.Contains(servers, slices.Index(f.certificates, issuer)) {
		return errors.New("certificate signed by unknown authority")
	}
	if !f.accepts(trust, f.certificates[client]) {
		return errors.New("remote error: unknown certificate authority")
	}
	return nil
}

func (f *fake) Joined(context.Context) (map[string]turn.KubeNode, error) {
	if f.joined == nil {
		return nil, errors.New("connection refused")
	}
	return f.joined, nil
}

func (f *fake) Unmet(context.Context, []cluster.Check) (string, error) {
	if f.unmet == nil {
		return "", nil
	}
	return f.unmet(), nil
}

// EtcdSnapshot gives none from cp-1.
func (f *fake) EtcdSnapshot(_ context.Context, node turn.Node) (io.ReadCloser, error) {
	if node.Name == "cp-1" || f.etcd == nil {
		return nil, errors.New("connection refused")
	}
	return io.NopCloser(bytes.NewReader(f.etcd)), nil
}

// rotated runs a spec in a bubble, in which time passes at once.
func rotated(t *testing.T, s *Spec, f machines) (report Report, said string, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var progress strings.Builder
		report, err = run(t.Context(), s, f, &progress)
		said = progress.String()
	})
	return report, said, err
}

func TestRun_MakesEachPassOnAllNodesBeforeTheNext(t *testing.T) {
	s := spec(t)
	f := generations(s)
	report, said, err := rotated(t, s, f)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"cp-1 1+2", "cp-2 1+2", "worker-1 1+2", "cp-1 2+1", "cp-2 2+1", "worker-1 2+1", "cp-1 2", "cp-2 2", "worker-1 2",
	}, f.log)
	assert.Equal(t, names, report.Changed)
	assert.Contains(t, said, "pass 2 of 3 on 3 nodes: the new CA issues")
	assert.Contains(t, report.Sentence(), "all nodes have generation 2 of Talos's CA after")

	f.log = nil
	report, _, err = rotated(t, s, f)
	require.NoError(t, err)
	assert.Empty(t, f.log)
	assert.Contains(t, report.Sentence(), "had generation 2 of Talos's CA already")
}

func TestRun_TakesASnapshotOfEtcdBeforeItChangesAnything(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", home)
	s := spec(t)
	s.Snapshots.Folder, s.Snapshots.Keep = "snapshots", 1
	former := home + "/slipway/snapshots/" + s.Cluster + "-19990101T000000Z.db"
	require.NoError(t, os.MkdirAll(home+"/slipway/snapshots", 0o700))
	require.NoError(t, os.WriteFile(former, nil, 0o600))
	f := generations(s)
	_, _, err := rotated(t, s, f)
	require.ErrorContains(t, err, "this run has changed nothing: etcd gives no snapshot: cp-1: connection refused")
	assert.Empty(t, f.log)
	assert.FileExists(t, former)

	f.etcd = snapshottest.New(t)
	report, said, err := rotated(t, s, f)
	require.NoError(t, err)
	assert.FileExists(t, report.Snapshot)
	assert.NoFileExists(t, former, "the change has succeeded")
	assert.Contains(t, said, "takes a snapshot of etcd from cp-2")
}

func TestRun_GoesOnWithWhatAnInterruptedOneHasLeft(t *testing.T) {
	s := spec(t)
	whole := generations(s)
	_, _, err := rotated(t, s, whole)
	require.NoError(t, err)
	for killed := range whole.log {
		f := generations(s)
		ctx, cancel := context.WithCancel(t.Context())
		f.onApply = func(string, Trust) error {
			if len(f.log) == killed {
				cancel()
				return errors.New("killed")
			}
			return nil
		}
		_, err := run(ctx, s, f, &strings.Builder{})
		cancel()
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, f.log, killed)
		f.onApply = nil
		_, _, err = rotated(t, s, f)
		require.NoError(t, err)
		assert.Equal(t, whole.log, f.log, "killed before change %d", killed)
	}
}

func TestRun_DropsNothingWhileANodeHasNoNewCertificate(t *testing.T) {
	s := spec(t)
	f := generations(s)
	f.stuck["worker-1"] = true
	_, _, err := rotated(t, s, f)
	require.ErrorContains(t, err, "worker-1 (pass 2): gave up after 5m0s (last: its API has no certificate of the new CA: "+
		"certificate signed by unknown authority)\nall nodes still accept each other, and the next run goes on")
	assert.NotContains(t, f.log, "cp-1 2")
}

func TestRun_ChangesNothingWhileANodeOfTheClusterIsSilent(t *testing.T) {
	s := spec(t)
	f := generations(s)
	delete(f.trust, "worker-1")
	_, _, err := rotated(t, s, f)
	require.ErrorContains(t, err, "this run has changed nothing")
	require.ErrorContains(t, err, "these nodes would be left behind: worker-1: no route to host; fix them, or remove them from the stack file")
	assert.Empty(t, f.log)

	delete(f.joined, "worker-1")
	report, _, err := rotated(t, s, f)
	require.NoError(t, err, "a node that is not there yet gets the new CA with its first configuration")
	assert.Equal(t, []string{"worker-1"}, report.Silent)
	assert.Equal(t, []string{"cp-1", "cp-2"}, report.Changed)
}

// unreachable is a fake whose silent nodes are reached by nobody: the kernel needs three seconds to say so, for the credentials of each
// authority.
type unreachable struct{ *fake }

func (u unreachable) Look(ctx context.Context, node turn.Node) (Trust, cluster.Role, error) {
	trust, role, err := u.fake.Look(ctx, node)
	if err != nil {
		probe.Pause(ctx, 3*time.Second*time.Duration(len(u.certificates)))
	}
	return trust, role, err
}

func (u unreachable) Joined(ctx context.Context) (map[string]turn.KubeNode, error) {
	return u.joined, ctx.Err()
}

func TestRun_AsksAnUnreachableNodeWithTheCredentialsOfEachAuthority(t *testing.T) {
	for _, generation := range []int{2, 3, 4, 9} {
		s := spec(t)
		for len(s.Authorities) < generation {
			next := s.Authorities[0]
			next.Certificate = text(fmt.Sprint("NUMBER ", len(s.Authorities)))
			s.Authorities = append(s.Authorities, next)
		}
		f := generations(s)
		delete(f.trust, "worker-1")
		delete(f.joined, "worker-1")
		report, _, err := rotated(t, s, unreachable{f})
		require.NoError(t, err, "generation %d", generation)
		assert.Equal(t, []string{"worker-1"}, report.Silent)
	}
}

func TestRun_OfTalosWaitsForANodeThatMayOnlyBootForTheFirstTime(t *testing.T) {
	s := spec(t)
	f := generations(s)
	delete(f.joined, "worker-1")
	synctest.Test(t, func(t *testing.T) {
		f.boots = map[string]time.Time{"worker-1": time.Now().Add(newTimeout / 2)}
		report, err := run(t.Context(), s, f, io.Discard)
		require.NoError(t, err)
		assert.Empty(t, report.Silent)
		assert.Equal(t, []string{"cp-1", "cp-2", "worker-1"}, report.Changed)
	})
}

func TestRun_ChangesNothingWhileANodeIsLeftOut(t *testing.T) {
	s := spec(t)
	s.Skip = []cluster.SkippedNode{{Name: "worker-1", Reason: "waits for a disk"}}
	f := generations(s)
	_, _, err := rotated(t, s, f)
	require.EqualError(t, err, "this run has changed nothing: lifecycle.skip: leaves out worker-1, and every node needs the new CA; "+
		"remove it from lifecycle.skip once it is back, or remove the node from nodePools")
	assert.Empty(t, f.log)
}

// checked returns a spec with a check, and a cluster in which the check fails while failing returns true for what was changed.
func checked(t *testing.T, failing func(log []string) bool) (*Spec, *fake) {
	s := spec(t)
	s.Checks = []cluster.Check{{Name: "the databases have a primary"}}
	f := generations(s)
	f.unmet = func() string {
		if failing(f.log) {
			return "not so: the databases have a primary"
		}
		return ""
	}
	return s, f
}

func TestRun_ChangesNothingWhileACheckOfTheStackFileFails(t *testing.T) {
	s, f := checked(t, func([]string) bool { return true })
	_, _, err := rotated(t, s, f)
	require.ErrorContains(t, err, "this run has changed nothing: the checks: gave up after 10m0s (last: not so: the databases have a primary)")
	assert.Empty(t, f.log)
}

func TestRun_ChangesNoSecondNodeWhileACheckFailsAfterTheFirst(t *testing.T) {
	s, f := checked(t, func(log []string) bool { return len(log) > 0 })
	_, _, err := rotated(t, s, f)
	require.ErrorContains(t, err, "the checks after cp-1: gave up after 5m0s (last: not so: the databases have a primary)\n"+
		"all nodes still accept each other, and the next run goes on")
	assert.Len(t, f.log, 1)

	_, _, err = rotated(t, s, f)
	require.NoError(t, err, "what is not finished may be why it fails")
}

func TestRun_ChangesNothingWithoutTheCluster(t *testing.T) {
	s := spec(t)
	f := generations(s)
	f.joined = nil
	_, _, err := rotated(t, s, f)
	require.ErrorContains(t, err, "this run has changed nothing: the nodes: gave up after 2m0s (last: the Kubernetes API does not answer")
	clear(f.trust)
	_, _, err = rotated(t, s, f)
	require.ErrorContains(t, err, "no control plane answers, and a CA is replaced only while the cluster runs: worker-1: no route to host")
	assert.Empty(t, f.log)
}

// A node that leaves the stack file in the same up is removed afterwards, by the same API.
func TestRun_IncludesNodesThatAreNotDeclaredAnyMore(t *testing.T) {
	s := spec(t)
	s.Nodes = slices.DeleteFunc(s.Nodes, func(node turn.Node) bool { return node.Name == "cp-2" })
	f := generations(s)
	f.joined["dead"] = turn.KubeNode{Address: netip.MustParseAddr("10.0.0.9")}
	report, _, err := rotated(t, s, f)
	require.NoError(t, err)
	assert.Equal(t, names, report.Changed, "control planes first")
	assert.Equal(t, []string{"dead"}, report.Silent)
}

// A node that somebody has joined by hand, and whose Talos API cannot be reached, would lose the cluster.
func TestRun_ChangesNothingWhileANodeThatIsReadyIsSilent(t *testing.T) {
	s := spec(t)
	f := generations(s)
	f.joined["gpu"] = turn.KubeNode{Address: netip.MustParseAddr("10.0.0.9"), Ready: true}
	_, _, err := rotated(t, s, f)
	require.ErrorContains(t, err, "these nodes would be left behind: gpu: no route to host; fix them, or remove")
	assert.Empty(t, f.log)
}

func TestRun_StopsAtANodeThatRefusesTheConfiguration(t *testing.T) {
	s := spec(t)
	f := generations(s)
	f.onApply = func(node string, _ Trust) error {
		if node == "cp-2" {
			return live.RefusedError("unknown key")
		}
		return nil
	}
	_, _, err := rotated(t, s, f)
	require.ErrorContains(t, err, "cp-2: unknown key")
	assert.Equal(t, []string{"cp-1 1+2"}, f.log)
}

func TestReport_SaysWhatWasChangedAndWhoWasSilent(t *testing.T) {
	var out strings.Builder
	require.NoError(t, probe.Write(&out, Report{
		Head: probe.Head{Kind: "rotate", Cluster: "infra"}, Of: Kubernetes, Generation: 2, Changed: names, Silent: []string{"x"},
		Restarted: []string{"Deployment a/b"},
	}))
	assert.Contains(t, out.String(), "changed  cp-1")
	assert.Contains(t, out.String(), "silent   x")
	assert.Contains(t, out.String(), "restarted  Deployment a/b")
	assert.Contains(t, out.String(), "Kubernetes's CA of infra")
}
