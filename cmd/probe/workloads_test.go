package probe

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health/workloads"
	"github.com/slipway-platform/slipway/tests/fakes/fakecluster"
)

const certificates = "apis/cert-manager.io/v1/certificates"

// putDNS installs a release with one Deployment of two pods. second is the status of the second pod.
func putDNS(t *testing.T, kube *fakecluster.Kube, second string) {
	kube.Serves(fakecluster.StatefulSets, fakecluster.DaemonSets, fakecluster.Events)
	kube.Put(t, fakecluster.Deployments,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: coredns, namespace: kube-system, generation: 3,
  annotations: {meta.helm.sh/release-name: coredns}}, spec: {replicas: 2, selector: {matchLabels: {k8s-app: kube-dns}}},
  status: {observedGeneration: 3, replicas: 2, updatedReplicas: 2}}`)
	kube.Put(t, fakecluster.Deployments,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: other, namespace: kube-system, generation: 3},
  spec: {replicas: 2}, status: {observedGeneration: 1}}`)
	putPod(t, kube, "a", podReady)
	putPod(t, kube, "b", second)
}

func putPod(t *testing.T, kube *fakecluster.Kube, name, status string) {
	kube.Put(t, fakecluster.Pods,
		fmt.Sprintf(`{apiVersion: v1, kind: Pod,
  metadata: {name: coredns-%s, namespace: kube-system, labels: {k8s-app: kube-dns, pod-template-hash: x}},
  spec: {nodeName: cp-1, containers: [{name: coredns, image: "coredns/coredns:1.13.1"}]}, status: {%s}}`, name, status))
}

const (
	podReady   = `conditions: [{type: Ready, status: "True"}], phase: Running`
	podPulling = `phase: Pending, containerStatuses: [{name: coredns, state: {waiting: {reason: ImagePullBackOff, message: back-off}}}]`
)

func workloadsSpec(t *testing.T, kube *fakecluster.Kube, timeout time.Duration, accepts ...workloads.Sample) string {
	return encode(t, &workloads.Spec{
		Target:   targetOf(kube, timeout),
		Releases: []workloads.Release{{Namespace: "kube-system", Name: "coredns"}}, Accepts: accepts,
	})
}

func TestWorkloads_OpensOnceEveryPodIsReady(t *testing.T) {
	t.Parallel()
	kube := fakecluster.NewKube(t)
	putDNS(t, kube, podPulling)
	pulled := &until{text: "1 of 2 pods are Ready", then: func() { putPod(t, kube, "b", podReady) }}
	code, report, progress := executeUntil(t, pulled, workloadsSpec(t, kube, 20*time.Second), "workloads")
	assert.Equal(t, exitOpen, code, progress)
	assert.Contains(t, progress, "1 of 2 pods are Ready", "it prints what it waits for")
	assert.Equal(t, "workloads", report.Kind)
	assert.Less(t, time.Duration(report.Since), time.Second)
}

func TestWorkloads_NamesThePodAndWhatItsContainerWaitsFor(t *testing.T) {
	t.Parallel()
	kube := fakecluster.NewKube(t)
	putDNS(t, kube, podPulling)
	code, report, progress := execute(t, workloadsSpec(t, kube, 20*time.Second), "workloads", "--once")
	assert.Equal(t, exitUnhealthy, code, progress)
	require.Len(t, report.Problems, 1, "the Deployment of no release is not judged")
	problem := report.Problems[0]
	assert.Equal(t, "Deployment kube-system/coredns", problem.Subject)
	assert.Equal(t, "1 of 2 pods are Ready; pod kube-system/coredns-b is Pending, not Ready: coredns is in ImagePullBackOff", problem.Reason)
	assert.Contains(t, problem.Evidence, "container coredns: waiting: ImagePullBackOff: back-off")
	assert.Contains(t, problem.Command, "--context")
	assert.Contains(t, problem.Command, "describe pod coredns-b")
}

func TestWorkloads_AReleaseWithoutWorkloadsFails(t *testing.T) {
	t.Parallel()
	kube := fakecluster.NewKube(t)
	kube.Serves(fakecluster.Deployments, fakecluster.StatefulSets, fakecluster.DaemonSets, fakecluster.Pods)
	code, report, _ := execute(t, workloadsSpec(t, kube, 20*time.Second), "workloads", "--once")
	assert.Equal(t, exitUnhealthy, code)
	require.Len(t, report.Problems, 1)
	assert.Equal(t, "release kube-system/coredns", report.Problems[0].Subject)
	assert.Equal(t, "has no Deployment, StatefulSet or DaemonSet", report.Problems[0].Reason)
}

func TestWorkloads_WaitsUntilTheAPIAcceptsASampleAndCreatesNothing(t *testing.T) {
	t.Parallel()
	kube := fakecluster.NewKube(t)
	putDNS(t, kube, podReady)
	const why = `failed calling webhook "webhook.cert-manager.io": x509: certificate signed by unknown authority`
	kube.Refuse(certificates, why)
	repaired := &until{text: "is refused: " + why, then: func() { kube.Refuse(certificates, "") }}
	code, _, progress := executeUntil(t, repaired, workloadsSpec(t, kube, 20*time.Second, certificate()), "workloads")
	assert.Equal(t, exitOpen, code, progress)
	assert.Contains(t, progress, "Certificate cert-manager/sample: the API accepts the kinds that the releases serve: is refused: "+why)
	for request := range kube.Requests() {
		assert.Contains(t, []string{
			"GET readyz", "GET " + fakecluster.Deployments, "GET " + fakecluster.StatefulSets, "GET " + fakecluster.DaemonSets,
			"GET " + fakecluster.Pods,
			"POST " + certificates, // the fake refuses all but dry runs
		}, request)
	}
}

func certificate() workloads.Sample {
	return workloads.Sample{Resource: "certificates", Object: json.RawMessage(
		`{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"namespace":"cert-manager","name":"sample"}}`)}
}

func TestWorkloads_ByHandTakeReleasesFromFlags(t *testing.T) {
	t.Parallel()
	kube := fakecluster.NewKube(t)
	putDNS(t, kube, podReady)
	kubeconfig := saved(t, "kubeconfig", kube.Config)
	code, _, progress := execute(t, "", "workloads", "--kubeconfig", kubeconfig, "--release", "kube-system/coredns", "--timeout", "10s")
	assert.Equal(t, exitOpen, code, progress)
	putPod(t, kube, "b", podPulling)
	start := time.Now()
	code, report, _ := execute(t, "", "workloads", "--kubeconfig", kubeconfig, "--release", "kube-system/coredns", "--once")
	assert.Equal(t, exitUnhealthy, code)
	assert.Less(t, time.Since(start), 10*time.Second, "it does not wait")
	assert.Len(t, report.Results, 3, "what passed is there, too")
	assert.Contains(t, report.Problems[0].Command, "kubectl --kubeconfig "+kubeconfig)

	code, _, said := execute(t, "", "workloads", "--kubeconfig", kubeconfig, "--release", "coredns")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, said, "NAMESPACE/NAME")
	code, _, said = execute(t, "", "workloads", "--kubeconfig", kubeconfig)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, said, "releases: is empty")
}

func TestWorkloads_WaitUntilAControllerHasActedOnAnObject(t *testing.T) {
	t.Parallel()
	kube := fakecluster.NewKube(t)
	putDNS(t, kube, podReady)
	const sealedSecrets = "apis/bitnami.com/v1alpha1/sealedsecrets"
	put := func(status string) {
		kube.Put(t, sealedSecrets, fmt.Sprintf(`{apiVersion: bitnami.com/v1alpha1, kind: SealedSecret,
  metadata: {name: sample, namespace: kube-system, generation: 2}, status: {%s}}`, status))
	}
	put(`observedGeneration: 2, conditions: [{type: Synced, status: "False", message: no key could decrypt secret (value)}]`)
	spec := encode(t, &workloads.Spec{
		Target:   targetOf(kube, 20*time.Second),
		Releases: []workloads.Release{{Namespace: "kube-system", Name: "coredns"}},
		Awaits: []workloads.Awaited{{
			Group: "bitnami.com", Version: "v1alpha1", Resource: "sealedsecrets", Kind: "SealedSecret", Namespace: "kube-system",
			Name: "sample", Condition: "Synced",
		}},
	})
	repaired := &until{text: "Synced is False: no key could decrypt secret (value)", then: func() {
		put(`observedGeneration: 2, conditions: [{type: Synced, status: "True"}]`)
	}}
	code, _, progress := executeUntil(t, repaired, spec, "workloads")
	assert.Equal(t, exitOpen, code, progress)
}
