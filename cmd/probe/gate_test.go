package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/fakes/fakecluster"
)

var members = []fakecluster.Member{
	{Name: "infra-cp-1", Address: "10.25.11.11", ControlPlane: true}, {Name: "infra-worker-1", Address: "10.25.11.21"},
}

// rig is a healthy cluster and its spec.
type rig struct {
	kube  *fakecluster.Kube
	talos *fakecluster.Talos
	spec  gate.Spec
}

func newRig(t *testing.T) *rig {
	r := &rig{kube: fakecluster.NewKube(t), talos: fakecluster.NewTalos(t)}
	fakecluster.Healthy(t, r.kube, r.talos, members)
	r.spec = gate.Spec{
		Target:      targetOf(r.kube, 20*time.Second),
		Talosconfig: r.talos.Config,
		Cilium:      &gate.Cilium{Version: "1.18.7", Mode: cluster.CiliumHelm, ClusterName: "infra", ClusterID: 1, Routing: "tunnel"},
		Network: &gate.Network{
			PodCIDRs:     []netip.Prefix{netip.MustParsePrefix(fakecluster.PodCIDR)},
			ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix(fakecluster.ServiceCIDR)},
		},
		Nodes: []gate.Machine{{Name: "infra-cp-1", Role: cluster.ControlPlane, Address: netip.MustParseAddr("10.25.11.11")},
			{Name: "infra-worker-1", Role: cluster.Worker, Address: netip.MustParseAddr("10.25.11.21")}},
	}
	return r
}

// probe runs the command and returns its exit code, its report and its progress.
func (r *rig) probe(t *testing.T) (int, health.Report, string) {
	t.Helper()
	spec := encode(t, &r.spec)
	return execute(t, spec, "gate")
}

// look is probe with --once: it ends when everything is read, however long that takes on a busy machine.
func (r *rig) look(t *testing.T) (int, health.Report, string) {
	t.Helper()
	spec := encode(t, &r.spec)
	return execute(t, spec, "gate", "--once")
}

// run runs the probe as slipway-probe.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := newCommand("slipway-probe", nil)
	c.SetIn(stdin)
	c.SetOut(stdout)
	c.SetErr(stderr)
	return command.Run(ctx, c, args)
}

// Exit codes, by what the probe has found.
const (
	exitOpen      = command.Done
	exitUnhealthy = command.Failed
	exitUsage     = command.Misuse
)

// targetOf is a fake cluster. What holds counts after a moment.
func targetOf(kube *fakecluster.Kube, timeout time.Duration) health.Target {
	return health.Target{
		Cluster: "infra", Kubeconfig: kube.Config, Timeout: probe.Duration(timeout), StableFor: probe.Duration(50 * time.Millisecond),
	}
}

// encode returns a valid spec as the program writes it.
func encode(t *testing.T, spec probe.Spec) string {
	t.Helper()
	text, err := probe.Encode(spec)
	require.NoError(t, err)
	return text
}

// execute runs the command with -o json, unless args have an -o, and returns its exit code, its report and its progress.
func execute(t *testing.T, stdin string, args ...string) (int, health.Report, string) {
	t.Helper()
	return executeUntil(t, new(until), stdin, args...)
}

// executeUntil is execute with a given buffer for the progress.
func executeUntil(t *testing.T, stderr *until, stdin string, args ...string) (int, health.Report, string) {
	t.Helper()
	var stdout bytes.Buffer
	if !slices.Contains(args, "-o") {
		args = append(args, "-o", "json")
	}
	code := run(t.Context(), args, strings.NewReader(stdin), &stdout, stderr)
	for _, secret := range []string{"fake-token", "BEGIN", "LS0tLS1"} {
		assert.NotContains(t, stdout.String()+stderr.String(), secret)
	}
	var report health.Report
	if code != exitUsage {
		require.NoError(t, json.Unmarshal(stdout.Bytes(), &report), stderr.String())
	}
	return code, report, stderr.String()
}

func TestGate_OpensOnAHealthyCluster(t *testing.T) {
	t.Parallel()
	code, report, progress := newRig(t).probe(t)
	assert.Equal(t, exitOpen, code, progress)
	assert.Equal(t, health.Open, report.Outcome)
	assert.Empty(t, report.Problems)
	assert.Positive(t, report.APICalls)
}

func TestGate_OpensAndNamesTheKernelParametersThatAreNotSet(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.talos.Change("10.25.11.21", func(n *fakecluster.TalosNode) {
		n.Parameters = map[string]string{"vm.nr_hugepages": "1", "net.core.somaxcon": "", "kernel.pid_max": "262144"} // Talos's default
	})
	code, report, progress := r.look(t)
	require.Equal(t, exitOpen, code, progress)
	text, err := json.Marshal(report)
	require.NoError(t, err)
	assert.Contains(t, string(text), "the kernel has not taken kernel.pid_max, net.core.somaxcon\"")
}

func TestGate_OpensWithinASecondOfEachKindOfLastCondition(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ breakIt, repair func(*testing.T, *rig) }{
		"node Ready": {
			func(t *testing.T, r *rig) { fakecluster.PutNode(t, r.kube, members[1], "False") },
			func(t *testing.T, r *rig) { fakecluster.PutNode(t, r.kube, members[1], "True") },
		},
		"agent Ready": {
			func(t *testing.T, r *rig) { fakecluster.PutAgent(t, r.kube, members[1], false) },
			func(t *testing.T, r *rig) { fakecluster.PutAgent(t, r.kube, members[1], true) },
		},
		"Envoy Ready": {
			func(t *testing.T, r *rig) { fakecluster.PutEnvoy(t, r.kube, members[1], false) },
			func(t *testing.T, r *rig) { fakecluster.PutEnvoy(t, r.kube, members[1], true) },
		},
		"kubelet runs": {
			func(t *testing.T, r *rig) {
				r.talos.Change("10.25.11.21", func(n *fakecluster.TalosNode) {
					n.Services["kubelet"] = &machineapi.ServiceInfo{Id: "kubelet", State: "Failed"}
				})
			},
			func(t *testing.T, r *rig) {
				r.talos.Change("10.25.11.21", func(n *fakecluster.TalosNode) { n.Services["kubelet"] = fakecluster.Running("kubelet") })
			},
		},
		"cilium-health passes": {
			func(t *testing.T, r *rig) {
				r.kube.OnExec(fakecluster.Agents(members, "Connection timed out"))
			},
			func(t *testing.T, r *rig) {
				r.kube.OnExec(fakecluster.Agents(members, ""))
			},
		},
		"readyz passes": {
			func(t *testing.T, r *rig) { r.kube.NotReady("etcd") },
			func(t *testing.T, r *rig) { r.kube.NotReady("") },
		},
		"API server comes back": {
			func(t *testing.T, r *rig) { r.kube.GoAway() },
			func(t *testing.T, r *rig) { r.kube.ComeBack() },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A busy machine may delay one attempt. A gate that is always late is late in each. What a gate takes on a healthy cluster at
			// the same time, above the stability window, shows how busy the machine is.
			var took, limit time.Duration
			for range 3 {
				took = openAfterRepair(t, c.breakIt, c.repair)
				limit = time.Second + 2*max(0, openWhenHealthy(t)-time.Second)
				if took < limit {
					return
				}
			}
			t.Errorf("opened %s after the last condition became true, not within %s", took, limit)
		})
	}
}

// openWhenHealthy returns how long a probe of a healthy cluster takes.
func openWhenHealthy(t *testing.T) time.Duration {
	t.Helper()
	r := newRig(t)
	r.spec.StableFor = 0
	start := time.Now()
	code, _, progress := r.probe(t)
	assert.Equal(t, exitOpen, code, progress)
	return time.Since(start)
}

// openAfterRepair returns the time from the repair of a broken cluster to the end of a probe that waited for it.
func openAfterRepair(t *testing.T, breakIt, repair func(*testing.T, *rig)) time.Duration {
	t.Helper()
	r := newRig(t)
	r.spec.StableFor = 0 // the default, as in use
	breakIt(t, r)
	repaired := make(chan time.Time, 1)
	waits := &until{text: "waits", then: func() {
		time.AfterFunc(500*time.Millisecond, func() {
			repaired <- time.Now()
			repair(t, r)
		})
	}}
	spec := encode(t, &r.spec)
	code, report, progress := executeUntil(t, waits, spec, "gate")
	assert.Equal(t, exitOpen, code, progress)
	assert.NotEmpty(t, report.Last)
	select {
	case at := <-repaired:
		return time.Since(at)
	default:
		t.Fatalf("opened before it was repaired:\n%s", progress)
		return 0
	}
}

// problem returns the problem of a subject. There may be others: a slow machine may not have read everything in time.
func problem(t *testing.T, report health.Report, subject, should string) health.Result {
	t.Helper()
	for _, result := range report.Problems {
		if result.Subject == subject && strings.Contains(result.Check, should) {
			return result
		}
	}
	t.Fatalf("no problem of %s with a check %q in %+v", subject, should, report.Problems)
	return health.Result{}
}

func TestGate_StaysClosedAndNamesNodeServiceAndReason(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.talos.Change("10.25.11.21", func(n *fakecluster.TalosNode) {
		n.Services["kubelet"] = &machineapi.ServiceInfo{Id: "kubelet", State: "Failed", Events: &machineapi.ServiceEvents{
			Events: []*machineapi.ServiceEvent{{Msg: "Service failed to start: no image", State: "Failed"}}}}
		n.Logs = map[string]string{"kubelet": "flag provided but not defined: --what\n"}
	})
	code, report, progress := r.look(t)
	assert.Equal(t, exitUnhealthy, code)
	assert.Equal(t, health.Closed, report.Outcome)
	cause := problem(t, report, "infra-worker-1", "kubelet")
	assert.Equal(t, "kubelet is Failed (Service failed to start: no image)", cause.Reason)
	assert.Equal(t, []string{"log of kubelet on infra-worker-1:", "| flag provided but not defined: --what"}, cause.Evidence)
	assert.Equal(t, "talosctl --context fake -n 10.25.11.21 service kubelet; talosctl --context fake -n 10.25.11.21 logs kubelet",
		cause.Command)
	assert.Contains(t, progress, "infra-worker-1")
}

func TestGate_RefusedCredentialsAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for said, kubeconfig := range map[string]string{
		"certificate signed by unknown authority":  r.kube.Kubeconfig(t, fakecluster.OtherAuthority(t), "fake-token"),
		"the kubeconfig's credentials are refused": r.kube.Kubeconfig(t, r.kube.Authority(), "another-token"),
	} {
		r.spec.Kubeconfig = kubeconfig
		code, report, progress := r.look(t)
		assert.Equal(t, exitUnhealthy, code, said)
		assert.Contains(t, progress, said)
		assert.NotContains(t, progress, "another-token")
		assert.NotEmpty(t, report.Problems, said)
	}
}

func TestGate_ThatIsInterruptedPrintsItsReport(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fakecluster.PutNode(t, r.kube, members[1], "False")
	spec := encode(t, &r.spec)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var stdout bytes.Buffer
	stderr := &until{text: "cni plugin not initialized", then: stop}
	assert.Equal(t, exitUnhealthy, run(ctx, []string{"gate", "-o", "json"}, strings.NewReader(spec), &stdout, stderr))
	var report health.Report
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &report), stderr.String())
	assert.Equal(t, health.Interrupted, report.Outcome)
	assert.Contains(t, problem(t, report, "infra-worker-1", "node is Ready").Reason, "cni plugin not initialized")
}

// until is a buffer that calls a function once it contains a text, and the other one if there is one. The zero value calls nothing.
type until struct {
	bytes.Buffer
	text, and string
	then      func()
}

func (u *until) Write(p []byte) (int, error) {
	n, err := u.Buffer.Write(p)
	if then := u.then; then != nil && strings.Contains(u.String(), u.text) && strings.Contains(u.String(), u.and) {
		u.then = nil
		then()
	}
	return n, err
}

func TestProbe_WrongUseIsExitCodeTwo(t *testing.T) {
	for _, args := range [][]string{
		{}, {"open"}, {"gate", "now"}, {"gate", "--what"}, {"gate", "--cluster", "x"}, {"gate", "--kubeconfig", "/nonexistent"},
		{"gate"}, {"handover"}, {"handover", "now"}, {"handover", "--path", "x"}, {"argocd"}, {"argocd", "now"}, {"argocd", "--root", "x"},
		{"mesh"}, {"mesh", "now"}, {"checks"}, {"checks", "now"},
		{"bootstrap"}, {"bootstrap", "now"}, {"upgrade"}, {"upgrade", "now"}, {"retire"}, {"retire", "now"}, {"rotate"}, {"rotate", "now"},
		{"leftovers"}, {"leftovers", "now"}, {"argocd-removal"}, {"argocd-removal", "now"},
		{"snapshot"}, {"snapshot", "now"}, {"snapshot", "--recipient", "nobody"}, {"snapshot", "--talosconfig", "/nonexistent"},
	} {
		code, _, said := execute(t, `{"secret":"BEGIN`, args...)
		assert.Equal(t, exitUsage, code, args)
		assert.NotEmpty(t, said, args)
	}
}

func TestProbe_HelpListsSubcommandsAndFlags(t *testing.T) {
	for _, args := range [][]string{
		{"help"}, {"-h"}, {"gate", "-h"}, {"workloads", "-h"}, {"handover", "-h"}, {"mesh", "-h"}, {"bootstrap", "-h"}, {"crds", "-h"},
		{"upgrade", "-h"}, {"retire", "-h"}, {"rotate", "-h"}, {"leftovers", "-h"}, {"snapshot", "-h"},
		{"argocd-removal", "-h"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, exitOpen, run(t.Context(), args, strings.NewReader(""), &stdout, &stderr), args)
		assert.Contains(t, strings.ToLower(stdout.String()+stderr.String()), "usage", args)
		assert.NotContains(t, stderr.String(), "flag: help requested", args)
	}
}

func TestGate_ComparesTheVersionsThatRun(t *testing.T) {
	for name, in := range map[string]struct {
		kubernetes, talos string
		says              []string
	}{
		"as declared": {fakecluster.KubernetesVersion, fakecluster.TalosVersion, nil},
		"Talos not upgraded": {fakecluster.KubernetesVersion, "v1.12.99",
			[]string{"talosctl -n 10.25.11.21 upgrade --image factory/x:v1.12.99"}},
		"another API server": {"v1.35.9", fakecluster.TalosVersion,
			[]string{"kubelet runs v1.35.8, API server runs v1.35.8; v1.35.9 is declared"}},
		"both in one message": {"v1.35.9", "v1.12.99", []string{"runs Talos v1.12.7", "kubelet runs v1.35.8"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			// The fake API server answers on the loopback only, so the control plane has its address.
			local := []fakecluster.Member{{Name: "infra-cp-1", Address: "127.0.0.1", ControlPlane: true}, members[1]}
			fakecluster.Healthy(t, r.kube, r.talos, local)
			r.spec.Nodes[0].Address = netip.MustParseAddr(local[0].Address)
			r.spec.Versions = &gate.Versions{Talos: in.talos, Kubernetes: in.kubernetes, Installer: "factory/x:" + in.talos}
			r.spec.Timeout = probe.Duration(3 * time.Second)
			code, report, _ := r.probe(t)
			if in.says == nil {
				require.Equal(t, exitOpen, code, "%+v", report)
				assert.Equal(t, fakecluster.ClusterUID, report.UID, "it identifies the cluster")
				return
			}
			require.Equal(t, exitUnhealthy, code)
			text, err := json.Marshal(report)
			require.NoError(t, err)
			for _, words := range in.says {
				assert.Contains(t, string(text), words)
			}
		})
	}
}
