package rotate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/secrets"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// fakeEtcd is a cluster whose control planes issue certificates by their configuration at once, and accept what their configuration was
// when they booted.
type fakeEtcd struct {
	*fake
	accepted map[string]Trust // since the boot
	staged   map[string]Trust
	boots    map[string]int
	cordoned map[string]bool
	members  []string
	sick     string // a node whose Talos API does not answer
	events   []string
	onEvent  func(event string) error
}

// ofThree declares the second generation of etcd's CA for three control planes and a worker.
func ofThree(t *testing.T) (*Spec, *fakeEtcd) {
	t.Helper()
	s := spec(t)
	s.Of, s.Talosconfig = Etcd, "context: infra"
	s.Limits = &cluster.TurnLimits{
		MaxUnavailable: "1", DrainTimeout: cluster.Duration{Duration: time.Minute}, ReturnTimeout: cluster.Duration{Duration: 5 * time.Minute},
	}
	s.Nodes = append(s.Nodes, turn.Node{Name: "cp-3", Role: cluster.ControlPlane, Address: netip.MustParseAddr("10.0.0.4")})
	require.NoError(t, s.Validate())
	f := &fakeEtcd{
		fake: generations(s), accepted: map[string]Trust{}, staged: map[string]Trust{}, boots: map[string]int{}, cordoned: map[string]bool{},
		members: []string{"cp-1", "cp-2", "cp-3"},
	}
	f.trust["worker-1"] = Trust{}
	for _, name := range f.members {
		f.trust[name] = Trust{Issuing: f.certificates[0]}
		f.accepted[name] = f.trust[name]
		f.joined[name] = turn.KubeNode{Address: netip.MustParseAddr("10.0.0.9"), Ready: true}
	}
	return s, f
}

// happens notes what was done to the cluster. Whatever has been done so far: every member accepts the certificate of every other.
func (f *fakeEtcd) happens(event string) error {
	if f.onEvent != nil {
		if err := f.onEvent(event); err != nil {
			return err
		}
	}
	f.events = append(f.events, event)
	return nil
}

func (f *fakeEtcd) connected() {
	for _, name := range f.members {
		for _, other := range f.members {
			if !f.accepts(f.accepted[name], f.trust[other].Issuing) {
				panic(name + " refuses " + other)
			}
		}
	}
}

func (f *fakeEtcd) Apply(_ context.Context, node turn.Node, trust Trust) error {
	if err := f.happens(node.Name + " issues " + f.short(trust)); err != nil {
		return err
	}
	f.trust[node.Name] = trust
	f.connected()
	return nil
}

func (f *fakeEtcd) Stage(_ context.Context, node turn.Node, trust Trust) error {
	if !f.cordoned[node.Name] {
		panic(node.Name + " is not cordoned")
	}
	f.staged[node.Name] = trust
	return f.happens(node.Name + " keeps " + f.short(trust))
}

func (f *fakeEtcd) Reboot(_ context.Context, node turn.Node) error {
	if err := f.happens(node.Name + " boots"); err != nil {
		return err
	}
	f.trust[node.Name], f.accepted[node.Name] = f.staged[node.Name], f.staged[node.Name]
	f.boots[node.Name]++
	f.connected()
	return nil
}

func (f *fakeEtcd) Serves(_ context.Context, node turn.Node, trust Trust) string {
	if f.stuck[node.Name] || f.trust[node.Name].Issuing != trust.Issuing {
		return "its etcd has no certificate of the CA that issues yet"
	}
	return ""
}

func (f *fakeEtcd) Turns() turn.Cluster { return turns{f} }

// turns is how control planes take turns in a fakeEtcd, which are always well.
type turns struct{ f *fakeEtcd }

func (c turns) Machine(_ context.Context, node turn.Node) (turn.Machine, error) {
	well := talosapi.Service{State: talosapi.Running, Known: true, Healthy: true}
	if node.Name == c.f.sick {
		return turn.Machine{}, errors.New("no route to host")
	}
	return turn.Machine{
		Boot: fmt.Sprint("boot ", c.f.boots[node.Name]), Stage: "running", Services: map[string]talosapi.Service{"etcd": well, "kubelet": well},
	}, nil
}

func (c turns) Members(context.Context, turn.Node) (all []talosapi.Member, err error) {
	for i, name := range c.f.members {
		all = append(all, talosapi.Member{ID: uint64(i), Name: name})
	}
	return all, nil
}

func (c turns) Nodes(context.Context) (map[string]turn.KubeNode, error) {
	nodes := map[string]turn.KubeNode{}
	for name, node := range c.f.joined {
		node.Unschedulable, node.Ours = c.f.cordoned[name], c.f.cordoned[name]
		nodes[name] = node
	}
	return nodes, nil
}

func (c turns) Cordon(_ context.Context, node string) error      { c.f.cordoned[node] = true; return nil }
func (c turns) Uncordon(_ context.Context, node string) error    { c.f.cordoned[node] = false; return nil }
func (c turns) Forget(context.Context, string) error             { return nil }
func (c turns) Pods(context.Context, string) ([]turn.Pod, error) { return nil, nil }
func (c turns) Evict(context.Context, turn.Pod) error            { return nil }
func (c turns) LastLines(context.Context, turn.Node) []string    { return nil }
func (c turns) Ceph(context.Context) (turn.Ceph, error)          { return turn.Ceph{}, nil }
func (c turns) Unmet(context.Context, []cluster.Check) (string, error) {
	return "", nil
}

func TestRun_OfEtcdRebootsControlPlanesForWhatTheyAcceptAndNotForWhoIssues(t *testing.T) {
	s, f := ofThree(t)
	delete(f.trust, "worker-1") // a worker has no CA of etcd, so that it may be away
	report, said, err := rotated(t, s, f)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"cp-1 keeps 1+2", "cp-1 boots", "cp-2 keeps 1+2", "cp-2 boots", "cp-3 keeps 1+2", "cp-3 boots",
		"cp-1 issues 2+1", "cp-2 issues 2+1", "cp-3 issues 2+1",
		"cp-1 keeps 2", "cp-1 boots", "cp-2 keeps 2", "cp-2 boots", "cp-3 keeps 2", "cp-3 boots",
	}, f.events)
	assert.Equal(t, []string{"cp-1", "cp-2", "cp-3"}, report.Changed)
	assert.Contains(t, said, "pass 1 of 3 on 3 nodes: the new CA is accepted")
	assert.Contains(t, report.Sentence(), "have generation 2 of etcd's CA after")
	for name, cordoned := range f.cordoned {
		assert.False(t, cordoned, name)
	}

	f.events = nil
	report, _, err = rotated(t, s, f)
	require.NoError(t, err)
	assert.Empty(t, f.events)
	assert.Contains(t, report.Sentence(), "had generation 2 of etcd's CA already")
}

// A run may be killed between any two changes, also when a node has its configuration for the next boot, and has not rebooted.
func TestRun_OfEtcdGoesOnWithWhatAnInterruptedOneHasLeft(t *testing.T) {
	s, whole := ofThree(t)
	_, _, err := rotated(t, s, whole)
	require.NoError(t, err)
	for killed, event := range whole.events {
		_, f := ofThree(t)
		ctx, cancel := context.WithCancel(t.Context())
		f.onEvent = func(string) error {
			if len(f.events) == killed {
				cancel()
				return errors.New("killed")
			}
			return nil
		}
		synctest.Test(t, func(*testing.T) {
			_, err := run(ctx, s, f, &strings.Builder{})
			cancel()
			require.Error(t, err)
		})
		f.onEvent = nil
		_, _, err = rotated(t, s, f)
		require.NoError(t, err, "killed before %s", event)
		assert.Equal(t, whole.trust, f.trust, "killed before %s", event)
		assert.Equal(t, whole.accepted, f.accepted, "killed before %s", event)
		assert.NotContains(t, f.cordoned, true)
	}
}

func TestRun_OfEtcdDropsNothingWhileAMemberHasNoNewCertificate(t *testing.T) {
	s, f := ofThree(t)
	f.onEvent = func(event string) error {
		if event == "cp-2 issues 2+1" {
			f.stuck["cp-2"] = true
		}
		return nil
	}
	_, _, err := rotated(t, s, f)
	require.ErrorContains(t, err, "cp-2 (pass 2): gave up after 5m0s (last: its etcd has no certificate of the CA that issues yet)\n"+
		"all nodes still accept each other, and the next run goes on")
	assert.NotContains(t, f.events, "cp-1 keeps 2")
}

func TestRun_OfEtcdChangesNothingWhileAMemberWouldBeLeftBehind(t *testing.T) {
	s, f := ofThree(t)
	s.Nodes = slices.DeleteFunc(s.Nodes, func(node turn.Node) bool { return node.Name == "cp-3" })
	_, _, err := rotated(t, s, f)
	require.ErrorContains(t, err, "this run has changed nothing: these members of etcd would be left behind: cp-3 (id 0000000000000002); "+
		"if one has just joined, run up again; if one leaves, declare it again for this run")
	assert.Empty(t, f.events)

	s, f = ofThree(t)
	delete(f.trust, "cp-3")
	_, _, err = rotated(t, s, f)
	require.ErrorContains(t, err, "these nodes would be left behind: cp-3: no route to host; fix them; if a machine is lost, "+
		"run talosctl -n CONTROL-PLANE etcd remove-member ID and kubectl delete node NAME, raise its generation, and run up")
	delete(f.joined, "cp-3")
	_, _, err = rotated(t, s, f)
	require.ErrorContains(t, err, "these members of etcd would be left behind: cp-3")
	assert.Empty(t, f.events)
}

func TestRun_OfEtcdNeedsNoWorkerThatIsLeftOut(t *testing.T) {
	s, f := ofThree(t)
	s.Skip = []cluster.SkippedNode{{Name: "worker-1", Reason: "waits for a disk"}}
	_, _, err := rotated(t, s, f)
	require.NoError(t, err)

	s, f = ofThree(t) // it is what an earlier run has left
	s.Skip = []cluster.SkippedNode{{Name: "worker-1", Reason: "waits for a disk"}}
	delete(f.trust, "worker-1")
	f.cordoned["worker-1"], f.sick = true, "worker-1"
	_, _, err = rotated(t, s, f)
	require.NoError(t, err)

	s.Skip = []cluster.SkippedNode{{Name: "worker-1", Reason: "waits for a disk"}, {Name: "cp-3", Reason: "waits for a disk"}}
	_, _, err = rotated(t, s, f)
	require.ErrorContains(t, err, "lifecycle.skip: leaves out cp-3, and every node needs the new CA")
}

// The machine of cp-3 is lost in the middle. Nothing but the run can be done with the other two, and with both of them etcd has its quorum.
func TestRun_OfEtcdGoesOnWithTwoMembersWhenTheThirdIsLost(t *testing.T) {
	s, f := ofThree(t)
	f.onEvent = func(event string) error {
		if event == "cp-3 boots" {
			return errors.New("the power supply is broken")
		}
		return nil
	}
	_, _, err := rotated(t, s, f)
	require.ErrorContains(t, err, "cp-3: the power supply is broken")
	f.onEvent = nil
	delete(f.trust, "cp-3")
	delete(f.joined, "cp-3") // as the message says, with its member
	f.members = []string{"cp-1", "cp-2"}
	report, said, err := rotated(t, s, f)
	require.NoError(t, err)
	assert.Contains(t, said, "cp-1: etcd has two members and needs both: the Kubernetes API is away until it is back")
	assert.Equal(t, []string{"cp-3"}, report.Silent, "its next machine gets the new CA")
	assert.Equal(t, "2 2", f.short(f.accepted["cp-1"])+" "+f.short(f.accepted["cp-2"]))
}

// A control plane that an earlier run has configured joins with the former CA, when the others have made the first pass.
func TestRun_OfEtcdIssuesNothingBeforeAMemberThatHasJustJoined(t *testing.T) {
	s, f := ofThree(t)
	late := f.joined["cp-3"]
	joins := func() {
		f.members, f.joined["cp-3"], f.trust["cp-3"] = []string{"cp-1", "cp-2", "cp-3"}, late, Trust{Issuing: f.certificates[0]}
		f.accepted["cp-3"] = f.trust["cp-3"]
	}
	f.members = []string{"cp-1", "cp-2"}
	delete(f.trust, "cp-3")
	delete(f.joined, "cp-3")
	f.onEvent = func(event string) error {
		if event == "cp-2 boots" {
			joins()
		}
		return nil
	}
	_, _, err := rotated(t, s, f)
	require.ErrorContains(t, err, "these members of etcd would be left behind: cp-3")
	require.NotContains(t, f.events, "cp-1 issues 2+1")
	f.onEvent = nil
	_, _, err = rotated(t, s, f)
	require.NoError(t, err)
	assert.Contains(t, f.events, "cp-3 keeps 1+2")
}

func TestRun_OfEtcdStopsAtANodeThatDoesNotRunWhatItWasGiven(t *testing.T) {
	s, f := ofThree(t)
	f.onEvent = func(event string) error {
		if event == "cp-1 boots" {
			f.staged["cp-1"] = f.trust["cp-1"] // somebody has applied another configuration
		}
		return nil
	}
	_, _, err := rotated(t, s, f)
	require.ErrorContains(t, err, "cp-1 is not back, and stays cordoned")
	require.ErrorContains(t, err, "it does not run the configuration that it was given")
	assert.Equal(t, []string{"cp-1 keeps 1+2", "cp-1 boots"}, f.events)
}

// Such a node was removed in part. It has no client in the turns' cluster.
func TestRun_OfEtcdPassesOverAControlPlaneThatIsNoMemberAnyMore(t *testing.T) {
	s, f := ofThree(t)
	f.trust["cp-9"], f.joined["cp-9"] = Trust{Issuing: f.certificates[0]}, f.joined["cp-3"]
	report, _, err := rotated(t, s, f)
	require.NoError(t, err)
	assert.Equal(t, []string{"cp-1", "cp-2", "cp-3"}, report.Changed)
}

func TestSpec_OfEtcdNeedsTheLimitsOfTurns(t *testing.T) {
	s, _ := ofThree(t)
	short := s.Longest()
	s.Limits.ReturnTimeout.Duration += time.Minute
	assert.Equal(t, 6*time.Minute, s.Longest()-short, "three control planes reboot twice")
	s.Limits = nil
	require.ErrorContains(t, s.Validate(), "limits: is missing; give the limits of turns")
}

// made returns a CA, and what it has issued for an etcd.
func made(t *testing.T) (*x509.PEMEncodedCertificateAndKey, *x509.PEMEncodedCertificateAndKey) {
	t.Helper()
	ca, err := x509.NewSelfSignedCertificateAuthority(x509.ECDSA(true))
	require.NoError(t, err)
	pair, err := x509.NewKeyPair(ca)
	require.NoError(t, err)
	return x509.NewCertificateAndKeyFromCertificateAuthority(ca), x509.NewCertificateAndKeyFromKeyPair(pair)
}

func TestOfEtcd_TheFirstCertificateOfTheBundleIssues(t *testing.T) {
	one, _ := made(t)
	two, _ := made(t)
	in := &v1alpha1.Config{ClusterConfig: &v1alpha1.ClusterConfig{EtcdConfig: &v1alpha1.EtcdConfig{RootCA: &x509.PEMEncodedCertificateAndKey{
		Crt: one.Crt, Key: one.Key,
	}}}}
	at, ca := ofEtcd{}, in.ClusterConfig.EtcdConfig
	authorities := []string{string(one.Crt), string(two.Crt)}
	for _, want := range []struct {
		pass Pass
		crt  string
		key  []byte
	}{
		{Accept, string(one.Crt) + string(two.Crt), one.Key},
		{Issue, string(two.Crt) + string(one.Crt), two.Key},
		{Drop, string(two.Crt), two.Key},
	} {
		next, changes := want.pass.Next(at.trust(in), authorities)
		require.True(t, changes, want.pass)
		require.NoError(t, at.set(in, next, string(two.Key)))
		assert.Equal(t, want.crt, string(ca.RootCA.Crt), want.pass)
		assert.Equal(t, string(want.key), string(ca.RootCA.Key), want.pass)
		assert.Equal(t, next.All(), at.trust(in).All(), want.pass)
	}
	ca.RootCA = nil
	require.Error(t, at.set(in, Trust{Issuing: authorities[0]}, ""))
	assert.Empty(t, at.trust(in))
}

func TestIssued_IsSoOnceTheAuthorityHasIssuedEveryCertificate(t *testing.T) {
	one, ofOne := made(t)
	two, ofTwo := made(t)
	spec := &secrets.EtcdCertsSpec{Etcd: ofTwo, EtcdPeer: ofTwo, EtcdAdmin: ofTwo, EtcdAPIServer: ofOne}
	assert.False(t, issued(spec, string(two.Crt)))
	spec.EtcdAPIServer = ofTwo
	assert.True(t, issued(spec, string(two.Crt)))
	assert.False(t, issued(spec, string(one.Crt)))
	assert.False(t, issued(&secrets.EtcdCertsSpec{}, string(two.Crt)))
	assert.False(t, issued(spec, "no PEM"))
}
