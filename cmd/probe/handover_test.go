package probe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/engines/flux/handover"
	"github.com/slipway-platform/slipway/tests/fakes/fakecluster"
)

const (
	instances      = "apis/fluxcd.controlplane.io/v1/fluxinstances"
	gitSources     = "apis/source.toolkit.fluxcd.io/v1/gitrepositories"
	helmSources    = "apis/source.toolkit.fluxcd.io/v1/helmrepositories"
	ociSources     = "apis/source.toolkit.fluxcd.io/v1/ocirepositories"
	buckets        = "apis/source.toolkit.fluxcd.io/v1/buckets"
	kustomizations = "apis/kustomize.toolkit.fluxcd.io/v1/kustomizations"
	releases       = "apis/helm.toolkit.fluxcd.io/v2/helmreleases"
	revision       = "refs/heads/main@sha1:1111111111111111111111111111111111111111"
)

const ready = `conditions: [{type: Ready, status: "True", reason: Succeeded, message: done}]`

func putFlux(t *testing.T, kube *fakecluster.Kube) {
	kube.Serves(instances, gitSources, helmSources, ociSources, buckets, kustomizations, releases)
	kube.Serves(fakecluster.Deployments, fakecluster.StatefulSets, fakecluster.DaemonSets, fakecluster.Pods, fakecluster.Events)
	putController(t, kube, "flux-system", "source-controller", podReady)
	putController(t, kube, "podinfo", "podinfo", podReady)
	kube.Put(t, instances, `{apiVersion: fluxcd.controlplane.io/v1, kind: FluxInstance,
  metadata: {name: flux, namespace: flux-system, generation: 1}, status: {`+ready+`}}`)
	kube.Put(t, gitSources, `{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository,
  metadata: {name: flux-system, namespace: flux-system, generation: 2},
  spec: {url: "https://git.home.arpa/platform/slipway.git", ref: {name: refs/heads/main}},
  status: {observedGeneration: 2, artifact: {revision: "`+revision+`"}, `+ready+`}}`)
	kube.Put(t, helmSources, `{apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository,
  metadata: {name: charts, namespace: flux-system, generation: 1, labels: {
    kustomize.toolkit.fluxcd.io/name: infrastructure, kustomize.toolkit.fluxcd.io/namespace: flux-system}},
  spec: {type: oci, url: "oci://x"}}`)
	putKustomization(t, kube, "flux-system", "", "./kubernetes/clusters/infra", revision, "infrastructure")
	putKustomization(t, kube, "infrastructure", "flux-system", "./kubernetes/infrastructure", revision, "")
}

// putController installs a Deployment of Flux with one pod of that status.
func putController(t *testing.T, kube *fakecluster.Kube, namespace, name, status string) {
	kube.Put(t, fakecluster.Deployments, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment,
  metadata: {name: %[1]s, namespace: %[2]s, generation: 1, labels: {app.kubernetes.io/part-of: flux}},
  spec: {replicas: 1, selector: {matchLabels: {app: %[1]s}}},
  status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1}}`, name, namespace))
	kube.Put(t, fakecluster.Pods, fmt.Sprintf(`{apiVersion: v1, kind: Pod,
  metadata: {name: %[1]s-5d8f, namespace: %[2]s, labels: {app: %[1]s}},
  spec: {nodeName: cp-1, containers: [{name: manager, image: "x:1"}]}, status: {%[3]s}}`, name, namespace, status))
}

func putKustomization(t *testing.T, kube *fakecluster.Kube, name, owner, path, revision, child string) {
	labels, inventory := "{}", ""
	if owner != "" {
		labels = fmt.Sprintf("{kustomize.toolkit.fluxcd.io/name: %s, kustomize.toolkit.fluxcd.io/namespace: flux-system}", owner)
	}
	if child != "" {
		inventory = fmt.Sprintf("inventory: {entries: ["+
			"{id: flux-system_%s_kustomize.toolkit.fluxcd.io_Kustomization, v: v1}, {id: _some-namespace__Namespace, v: v1}]},", child)
	}
	kube.Put(t, kustomizations,
		fmt.Sprintf(`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization,
  metadata: {name: %s, namespace: flux-system, generation: 1, labels: %s},
  spec: {path: %s, sourceRef: {kind: GitRepository, name: flux-system}},
  status: {observedGeneration: 1, lastAppliedRevision: "%s", %s %s}}`, name, labels, path, revision, inventory, ready))
}

func handoverSpec(t *testing.T, kube *fakecluster.Kube, timeout time.Duration) string {
	return encode(t, &handover.Spec{
		Target: targetOf(kube, timeout),
		URL:    "https://git.home.arpa/platform/slipway.git", Ref: "main", Path: "kubernetes/clusters/infra",
	})
}

func TestHandover_EndsWithTheAppliedRevision(t *testing.T) {
	t.Parallel()
	kube := fakecluster.NewKube(t)
	putFlux(t, kube)
	code, report, progress := execute(t, handoverSpec(t, kube, 20*time.Second), "handover")
	assert.Equal(t, exitOpen, code, progress)
	assert.Equal(t, revision, report.Revision)
}

func TestHandover_ReadsAnArtifactAndABucketAsFluxHasThem(t *testing.T) {
	t.Parallel()
	for kind, source := range map[string]struct{ path, spec, url, ref string }{
		handover.OCIRepository: {ociSources, `{url: "oci://registry.home.arpa/a", ref: {tag: production}}`,
			"oci://registry.home.arpa/a", "production"},
		handover.Bucket: {buckets, `{endpoint: "s3.home.arpa:9000", bucketName: platform}`, "s3.home.arpa:9000", "platform"},
	} {
		kube := fakecluster.NewKube(t)
		putFlux(t, kube)
		kube.Put(t, source.path, `{apiVersion: source.toolkit.fluxcd.io/v1, kind: `+kind+`,
  metadata: {name: flux-system, namespace: flux-system, generation: 1}, spec: `+source.spec+`,
  status: {observedGeneration: 1, artifact: {revision: "`+revision+`"}, `+ready+`}}`)
		kubeconfig := saved(t, "kubeconfig", kube.Config)
		arguments := []string{"handover", "--kubeconfig", kubeconfig, "--once", "--source-kind", kind, "--ref", source.ref}
		code, _, progress := execute(t, "", append(arguments, "--url", source.url)...)
		assert.Equal(t, exitOpen, code, progress)
		code, report, _ := execute(t, "", append(arguments, "--url", "oci://other.example.com/x")...)
		assert.Equal(t, exitUnhealthy, code)
		assert.Contains(t, report.Problems[0].Reason, "follows "+source.url+" instead of oci://other.example.com/x")
	}
}

func TestHandover_WaitsUntilFluxIsInstalled(t *testing.T) {
	t.Parallel()
	kube := fakecluster.NewKube(t)
	installs := &until{text: "does not know fluxinstances", then: func() { putFlux(t, kube) }}
	code, _, progress := executeUntil(t, installs, handoverSpec(t, kube, 20*time.Second), "handover")
	assert.Equal(t, exitOpen, code, progress)
	assert.Contains(t, progress, "does not know fluxinstances.fluxcd.controlplane.io yet")
}

func TestHandover_ShowsTheSourcesMessageWhenGitRefuses(t *testing.T) {
	t.Parallel()
	kube := fakecluster.NewKube(t)
	putFlux(t, kube)
	kube.Put(t, gitSources, `{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository,
  metadata: {name: flux-system, namespace: flux-system, generation: 2},
  spec: {url: "https://git.home.arpa/platform/slipway.git", ref: {branch: main}},
  status: {observedGeneration: 2, conditions: [{type: Ready, status: "False", reason: GitOperationFailed,
    message: "authentication required: Unauthorized"}]}}`)
	code, report, progress := execute(t, handoverSpec(t, kube, 20*time.Second), "handover", "--once")
	assert.Equal(t, exitUnhealthy, code, progress)
	require.NotEmpty(t, report.Problems)
	assert.Equal(t, "GitRepository flux-system/flux-system", report.Problems[0].Subject)
	assert.Contains(t, report.Problems[0].Reason, "authentication required")
	assert.Contains(t, progress, "authentication required", "it is printed during the wait, so that it can be repaired")
}

func TestHandover_NamesThePodThatAKustomizationWaitsFor(t *testing.T) {
	t.Parallel()
	kube := fakecluster.NewKube(t)
	putFlux(t, kube)
	putController(t, kube, "podinfo", "podinfo", podPulling)
	kube.Put(t, kustomizations, `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization,
  metadata: {name: infrastructure, namespace: flux-system, generation: 1, labels: {
    kustomize.toolkit.fluxcd.io/name: flux-system, kustomize.toolkit.fluxcd.io/namespace: flux-system}},
  spec: {path: ./kubernetes/infrastructure, sourceRef: {kind: GitRepository, name: flux-system}},
  status: {observedGeneration: 1, inventory: {entries: [{id: podinfo_podinfo_apps_Deployment, v: v1}]}, conditions: [
    {type: Reconciling, status: "True", reason: Progressing, message: "Running health checks for revision x with a timeout of 4m30s"},
    {type: Ready, status: Unknown, reason: Progressing, message: "Reconciliation in progress"}]}}`)
	code, report, progress := execute(t, handoverSpec(t, kube, 20*time.Second), "handover", "--once")
	assert.Equal(t, exitUnhealthy, code, progress)
	require.Len(t, report.Problems, 1)
	assert.Equal(t, "Ready is Unknown: Progressing: Running health checks for revision x with a timeout of 4m30s; "+
		"Deployment podinfo/podinfo: 0 of 1 pods are Ready; pod podinfo/podinfo-5d8f is Pending, not Ready: coredns is in ImagePullBackOff",
		report.Problems[0].Reason)
	assert.Equal(t, "kubectl --context fake -n podinfo describe pod podinfo-5d8f", report.Problems[0].Command)
	assert.Contains(t, strings.Join(report.Problems[0].Evidence, "\n"), "container coredns: waiting: ImagePullBackOff: back-off")
}

func TestHandover_OpensWhileTheRevisionMoves(t *testing.T) {
	t.Parallel()
	kube := fakecluster.NewKube(t)
	putFlux(t, kube)
	putKustomization(t, kube, "infrastructure", "flux-system", "./kubernetes/infrastructure", "", "")
	pushed := &until{text: "has applied nothing", then: func() {
		kube.Put(t, gitSources, `{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository,
  metadata: {name: flux-system, namespace: flux-system, generation: 2},
  spec: {url: "https://git.home.arpa/platform/slipway.git", ref: {name: refs/heads/main}},
  status: {observedGeneration: 2, artifact: {revision: "refs/heads/main@sha1:2222"}, `+ready+`}}`)
		putKustomization(t, kube, "infrastructure", "flux-system", "./kubernetes/infrastructure", revision, "")
	}}
	code, report, progress := executeUntil(t, pushed, handoverSpec(t, kube, 20*time.Second), "handover")
	assert.Equal(t, exitOpen, code, progress)
	assert.Equal(t, revision, report.Revision, "the source is ahead of what is applied, which was fetched since the wait began")
}

func TestHandover_ByHandLooksOnceAndHasTheOutputsOfTheOthers(t *testing.T) {
	t.Parallel()
	kube := fakecluster.NewKube(t)
	putFlux(t, kube)
	putKustomization(t, kube, "flux-system", "", "./kubernetes/clusters/infra", "", "infrastructure")
	kubeconfig := saved(t, "kubeconfig", kube.Config)
	start := time.Now()
	code, report, _ := execute(t, "", "handover", "--kubeconfig", kubeconfig, "--once")
	assert.Equal(t, exitUnhealthy, code)
	assert.Less(t, time.Since(start), time.Minute, "it does not wait for the timeout, ten minutes")
	assert.Len(t, report.Results, 6)
	code, _, said := execute(t, "", "handover", "--kubeconfig", kubeconfig, "-o", "yaml")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, said, `"yaml" is not a form`)
}
