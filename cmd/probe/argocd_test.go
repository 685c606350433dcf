package probe

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/internal/engines/argocd/handover"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/tests/fakes/fakecluster"
)

const (
	applications = "apis/argoproj.io/v1alpha1/applications"
	appProjects  = "apis/argoproj.io/v1alpha1/appprojects"
	commit       = "1111111111111111111111111111111111111111"
)

// argoRig is a cluster in which Argo CD has applied everything.
type argoRig struct {
	*fakecluster.Kube

	mu    sync.Mutex
	asked map[string]int // how often each Application was asked to compare anew
}

func newArgoRig(t *testing.T) *argoRig {
	r := &argoRig{Kube: fakecluster.NewKube(t)}
	r.install(t)
	return r
}

// install installs Argo CD with a root Application and one below it. Its controller answers requests to compare anew at once.
func (r *argoRig) install(t *testing.T) {
	r.asked = map[string]int{}
	r.Serves(fakecluster.Deployments, fakecluster.StatefulSets, fakecluster.DaemonSets, fakecluster.Pods, fakecluster.Events)
	putController(t, r.Kube, "podinfo", "podinfo", podReady)
	r.Put(t, fakecluster.StatefulSets, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: argocd-application-controller,
  namespace: argocd, generation: 1, labels: {app.kubernetes.io/part-of: argocd}},
  spec: {replicas: 1, selector: {matchLabels: {app: argocd-application-controller}}},
  status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1}}`)
	r.controller(t, podReady)
	r.Put(t, appProjects, `{apiVersion: argoproj.io/v1alpha1, kind: AppProject, metadata: {name: default, namespace: argocd}}`)
	r.putApp(t, "root", "kubernetes/clusters/infra", "Synced", "Healthy",
		`resources: [{group: argoproj.io, kind: Application, namespace: argocd, name: podinfo, status: Synced}]`)
	r.putApp(t, "podinfo", "kubernetes/apps/podinfo", "Synced", "Healthy",
		`resources: [{group: apps, kind: Deployment, namespace: podinfo, name: podinfo, status: Synced, health: {status: Healthy}}]`)
	r.Patches(applications, func(object *unstructured.Unstructured) {
		r.mu.Lock()
		r.asked[object.GetName()]++
		r.mu.Unlock()
		r.compare(t, object)
	})
}

// controller puts the pod of the application controller.
func (r *argoRig) controller(t *testing.T, status string) {
	r.Put(t, fakecluster.Pods, `{apiVersion: v1, kind: Pod,
  metadata: {name: argocd-application-controller-0, namespace: argocd, labels: {app: argocd-application-controller}},
  spec: {nodeName: cp-1, containers: [{name: controller, image: "x:1"}]}, status: {`+status+`}}`)
}

// compare answers a request to compare anew.
func (r *argoRig) compare(t *testing.T, object *unstructured.Unstructured) {
	object = object.DeepCopy()
	annotations := object.GetAnnotations()
	delete(annotations, handover.RefreshAnnotation)
	object.SetAnnotations(annotations)
	text, err := yaml.Marshal(object.Object)
	require.NoError(t, err)
	r.Put(t, applications, string(text))
}

func (r *argoRig) putApp(t *testing.T, name, path, sync, state, more string) {
	r.Put(t, applications, fmt.Sprintf(`{apiVersion: argoproj.io/v1alpha1, kind: Application,
  metadata: {name: %s, namespace: argocd}, spec: {project: default, syncPolicy: {automated: {prune: true, selfHeal: true}},
    destination: {server: "https://kubernetes.default.svc"},
    source: {repoURL: "https://git.home.arpa/platform/slipway.git", targetRevision: main, path: %[2]s}},
  status: {health: {status: %[4]s}, sync: {status: %[3]s, revision: "%[6]s", comparedTo: {
      destination: {server: "https://kubernetes.default.svc"},
      source: {repoURL: "https://git.home.arpa/platform/slipway.git", targetRevision: main, path: %[2]s}}},
    %[5]s}}`, name, path, sync, state, more, commit))
}

// requestsToCompare returns how often each Application was asked.
func (r *argoRig) requestsToCompare() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.asked)
}

func argoSpec(t *testing.T, kube *fakecluster.Kube, timeout time.Duration) string {
	return encode(t, &handover.Spec{
		Target: targetOf(kube, timeout),
		URL:    "https://git.home.arpa/platform/slipway.git", Ref: "main", Path: "kubernetes/clusters/infra",
	})
}

func TestArgoCD_AsksEachApplicationOnceAndEndsWithTheAppliedRevision(t *testing.T) {
	t.Parallel()
	r := newArgoRig(t)
	code, report, progress := execute(t, argoSpec(t, r.Kube, 20*time.Second), "argocd")
	assert.Equal(t, exitOpen, code, progress)
	assert.Equal(t, "refs/heads/main@sha1:"+commit, report.Revision)
	assert.Equal(t, "argocd", report.Kind)
	assert.Equal(t, map[string]int{"root": 1, "podinfo": 1}, r.requestsToCompare())
	for request := range r.Requests() {
		assert.True(t, strings.HasPrefix(request, "GET ") || request == "PATCH "+applications, "%s writes something else", request)
	}
}

func TestArgoCD_AsksAgainUntilTheServerAnswers(t *testing.T) {
	t.Parallel()
	r := newArgoRig(t)
	failures := 0
	r.Failing(func(request string) bool {
		if request != "PATCH "+applications {
			return false
		}
		failures++
		return failures < 8
	})
	code, _, progress := execute(t, argoSpec(t, r.Kube, 20*time.Second), "argocd")
	assert.Equal(t, exitOpen, code, progress)
	assert.Contains(t, progress, "cannot be asked to compare anew: internalerror")
	assert.Equal(t, map[string]int{"root": 1, "podinfo": 1}, r.requestsToCompare())
}

func TestArgoCD_WaitsUntilArgoCDIsInstalled(t *testing.T) {
	t.Parallel()
	r := &argoRig{Kube: fakecluster.NewKube(t)}
	installs := &until{text: "does not know applications", then: func() { r.install(t) }}
	code, _, progress := executeUntil(t, installs, argoSpec(t, r.Kube, 20*time.Second), "argocd")
	assert.Equal(t, exitOpen, code, progress)
	assert.Contains(t, progress, "does not know applications.argoproj.io yet")
}

func TestArgoCD_AsksNothingBeforeItsControllersRun(t *testing.T) {
	t.Parallel()
	r := newArgoRig(t)
	r.controller(t, podPulling)
	var before map[string]int
	pulled := &until{text: "ImagePullBackOff", then: func() {
		before = r.requestsToCompare()
		r.controller(t, podReady)
	}}
	code, _, progress := executeUntil(t, pulled, argoSpec(t, r.Kube, 20*time.Second), "argocd")
	assert.Equal(t, exitOpen, code, progress)
	assert.Empty(t, before)
	assert.Equal(t, map[string]int{"root": 1, "podinfo": 1}, r.requestsToCompare())
}

func TestArgoCD_DoesNotOpenOnAComparisonFromBeforeTheWait(t *testing.T) {
	t.Parallel()
	r := newArgoRig(t)
	pending := make(chan *unstructured.Unstructured, 1)
	r.Patches(applications, func(object *unstructured.Unstructured) {
		if object.GetName() == "root" {
			pending <- object
			return
		}
		r.compare(t, object)
	})
	waiting := &until{text: "Application argocd/root: the root Application has applied the newest revision: has not compared yet since it was",
		then: func() { r.compare(t, <-pending) }}
	code, _, progress := executeUntil(t, waiting, argoSpec(t, r.Kube, 20*time.Second), "argocd")
	assert.Equal(t, exitOpen, code, progress)
	assert.Contains(t, progress, "has not compared yet since it was asked to")
}

func TestArgoCD_NamesTheErrorOfGit(t *testing.T) {
	t.Parallel()
	r := newArgoRig(t)
	r.putApp(t, "root", "kubernetes/clusters/infra", "Unknown", "Healthy", `conditions: [{type: ComparisonError,
    message: "Failed to load target state: failed to list refs: https://argocd:hunter2@git.home.arpa/slipway.git\nstatus code: 500"},
    {type: OrphanedResourceWarning, message: "Application has 3 orphaned resources"}]`)
	code, report, progress := execute(t, argoSpec(t, r.Kube, 3*time.Second), "argocd")
	assert.Equal(t, exitUnhealthy, code, progress)
	reason := problem(t, report, "Application argocd/root", "newest revision").Reason
	assert.Contains(t, reason, "ComparisonError: Failed to load target state")
	assert.Contains(t, reason, "status code: 500")
	assert.NotContains(t, progress+reason, "hunter2")
	assert.NotContains(t, reason, "orphaned")
}

func TestArgoCD_NamesThePodThatAnApplicationWaitsFor(t *testing.T) {
	t.Parallel()
	r := newArgoRig(t)
	putController(t, r.Kube, "podinfo", "podinfo", podPulling)
	r.putApp(t, "podinfo", "kubernetes/apps/podinfo", "Synced", "Progressing", `resources: [
    {group: apps, kind: Deployment, namespace: podinfo, name: podinfo, status: Synced, health: {status: Progressing, message: waits}}],
    operationState: {phase: Running, message: waiting for healthy state of apps/Deployment/podinfo, syncResult: {revision: x, resources: [
      {group: apps, kind: Deployment, namespace: podinfo, name: podinfo, status: Synced, hookPhase: Running, message: created}]}}`)
	r.Put(t, fakecluster.Events, `{apiVersion: v1, kind: Event, metadata: {name: a, namespace: podinfo}, type: Warning, reason: Failed,
  message: manifest unknown, involvedObject: {kind: Pod, name: podinfo-5d8f, namespace: podinfo}}`)
	code, report, progress := execute(t, argoSpec(t, r.Kube, 20*time.Second), "argocd", "--once")
	assert.Equal(t, exitUnhealthy, code, progress)
	require.Len(t, report.Problems, 1)
	stuck := report.Problems[0]
	assert.Equal(t, "its sync is Running: waiting for healthy state of apps/Deployment/podinfo; Deployment podinfo/podinfo: 0 of 1 pods are "+
		"Ready; pod podinfo/podinfo-5d8f is Pending, not Ready: coredns is in ImagePullBackOff", stuck.Reason)
	assert.Equal(t, "kubectl --context fake -n podinfo describe pod podinfo-5d8f", stuck.Command)
	assert.Contains(t, strings.Join(stuck.Evidence, "\n"), "event Failed: manifest unknown")
}

func TestArgoCD_ThatLooksOnceOnlyReads(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"none", "GET", "WATCH"} {
		r := newArgoRig(t)
		r.Failing(firstOf(verb)) // what was not answered is asked again
		kubeconfig := saved(t, "kubeconfig", r.Config)
		code, report, progress := execute(t, "", "argocd", "--kubeconfig", kubeconfig, "--once", "--ref", "main")
		assert.Equal(t, exitOpen, code, progress)
		assert.Len(t, report.Results, 4)
		for request := range r.Requests() {
			assert.True(t, strings.HasPrefix(request, "GET "), "%s is not known to only read", request)
		}
		code, report, _ = execute(t, "", "argocd", "--kubeconfig", kubeconfig, "--once", "--ref", "dev")
		assert.Equal(t, exitUnhealthy, code)
		assert.Equal(t, "follows main instead of dev", problem(t, report, "Application argocd/root", "as declared").Reason)
	}
}

func TestArgoCD_ThatLooksOnceEndsAtOnceWithoutArgoCD(t *testing.T) {
	t.Parallel()
	kube := fakecluster.NewKube(t)
	look := func() health.Report {
		code, report, progress := execute(t, "", "argocd", "--kubeconfig", saved(t, "kubeconfig", kube.Config), "--once", "--timeout", "2m")
		assert.Equal(t, exitUnhealthy, code)
		assert.Less(t, time.Duration(report.Waited), time.Minute, progress)
		return report
	}
	look()
	kube.Serves(applications, appProjects, fakecluster.Deployments, fakecluster.StatefulSets, fakecluster.DaemonSets, fakecluster.Pods)
	assert.Contains(t, look().Summaries[3], "waits: there is no root Application")
}

func TestArgoCD_OpensWhileTheRevisionMoves(t *testing.T) {
	t.Parallel()
	r := newArgoRig(t)
	r.putApp(t, "podinfo", "kubernetes/apps/podinfo", "Synced", "Progressing", "resources: []")
	pushed := &until{
		text: "holds  the root Application has applied the newest revision",
		and:  "argocd/podinfo: everything Argo CD applies from the root is Synced and Healthy: is Progressing",
		then: func() {
			r.push(t, strings.Replace(commit, "1", "2", 1))
			r.putApp(t, "podinfo", "kubernetes/apps/podinfo", "Synced", "Healthy", "resources: []")
		},
	}
	code, report, progress := executeUntil(t, pushed, argoSpec(t, r.Kube, 20*time.Second), "argocd")
	assert.Equal(t, exitOpen, code, progress)
	assert.Equal(t, "refs/heads/main@sha1:"+commit, report.Revision, "which it has applied; the newer one it applies")
}

func TestArgoCD_DoesNotOpenWhileTheSameRevisionIsApplied(t *testing.T) {
	t.Parallel()
	r := newArgoRig(t)
	r.push(t, commit)
	code, report, progress := execute(t, argoSpec(t, r.Kube, 20*time.Second), "argocd", "--once")
	assert.Equal(t, exitUnhealthy, code, progress)
	assert.Equal(t, "its sync is Running", problem(t, report, "Application argocd/root", "newest revision").Reason)
}

// push lets the root apply a revision.
func (r *argoRig) push(t *testing.T, revision string) {
	r.Put(t, applications, fmt.Sprintf(rootThatSyncs, revision))
}

const rootThatSyncs = `{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: root, namespace: argocd},
  spec: {syncPolicy: {automated: {enabled: true}}, destination: {name: in-cluster},
    source: {repoURL: "https://git.home.arpa/platform/slipway.git", targetRevision: main, path: kubernetes/clusters/infra}},
  operation: {sync: {}},
  status: {health: {status: Healthy}, operationState: {phase: Running}, sync: {status: OutOfSync, revision: "%s", comparedTo: {
      destination: {name: in-cluster},
      source: {repoURL: "https://git.home.arpa/platform/slipway.git", targetRevision: main, path: kubernetes/clusters/infra}}},
    resources: [{group: argoproj.io, kind: Application, namespace: argocd, name: podinfo, status: OutOfSync}]}}`

// A sync of a former path is tried again for ever, and one that has failed for the last time is not.
func TestArgoCD_BeginsSyncsAgainThatArgoCDWouldNot(t *testing.T) {
	t.Parallel()
	r := newArgoRig(t)
	const former = `{repoURL: "https://git.home.arpa/platform/slipway.git", targetRevision: main, path: former}`
	r.putApp(t, "podinfo", "kubernetes/apps/podinfo", "OutOfSync", "Missing", `operationState: {phase: Running,
      finishedAt: "2026-11-28T09:00:00Z", retryCount: 3,
      message: "one or more objects failed to apply", operation: {sync: {source: `+former+`}}}`)
	r.Patches(applications, func(object *unstructured.Unstructured) {
		if _, forgotten, _ := unstructured.NestedMap(object.Object, "status", "operationState"); object.GetName() == "podinfo" && !forgotten {
			r.putApp(t, "podinfo", "kubernetes/apps/podinfo", "Synced", "Healthy", `operationState: {phase: Succeeded}`)
			return
		}
		r.compare(t, object)
	})
	code, _, progress := execute(t, argoSpec(t, r.Kube, 20*time.Second), "argocd")
	assert.Equal(t, exitOpen, code, progress)
}
