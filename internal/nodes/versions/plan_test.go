package versions

import (
	"net/netip"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

func declared(talos, kubernetes string) Releases {
	return Releases{Talos: talos, Schematic: "aa", Kubernetes: kubernetes}
}

// runs returns a worker and a control plane that run versions.
func runs(talos, kubernetes string) []Running {
	node := func(name string, role cluster.Role, components ...Component) Running {
		images := map[Component]string{}
		for _, component := range components {
			images[component] = "registry.example.com:5000/" + string(component) + ":" + kubernetes
		}
		return Running{Node: turn.Node{Name: name, Role: role}, Talos: talos, Schematic: "aa", Images: images}
	}
	return []Running{node("worker-1", cluster.Worker, Kubelet), node("cp-1", cluster.ControlPlane, append(StaticPods, Kubelet)...)}
}

func TestPlan_HasWhatDiffersWithControlPlanesFirst(t *testing.T) {
	plan, err := NewPlan(declared("v1.12.7", "v1.35.8"), runs("v1.12.6", "v1.35.7"))
	require.NoError(t, err)
	assert.Equal(t, "Talos on cp-1, worker-1; kube-apiserver on cp-1; kube-controller-manager on cp-1; kube-scheduler on cp-1; "+
		"kubelet on cp-1, worker-1", plan.String())
	assert.False(t, plan.Minor)
	plan, err = NewPlan(declared("v1.12.7", "v1.35.8"), runs("v1.12.7", "v1.34.2"))
	require.NoError(t, err)
	assert.Empty(t, plan.Talos)
	assert.True(t, plan.Minor)
}

func TestPlan_IsEmptyWhereAllIsAsDeclared(t *testing.T) {
	plan, err := NewPlan(declared("v1.12.7", "v1.35.8"), runs("v1.12.7", "v1.35.8"))
	require.NoError(t, err)
	assert.True(t, plan.Empty())
}

func TestPlan_OfAHalfUpgradedClusterIsTheRest(t *testing.T) {
	running := runs("v1.12.7", "v1.35.8")
	running[0].Talos, running[0].Images[Kubelet] = "v1.12.6", "x/kubelet:v1.35.7"
	plan, err := NewPlan(declared("v1.12.7", "v1.35.8"), running)
	require.NoError(t, err)
	assert.Equal(t, "Talos on worker-1; kubelet on worker-1", plan.String())
}

func TestPlan_ComparesExtensionsWhereAMachineTellsThem(t *testing.T) {
	running := runs("v1.12.7", "v1.35.8")
	running[0].Schematic = "bb"
	running[1].Schematic = "" // not from an image factory
	plan, err := NewPlan(declared("v1.12.7", "v1.35.8"), running)
	require.NoError(t, err)
	assert.Equal(t, "Talos on worker-1", plan.String())
}

func TestPlan_RefusesWhatCannotBeDoneSafely(t *testing.T) {
	for want, test := range map[string]struct {
		declared Releases
		running  []Running
	}{
		"talos.version: v1.12.6 is older than v1.12.7, which runs on cp-1, worker-1, and downgrades are not made; " +
			"declare v1.12.7 or a later one": {
			declared("v1.12.6", "v1.35.8"), runs("v1.12.7", "v1.35.8")},
		"talos.version: v1.12.7 skips minor releases after v1.10.3, which runs on cp-1, worker-1; declare one minor release after the other": {
			declared("v1.12.7", "v1.32.0"), runs("v1.10.3", "v1.32.0")},
		"kubernetes.version: v1.35.7 is older than v1.35.8, which runs on cp-1, worker-1, and downgrades are not made": {
			declared("v1.12.7", "v1.35.7"), runs("v1.12.7", "v1.35.8")},
		"kubernetes.version: v1.35.8 skips minor releases after v1.33.2, which runs on cp-1, worker-1; declare one minor release after " +
			"the other": {
			declared("v1.12.7", "v1.35.8"), runs("v1.12.7", "v1.33.2")},
		"talos.version: Talos v1.12.7 does not run Kubernetes v1.29.1": {
			declared("v1.12.7", "v1.30.0"), runs("v1.11.5", "v1.29.1")},
		"kubernetes.version: Talos v1.12.7 does not run Kubernetes v1.36.0": {
			declared("v1.12.7", "v1.36.0"), runs("v1.12.7", "v1.35.8")},
		"kube-scheduler: image \"x/kube-scheduler:latest\" has no version as its tag": {
			declared("v1.12.7", "v1.35.8"), func() []Running {
				running := runs("v1.12.7", "v1.35.8")
				running[1].Images[Scheduler] = "x/kube-scheduler:latest"
				return running
			}()},
	} {
		_, err := NewPlan(test.declared, test.running)
		require.ErrorContains(t, err, want)
	}
}

// Declaring the release between would be a downgrade for the others.
func TestPlan_NamesANodeThatIsTooFarBehindTheOthers(t *testing.T) {
	running := runs("v1.14.6", "v1.37.2")
	running[0].Images[Kubelet] = "x/kubelet:v1.35.8"
	_, err := NewPlan(declared("v1.14.6", "v1.37.2"), running)
	require.EqualError(t, err, "kubernetes.version: v1.37.2 skips minor releases after v1.35.8, which runs on worker-1, and v1.37.2 runs "+
		"elsewhere; raise the generation of worker-1")
	running = runs("v1.14.6", "v1.36.6")
	running[0].Talos = "v1.12.7"
	_, err = NewPlan(declared("v1.14.6", "v1.36.6"), running)
	require.ErrorContains(t, err, "which runs on worker-1, and v1.14.6 runs elsewhere; raise the generation of worker-1")

	running = runs("v1.14.6", "v1.35.8")
	running[0].Images[Kubelet] = "x/kubelet:v1.36.6" // newer than each API server
	_, err = NewPlan(declared("v1.14.6", "v1.35.8"), running)
	require.ErrorContains(t, err, "v1.35.8 is older than v1.36.6, which runs on worker-1, and downgrades are not made")
}

// Neither may the former release be declared for it, nor does its API server ever get the declared configuration: the run waits for it.
func TestPlan_RefusesAnArgumentOfAControlPlaneThatWasLeftOut(t *testing.T) {
	has, err := configloader.NewFromBytes([]byte(`
version: v1alpha1
machine: {type: controlplane}
cluster: {apiServer: {extraArgs: {feature-gates: AppArmor=true, tls-min-version: VersionTLS13}}}
`))
	require.NoError(t, err)
	back := runs("v1.13.9", "v1.32.4")[1]
	back.Node.Name, back.Node.Address, back.Configuration = "cp-3", netip.MustParseAddr("192.0.2.13"), has
	for _, test := range []struct {
		declared Releases
		want     string
	}{
		{declared("v1.13.9", "v1.33.1"), "kubernetes.version: cluster.apiServer.extraArgs.feature-gates: AppArmor is "},
		{declared("v1.14.1", "v1.32.4"), "talos.version: cluster.apiServer.extraArgs.tls-min-version: "},
	} {
		_, err = NewPlan(test.declared, append(runs(test.declared.Talos, test.declared.Kubernetes), back))
		require.ErrorContains(t, err, test.want)
		require.ErrorContains(t, err, "so remove it there: talosctl --nodes 192.0.2.13 edit machineconfig; or raise the generation")
		require.NotContains(t, err.Error(), "remove it while")
	}
}

// The declared configuration, which lacks the argument already, would come only after the upgrade.
func TestPlan_RefusesAnotherReleaseWhileANodeHasAnArgumentThatItDoesNotTake(t *testing.T) {
	has, err := configloader.NewFromBytes([]byte(`
version: v1alpha1
machine: {type: controlplane}
cluster: {apiServer: {extraArgs: {feature-gates: AppArmor=true, tls-min-version: VersionTLS13}}}
`))
	require.NoError(t, err)
	with := func(talos, kubernetes string) []Running {
		running := runs(talos, kubernetes)
		running[1].Configuration = has
		other := running[1]
		other.Node.Name = "cp-2"
		return append(running, other)
	}
	_, err = NewPlan(declared("v1.13.9", "v1.33.1"), with("v1.13.9", "v1.32.4"))
	require.EqualError(t, err, "kubernetes.version: cluster.apiServer.extraArgs.feature-gates: AppArmor is a feature gate that Kubernetes "+
		"1.33 has removed, and is in the configuration of cp-1, cp-2, which the declared one replaces only after the upgrade; remove it "+
		"while kubernetes.version is v1.32.4, run up, and then declare v1.33.1")
	_, err = NewPlan(declared("v1.14.1", "v1.32.4"), with("v1.13.9", "v1.32.4"))
	require.ErrorContains(t, err, "talos.version: cluster.apiServer.extraArgs.tls-min-version: Talos 1.14 sets tls-min-version itself")
	require.ErrorContains(t, err, "remove it while talos.version is v1.13.9, run up, and then declare v1.14.1")

	for _, fits := range []struct {
		declared Releases
		running  []Running
	}{
		{declared("v1.13.9", "v1.32.4"), with("v1.13.8", "v1.32.3")}, // these run with it
		{declared("v1.13.9", "v1.33.1"), runs("v1.13.9", "v1.32.4")},
	} {
		_, err = NewPlan(fits.declared, fits.running)
		require.NoError(t, err)
	}
	changed := with("v1.13.9", "v1.32.4")[1:]
	for _, node := range changed { // the others follow once this one runs
		node.Images[APIServer] = "x/kube-apiserver:v1.33.1"
	}
	_, err = NewPlan(declared("v1.13.9", "v1.33.1"), changed)
	require.NoError(t, err)
}

// Going back is refused by then, so that nothing would ever correct the argument. The run leaves it to the configurations.
func TestPlan_RefusesNoArgumentOnceMoreThanAPIServersHaveTheNewRelease(t *testing.T) {
	has, err := configloader.NewFromBytes([]byte(`
version: v1alpha1
machine: {type: worker, kubelet: {extraArgs: {feature-gates: AppArmor=true}}}
`))
	require.NoError(t, err)
	running := runs("v1.13.9", "v1.32.4")
	running[0].Configuration = has
	for _, component := range []Component{APIServer, ControllerManager} {
		_, err = NewPlan(declared("v1.13.9", "v1.33.1"), running)
		require.ErrorContains(t, err, "remove it while kubernetes.version is v1.32.4")
		running[1].Images[component] = "x/" + string(component) + ":v1.33.1"
	}
	_, err = NewPlan(declared("v1.13.9", "v1.33.1"), running)
	require.NoError(t, err)
}

func TestPlan_GoesBackWhileOnlyAPIServersHaveTheNewRelease(t *testing.T) {
	begun := func(components ...Component) []Running {
		running := runs("v1.12.7", "v1.34.2")
		for _, component := range components {
			running[1].Images[component] = "x/" + string(component) + ":v1.35.8"
		}
		return running
	}
	plan, err := NewPlan(declared("v1.12.7", "v1.34.2"), begun(APIServer))
	require.NoError(t, err)
	assert.True(t, plan.Back)
	assert.Equal(t, "kube-apiserver on cp-1", plan.String())

	_, err = NewPlan(declared("v1.12.7", "v1.34.2"), begun(APIServer, ControllerManager))
	require.ErrorContains(t, err, "downgrades are not made")
	_, err = NewPlan(declared("v1.12.7", "v1.34.1"), begun(APIServer))
	require.ErrorContains(t, err, "downgrades are not made")
	plan, err = NewPlan(declared("v1.12.7", "v1.35.8"), begun(APIServer))
	require.NoError(t, err)
	assert.False(t, plan.Back)
}

func TestPlan_ReportsAllReasonsTogether(t *testing.T) {
	_, err := NewPlan(declared("v1.12.6", "v1.35.7"), runs("v1.12.7", "v1.35.8"))
	require.ErrorContains(t, err, "talos.version: ")
	require.ErrorContains(t, err, "kubernetes.version: ")
}

func TestWithVersion_KeepsRepositoryAndFlavour(t *testing.T) {
	for image, want := range map[string]string{
		"registry.k8s.io/kube-apiserver:v1.34.2":          "registry.k8s.io/kube-apiserver:v1.35.8",
		"mirror.example.com:5000/kubelet:v1.34.2-fat":     "mirror.example.com:5000/kubelet:v1.35.8-fat",
		"registry.k8s.io/kube-apiserver:v1.34.2@sha256:a": "registry.k8s.io/kube-apiserver:v1.35.8",
	} {
		version, err := ImageVersion(image)
		require.NoError(t, err)
		assert.Equal(t, "v1.34.2", version)
		assert.Equal(t, want, WithVersion(image, "v1.35.8"))
	}
	_, err := ImageVersion("mirror.example.com:5000/kubelet")
	require.Error(t, err)
}
