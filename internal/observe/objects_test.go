package observe

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/internal/engines/flux/handover"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	json, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON(json))
	return u
}

func TestKubeNode_ReadsConditionAndTaints(t *testing.T) {
	node, err := kubeNode(nil, object(t, `
apiVersion: v1
kind: Node
metadata: {name: infra-worker-1}
spec: {taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}]}
status:
  conditions:
  - {type: MemoryPressure, status: "False"}
  - {type: Ready, status: "False", reason: KubeletNotReady, message: cni plugin not initialized}
`))
	require.NoError(t, err)
	assert.Equal(t, gate.Node{Name: "infra-worker-1", Ready: "False", Reason: "KubeletNotReady", Message: "cni plugin not initialized",
		Taints: []string{"node.kubernetes.io/not-ready:NoSchedule"}}, node)
}

func TestKubePod_ReadsContainerStatesAndDeclaredImages(t *testing.T) {
	pod, err := kubePod(nil, object(t, `
apiVersion: v1
kind: Pod
metadata: {name: cilium-x, namespace: kube-system, deletionTimestamp: "2026-01-01T00:00:00Z"}
spec:
  nodeName: infra-cp-1
  initContainers: [{name: config, image: "cilium:v1"}]
  containers: [{name: cilium-agent, image: "cilium:v2"}, {name: sidecar, image: "sidecar:v3"}]
status:
  phase: Pending
  conditions: [{type: Ready, status: "False"}, {type: PodScheduled, status: "False", message: no node matches}]
  initContainerStatuses:
  - {name: config, ready: false, restartCount: 2, image: resolved, imageID: "",
     state: {waiting: {reason: ImagePullBackOff, message: "not found\n"}}, lastState: {terminated: {exitCode: 1, reason: Error}}}
  containerStatuses:
  - {name: cilium-agent, ready: false, restartCount: 0, image: resolved, imageID: "", state: {running: {}}}
`))
	require.NoError(t, err)
	assert.Equal(t, kube.Pod{
		Namespace: "kube-system", Name: "cilium-x", Node: "infra-cp-1", Phase: "Pending", Deleting: true, Unscheduled: "no node matches",
		Containers: []kube.Container{
			{Name: "config", Image: "cilium:v1", Init: true, State: "waiting: ImagePullBackOff: not found", Last: "terminated: Error: exit code 1",
				Restarts: 2},
			{Name: "cilium-agent", Image: "cilium:v2", State: "running, not ready"},
			{Name: "sidecar", Image: "sidecar:v3"},
		},
	}, pod)
}

// With terminationMessagePolicy FallbackToLogsOnError, as Cilium's containers have it, the message is the end of the container's log.
func TestKubePod_HidesWhatMayBeASecretInMessagesOfContainers(t *testing.T) {
	pod, err := kubePod(nil, object(t, `
apiVersion: v1
kind: Pod
metadata: {name: shop-x, namespace: shop}
status:
  containerStatuses:
  - {name: shop, ready: false, restartCount: 2, image: shop, imageID: "",
     state: {waiting: {reason: ErrImagePull, message: "Get https://robot:hunter2@registry.home.arpa/v2/: denied"}},
     lastState: {terminated: {exitCode: 1, reason: Error, message: "starting\ndial postgres://shop:hunter2@db: refused\n"}}}
`))
	require.NoError(t, err)
	assert.Equal(t, []kube.Container{{
		Name: "shop", Image: "shop", Restarts: 2, State: "waiting: ErrImagePull: Get https://robot:(hidden)@registry.home.arpa/v2/: denied",
		Last: "terminated: Error: exit code 1: starting\ndial postgres://shop:(hidden)@db: refused",
	}}, pod.Containers)
}

func TestWorkload_ReadsTheRolloutOfDaemonSetsAndDeployments(t *testing.T) {
	set, err := workload(object(t, `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: cilium, namespace: kube-system, generation: 3,
  annotations: {deprecated.daemonset.template.generation: "2"}},
  status: {observedGeneration: 2, desiredNumberScheduled: 5, updatedNumberScheduled: 1}}`))
	require.NoError(t, err)
	assert.Equal(t, kube.Workload{Kind: "DaemonSet", Namespace: "kube-system", Name: "cilium", Generation: "2", Desired: 5,
		Updated: 1}, set)
	deployment, err := workload(object(t,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: cilium-operator, namespace: kube-system, generation: 2},
  spec: {replicas: 2, template: {spec: {nodeSelector: {kubernetes.io/os: linux}, tolerations: [{key: example.com/a, operator: Exists}]}}},
  status: {observedGeneration: 2, updatedReplicas: 1}}`))
	require.NoError(t, err)
	assert.Equal(t, kube.Workload{Kind: "Deployment", Namespace: "kube-system", Name: "cilium-operator", Observed: true, Desired: 2,
		Updated: 1, NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
		Tolerations: []corev1.Toleration{{Key: "example.com/a", Operator: "Exists"}}}, deployment)
	_, err = workload(object(t, `{apiVersion: v1, kind: Pod, metadata: {name: x}}`))
	assert.Error(t, err)
	for strategy, onDelete := range map[string]bool{"OnDelete": true, "RollingUpdate": false} {
		set, err := workload(object(t, `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x},
  spec: {updateStrategy: {type: `+strategy+`}}}`))
		require.NoError(t, err)
		assert.Equal(t, onDelete, set.OnDelete, strategy)
	}
}

func TestParseCiliumHealth_ReadsBothPathsOfEachNode(t *testing.T) {
	peers, err := parseCiliumHealth([]byte(`{"local":{"name":"infra/a"},"nodes":[
  {"name":"infra/a","host":{"primary-address":{"ip":"10.25.11.11","icmp":{"latency":1,"status":""},"http":{"latency":1,"status":""}}},
    "health-endpoint":{"primary-address":{"ip":"10.244.0.9","icmp":{"latency":1},"http":{"latency":1}}}},
  {"name":"b","host":{"primary-address":{"ip":"10.25.11.12","icmp":{"status":"Connection timed out"},"http":{}}},
    "health-endpoint":{"primary-address":{"ip":"10.244.1.9","icmp":{},"http":{"status":"connection refused"}}}},
  {"name":"c","host":{"primary-address":{"ip":"10.25.11.13"}}},
  {"name":"d","host":{"primary-address":{"ip":"10.25.11.14","icmp":{},"http":{}},
    "secondary-addresses":[{"ip":"fd00::14","http":{"status":"no route"}}]},
    "health-endpoint":{"primary-address":{"ip":"10.244.3.9","icmp":{},"http":{}}}}]}`), nil)
	require.NoError(t, err)
	assert.Equal(t, map[string]gate.CiliumPeer{
		"a": {},
		"b": {Host: "ICMP to 10.25.11.12: Connection timed out", Endpoint: "HTTP to 10.244.1.9: connection refused"},
		"c": {Host: "10.25.11.13 not probed yet", Endpoint: "not probed yet"},
		"d": {Host: "HTTP to fd00::14: no route"},
	}, peers)
	_, err = parseCiliumHealth([]byte("Probe time: 2026"), nil)
	assert.Error(t, err)
}

func TestFluxObject_ReadsTheStatusOfItsNewestSpecOnly(t *testing.T) {
	seen, err := fluxObject(object(t, `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: apps
  namespace: flux-system
  generation: 2
  labels: {kustomize.toolkit.fluxcd.io/name: flux-system, kustomize.toolkit.fluxcd.io/namespace: flux-system}
spec: {path: ./apps, suspend: true, sourceRef: {kind: GitRepository, name: flux-system}}
status:
  observedGeneration: 1
  lastAppliedRevision: main@sha1:1
  conditions: [{type: Ready, status: "True", reason: ReconciliationSucceeded, message: Applied, observedGeneration: 1}]
  inventory: {entries: [{id: flux-system_a_helm.toolkit.fluxcd.io_HelmRelease, v: v2}, {id: _ns__Namespace, v: v1},
    {id: x_y_apps.example.org_Kustomization, v: v1}]}
`))
	require.NoError(t, err)
	assert.Equal(t, handover.Object{
		Kind: "Kustomization", Namespace: "flux-system", Name: "apps", Owner: "flux-system/flux-system", Suspended: true, Ready: "True",
		Reason: "ReconciliationSucceeded", Message: "Applied", Revision: "main@sha1:1", Source: "GitRepository flux-system/flux-system",
		Path:      "./apps",
		Inventory: []string{"HelmRelease flux-system/a"},
	}, seen)
}

func TestFluxObject_IsBehindUntilItHasActedOnARequestToReconcile(t *testing.T) {
	for handled, current := range map[string]bool{"": false, ", lastHandledReconcileAt: a": false, ", lastHandledReconcileAt: b": true} {
		seen, err := fluxObject(object(t, `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system, generation: 1, annotations: {reconcile.fluxcd.io/requestedAt: b}}
status: {observedGeneration: 1, conditions: [{type: Ready, status: "True", observedGeneration: 1}]`+handled+`}
`))
		require.NoError(t, err)
		assert.Equal(t, current, seen.Current, handled)
	}
}

func TestFluxObject_IsBeingDeletedWhileAFinalizerKeepsIt(t *testing.T) {
	seen, err := fluxObject(object(t, `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: a, generation: 2,
  deletionTimestamp: "2026-11-30T10:00:00Z", finalizers: [finalizers.fluxcd.io]}, status: {observedGeneration: 1}}`))
	require.NoError(t, err)
	assert.True(t, seen.Deleting)
}

func TestFluxObject_ReadsObjectsOfFluxOperatorAndWhatTheyApply(t *testing.T) {
	set, err := fluxObject(object(t, `{apiVersion: fluxcd.controlplane.io/v1, kind: ResourceSet,
  metadata: {name: shops, namespace: flux-system, annotations: {fluxcd.controlplane.io/reconcile: Disabled}}}`))
	require.NoError(t, err)
	assert.True(t, set.Suspended)
	instance, err := fluxObject(object(t, `{apiVersion: fluxcd.controlplane.io/v1, kind: FluxInstance,
  metadata: {name: flux, namespace: flux-system, annotations: {fluxcd.controlplane.io/reconcile: disabled}}}`))
	require.NoError(t, err)
	assert.True(t, instance.Suspended)
	release, err := fluxObject(object(t, `{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: shop, namespace: shop,
  labels: {resourceset.fluxcd.controlplane.io/name: shops, resourceset.fluxcd.controlplane.io/namespace: flux-system}}}`))
	require.NoError(t, err)
	assert.Equal(t, "ResourceSet flux-system/shops", release.Owner)
	assert.Equal(t, "ResourceSet flux-system/shops", inventoryTitle("flux-system_shops_fluxcd.controlplane.io_ResourceSet"))
}

func TestFluxObject_AnOCIHelmRepositoryIsAlwaysReady(t *testing.T) {
	seen, err := fluxObject(object(t,
		`{apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: a, namespace: b, generation: 1}, spec: {type: oci}}`))
	require.NoError(t, err)
	assert.True(t, seen.Current)
	assert.Equal(t, "True", seen.Ready)
}

func TestKubeNode_CountsHowOftenReadyWasLost(t *testing.T) {
	node := &gate.Node{}
	for i, ready := range []string{"True", "False", "Unknown", "True", "Unknown"} {
		next, err := kubeNode(node,
			object(t, `{apiVersion: v1, kind: Node, metadata: {name: a}, spec: {unschedulable: true, podCIDRs: [10.244.1.0/24]},
  status: {addresses: [{type: Hostname, address: a}, {type: InternalIP, address: 10.25.11.11}, {type: InternalIP, address: "fd00::11"}],
    conditions: [{type: Ready, status: "`+ready+`"}]}}`))
		require.NoError(t, err)
		assert.Equal(t, []int{0, 1, 1, 1, 2}[i], next.Lost)
		assert.Equal(t, []netip.Addr{netip.MustParseAddr("10.25.11.11"), netip.MustParseAddr("fd00::11")}, next.Addresses)
		assert.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")}, next.PodCIDRs)
		assert.True(t, next.Cordoned)
		node = &next
	}
}

func TestRanges_AreReadFromCiliumNodesAndServiceCIDRs(t *testing.T) {
	node, err := ciliumNode(object(t,
		`{apiVersion: cilium.io/v2, kind: CiliumNode, metadata: {name: a}, spec: {ipam: {podCIDRs: [10.244.1.0/24]}}}`))
	require.NoError(t, err)
	assert.Equal(t, gate.Ranges{Name: "a", CIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")}}, node)
	services, err := serviceCIDR(object(t,
		`{apiVersion: networking.k8s.io/v1, kind: ServiceCIDR, metadata: {name: kubernetes}, spec: {cidrs: [10.245.0.0/16]}}`))
	require.NoError(t, err)
	assert.Equal(t, gate.Ranges{Name: "kubernetes", CIDRs: []netip.Prefix{netip.MustParsePrefix("10.245.0.0/16")}}, services)
	config, err := settings(object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cilium-config}, data: {cluster-id: "1"}}`))
	require.NoError(t, err)
	assert.Equal(t, gate.Settings{"cluster-id": "1"}, config)
}

func TestKubeNode_DistinguishesANewNodeAndOneThatWasLostJustNow(t *testing.T) {
	now := time.Now()
	at := func(ago time.Duration) string { return now.Add(-ago).UTC().Format(time.RFC3339) }
	for name, c := range map[string]struct {
		status              string
		created, transition time.Duration
		lost                int
	}{
		"new":            {"False", 30 * time.Second, 29 * time.Second, 0},
		"lost just now":  {"False", time.Hour, 3 * time.Second, 1},
		"not heard of":   {"Unknown", time.Hour, 30 * time.Second, 1},
		"lost long ago":  {"False", time.Hour, 10 * time.Minute, 0},
		"Ready just now": {"True", time.Hour, 3 * time.Second, 0},
	} {
		node, err := kubeNode(nil, object(t, `{apiVersion: v1, kind: Node, metadata: {name: a, creationTimestamp: "`+at(c.created)+`"},
  status: {conditions: [{type: Ready, status: "`+c.status+`",
    lastTransitionTime: "`+at(c.transition)+`", lastHeartbeatTime: "`+at(time.Second)+`"}]}}`))
		require.NoError(t, err)
		assert.Equal(t, c.lost, node.Lost, name)
		assert.WithinDuration(t, now, node.Reported, 5*time.Second)
	}
}
