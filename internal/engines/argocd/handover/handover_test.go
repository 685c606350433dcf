package handover

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/healthtest"
)

const (
	sha  = "1111111111111111111111111111111111111111"
	next = "2222222222222222222222222222222222222222"
	repo = "https://git.home.arpa/platform/slipway.git"
)

func declared() *Spec {
	spec := &Spec{Target: health.Target{Cluster: "infra", Kubeconfig: "k"}, URL: repo, Ref: "main", Path: "kubernetes/clusters/infra"}
	spec.SetDefaults()
	return spec
}

// resource is an object in sync and, if it is a workload, Healthy.
func resource(group, kind, namespace, name string) Resource {
	one := Resource{Object: Object{group, kind, namespace, name}, Sync: synced}
	if group == "apps" {
		one.Health = healthy
	}
	return one
}

// app is an Application that meets all conditions.
func app(name, path string, resources ...Resource) Application {
	return Application{
		Namespace: "argocd", Name: name, Version: "10", Project: "default", InCluster: true, Automated: true, Prune: true, SelfHeal: true,
		Sources:  []Source{{URL: repo, Ref: "main", Path: path, Revision: sha}},
		Compared: true, Sync: synced, Health: healthy, Resources: resources,
		Operation: Operation{Phase: "Succeeded", Message: "successfully synced (all tasks run)", Revisions: []string{sha}},
	}
}

// The places of the Applications in applied.
const (
	atRoot = iota
	atInfrastructure
	atCertManager
	atOther
)

// applied is a cluster in which Argo CD has applied everything.
func applied() *Cluster {
	certManager := app("cert-manager", "", resource("apps", "Deployment", "cert-manager", "cert-manager"))
	certManager.Sources = []Source{{URL: "https://charts.jetstack.io", Ref: "v1.18.2", Revision: "v1.18.2"}}
	certManager.Operation.Revisions = []string{"v1.18.2"}
	other := app("somebody-elses", "x")
	other.Namespace, other.Health = "tenant", "Degraded"
	seen := &Cluster{
		Applications: health.Seen[Application]{Synced: true, Items: []Application{
			app("root", "kubernetes/clusters/infra", resource(group, kind, "argocd", "infrastructure")),
			app("infrastructure", "kubernetes/infrastructure", resource("apps", "Deployment", "podinfo", "podinfo"),
				resource(group, kind, "argocd", "cert-manager")),
			certManager, other,
		}},
		Projects:  health.Seen[string]{Synced: true, Items: []string{"default"}},
		Workloads: health.Seen[kube.Workload]{Synced: true}, Pods: health.Seen[kube.Pod]{Synced: true},
	}
	for _, one := range [][3]string{
		{"StatefulSet", "argocd", "argocd-application-controller"}, {"Deployment", "argocd", "argocd-repo-server"},
		{"Deployment", "podinfo", "podinfo"}, {"Deployment", "cert-manager", "cert-manager"},
	} {
		labels := map[string]string{"app": one[2]}
		set := kube.Workload{Kind: one[0], Namespace: one[1], Name: one[2], Labels: map[string]string{}, Selector: labels, Observed: true,
			Desired: 1, Updated: 1}
		if one[1] == "argocd" {
			set.Labels["app.kubernetes.io/part-of"] = "argocd"
		}
		seen.Workloads.Items = append(seen.Workloads.Items, set)
		seen.Pods.Items = append(seen.Pods.Items, kube.Pod{Namespace: one[1], Name: one[2] + "-5d8f", Labels: labels, Node: "infra-worker-1",
			Phase: "Running", Ready: true})
	}
	seen.refreshAll(declared())
	return seen
}

// refreshAll lets all Applications of the tree be asked, and answer.
func (seen *Cluster) refreshAll(spec *Spec) {
	seen.Begin(spec)
	due, _ := seen.ToAsk()
	for _, one := range due {
		seen.Refreshes[one.Key()] = Refresh{Version: "10"}
	}
	seen.Note(spec)
}

// at returns one of the Applications.
func (seen *Cluster) at(place int) *Application { return &seen.Applications.Items[place] }

// pull makes the pod of a workload wait for its image.
func (seen *Cluster) pull(index int) {
	pod := &seen.Pods.Items[index]
	pod.Ready, pod.Phase = false, "Pending"
	pod.Containers = []kube.Container{{Name: "manager", Image: "ghcr.io/x:1",
		State: `waiting: ImagePullBackOff: Back-off pulling image "ghcr.io/x:1"`}}
}

// crash makes the container of a workload's pod crash.
func (seen *Cluster) crash(index int) {
	pod := &seen.Pods.Items[index]
	pod.Ready = false
	pod.Containers = []kube.Container{{Name: "manager", Restarts: 3, State: "waiting: CrashLoopBackOff: back-off 40s restarting",
		Last: "terminated: Error: exit code 1"}}
}

// runs makes the sync of an Application run.
func (a *Application) runs(message string, steps ...Step) {
	a.Operation = Operation{Requested: true, Phase: running, Message: message, Revisions: []string{sha}, Steps: steps}
}

// ends makes the sync of an Application fail.
func (a *Application) ends(message string, steps ...Step) {
	a.Operation = Operation{Phase: failed, Message: message, Revisions: []string{sha}, Steps: steps}
}

// ails makes a resource of an Application, and it, not Healthy.
func (a *Application) ails(place int, state, message string) {
	a.Health, a.Resources[place].Health, a.Resources[place].Message = state, state, message
}

// drifts makes a resource of an Application, and it, OutOfSync.
func (a *Application) drifts(place int) { a.Sync, a.Resources[place].Sync = outOfSync, outOfSync }

// waits is a step of a sync that has applied an object.
func waits(object Object, phase string) Step {
	return Step{Object: object, Status: synced, Phase: phase, Message: strings.ToLower(object.Kind) + "/" + object.Name + " configured"}
}

func TestHandover_HoldsWhenEverythingIsApplied(t *testing.T) {
	results := Evaluate(declared(), applied())
	assert.True(t, health.Hold(results), "%v", results)
	assert.Equal(t, "refs/heads/main@sha1:"+sha, applied().AppliedRevision(declared()))
}

func TestHandover_DoesNotHoldBeforeEveryKindWasRead(t *testing.T) {
	assert.False(t, health.Hold(Evaluate(declared(), &Cluster{})))
	for name, forget := range map[string]func(*Cluster){
		"applications": func(c *Cluster) { c.Applications = health.Seen[Application]{} },
		"projects":     func(c *Cluster) { c.Projects = health.Seen[string]{} },
		"workloads":    func(c *Cluster) { c.Workloads = health.Seen[kube.Workload]{} },
		"pods":         func(c *Cluster) { c.Pods = health.Seen[kube.Pod]{} },
	} {
		seen := applied()
		forget(seen)
		assert.False(t, health.Hold(Evaluate(declared(), seen)), name)
	}
}

// The texts are those of Argo CD 3.5.
var failures = map[string]func(*Cluster){
	"crds-missing": func(c *Cluster) {
		c.Applications = health.Seen[Application]{Err: &health.Broken{Reason: "the API server does not know applications.argoproj.io yet"}}
	},
	"controllers-missing":         func(c *Cluster) { c.Workloads.Items = nil; c.Refreshes = nil },
	"controller-image-not-pulled": func(c *Cluster) { c.pull(0); c.Refreshes = nil },
	"repo-server-crashes-after-asking": func(c *Cluster) {
		c.crash(1)
		c.at(atRoot).Refreshing, c.Refreshes["argocd/root"] = true, Refresh{Version: "10"}
	},

	"root-missing":                func(c *Cluster) { c.Applications.Items = c.Applications.Items[1:] },
	"root-of-another-repository":  func(c *Cluster) { c.at(atRoot).Sources[0].URL = "https://git.home.arpa/other.git" },
	"root-of-another-branch":      func(c *Cluster) { c.at(atRoot).Sources[0].Ref = "dev" },
	"root-of-another-path":        func(c *Cluster) { c.at(atRoot).Sources[0].Path = "kubernetes/clusters/apps" },
	"root-with-two-sources":       func(c *Cluster) { c.at(atRoot).Sources = append(c.at(atRoot).Sources, Source{}) },
	"root-without-automated-sync": func(c *Cluster) { c.at(atRoot).Automated = false },
	"root-being-deleted":          func(c *Cluster) { c.at(atRoot).Deleting = true },
	"root-project-missing":        func(c *Cluster) { c.Projects.Items = []string{"tenants"} },
	"root-compares-anew":          func(c *Cluster) { c.at(atRoot).Refreshing = true; c.Refreshes["argocd/root"] = Refresh{Version: "10"} },
	"root-cannot-be-asked":        func(c *Cluster) { c.Refreshes["argocd/root"] = Refresh{Err: &health.Broken{Reason: "you may not"}} },
	"root-has-not-compared":       func(c *Cluster) { c.at(atRoot).Compared = false },
	"root-drifts-or-sync-window":  func(c *Cluster) { c.at(atRoot).drifts(0) },
	"root-needs-pruning": func(c *Cluster) {
		c.at(atRoot).drifts(0)
		c.at(atRoot).Prune = false
		c.at(atRoot).Resources[0].Prune = true
	},
	"child-not-self-healing":      func(c *Cluster) { c.at(atCertManager).drifts(0); c.at(atCertManager).SelfHeal = false },
	"root-would-prune-everything": func(c *Cluster) { c.at(atRoot).refuses("auto-sync will wipe out all resources") },
	"git-host-answers-500":        func(c *Cluster) { c.at(atRoot).breaks() },
	"git-host-answers-500-child":  func(c *Cluster) { c.at(atInfrastructure).breaks() },
	"project-forbids-the-source":  func(c *Cluster) { c.at(atRoot).invalid() },
	"child-compares-anew": func(c *Cluster) {
		c.at(atCertManager).Refreshing = true
		c.Refreshes["argocd/cert-manager"] = Refresh{Version: "10"}
	},
	"child-being-deleted":        func(c *Cluster) { c.at(atCertManager).Deleting = true },
	"child-never-compared":       func(c *Cluster) { c.at(atCertManager).Compared, c.at(atCertManager).Sync = false, "" },
	"child-at-an-older-revision": func(c *Cluster) { c.Held = nil; c.at(atInfrastructure).Sources[0].Revision = "0000" },
	"child-is-absent": func(c *Cluster) {
		c.Applications.Items = slices.Delete(c.Applications.Items, atCertManager, atCertManager+1)
	},
	"child-has-a-sync-to-begin":   func(c *Cluster) { c.at(atCertManager).Operation.Requested = true },
	"child-degraded-of-no-health": func(c *Cluster) { c.at(atCertManager).Health, c.at(atCertManager).Resources[0].Health = "Degraded", "" },
	"child-whose-image-is-missing": func(c *Cluster) {
		c.at(atCertManager).ails(0, "Progressing", "Waiting for rollout to finish")
		c.pull(3)
	},
	"child-whose-pod-crashes": func(c *Cluster) {
		c.at(atCertManager).ails(0, "Degraded", "exceeded its progress deadline")
		c.crash(3)
	},

	"webhook-denies": func(c *Cluster) {
		c.at(atInfrastructure).drifts(0)
		c.at(atInfrastructure).ends("one or more objects failed to apply, reason: admission webhook denied the request (retried 5 times).",
			Step{Object: c.at(atInfrastructure).Resources[0].Object, Phase: failed, Status: syncFailed,
				Message: `admission webhook "validate.kyverno.svc" denied the request: no limits`})
		c.at(atInfrastructure).refuses("Failed last sync attempt to [" + sha + "]: one or more objects failed to apply")
	},
	"webhook-denies-and-is-tried-again": func(c *Cluster) {
		c.at(atInfrastructure).drifts(0)
		c.at(atInfrastructure).runs("one or more objects failed to apply. Retrying attempt #2 at 3:04PM.",
			Step{Object: c.at(atInfrastructure).Resources[0].Object, Phase: failed, Status: syncFailed, Message: "admission webhook denied"})
		c.at(atInfrastructure).Operation.Retries = true
	},
	"sync-that-could-not-begin": func(c *Cluster) {
		c.at(atInfrastructure).runs("Failed to load application project: not found. Retrying attempt #1 at 3:04PM.")
		c.at(atInfrastructure).Operation.Retries = true
	},
	"child-of-unknown-status": func(c *Cluster) { c.at(atCertManager).Sync, c.at(atCertManager).Health = "Unknown", "Unknown" },
	"hook-fails": func(c *Cluster) {
		c.at(atInfrastructure).ends("one or more synchronization tasks completed unsuccessfully",
			Step{Object: Object{"batch", "Job", "podinfo", "migrate"}, Hook: "PostSync", Phase: failed,
				Message: "Job has reached the specified backoff limit"})
		ofJob := map[string]string{"batch.kubernetes.io/job-name": "migrate"}
		c.Pods.Items = append(c.Pods.Items,
			kube.Pod{Namespace: "podinfo", Name: "migrate-w", Node: "a", Phase: "Succeeded", Labels: ofJob},
			kube.Pod{Namespace: "podinfo", Name: "migrate-x", Node: "a", Phase: "Failed", Labels: ofJob,
				Containers: []kube.Container{{Name: "migrate", State: "terminated: Error: exit code 1"}}})
	},
	"hook-runs": func(c *Cluster) {
		c.at(atInfrastructure).runs("waiting for completion of hook batch/Job/migrate",
			Step{Object: Object{"batch", "Job", "podinfo", "migrate"}, Hook: "PreSync", Phase: running})
	},
	"sync-waits-for-its-workload": func(c *Cluster) {
		c.at(atInfrastructure).runs("waiting for healthy state of apps/Deployment/podinfo",
			waits(c.at(atInfrastructure).Resources[0].Object, running))
		c.at(atInfrastructure).ails(0, "Progressing", "")
		c.pull(2)
	},
	"sync-that-says-nothing": func(c *Cluster) {
		c.at(atInfrastructure).runs("", waits(c.at(atInfrastructure).Resources[0].Object, running))
	},
	"sync-that-will-fail": func(c *Cluster) {
		c.at(atInfrastructure).runs("", Step{Object: Object{"", "ConfigMap", "podinfo", "a"}, Status: syncFailed, Message: "is immutable"})
	},

	"root-waits-for-a-wave-that-fails": func(c *Cluster) {
		c.at(atRoot).runs("waiting for healthy state of argoproj.io/Application/infrastructure",
			waits(c.at(atRoot).Resources[0].Object, running))
		c.at(atRoot).ails(0, "Degraded", "")
		c.at(atRoot).Resources = append(c.at(atRoot).Resources, Resource{Object: Object{group, kind, "argocd", "apps"}, Sync: outOfSync})
		c.at(atRoot).Sync = outOfSync
		c.at(atInfrastructure).ails(0, "Degraded", "exceeded its progress deadline")
		c.crash(2)
	},
	"root-fails-with-a-wave": func(c *Cluster) {
		c.at(atRoot).ends("one or more synchronization tasks completed unsuccessfully", Step{Object: c.at(atRoot).Resources[0].Object,
			Phase: failed, Status: synced})
		c.at(atInfrastructure).ails(0, "Degraded", "exceeded its progress deadline")
	},
	"root-cannot-apply-a-child": func(c *Cluster) {
		c.at(atRoot).ends("one or more objects failed to apply", Step{Object: c.at(atRoot).Resources[0].Object, Phase: failed,
			Status: syncFailed, Message: "spec.project: Required value"})
		c.at(atInfrastructure).ails(0, "Degraded", "exceeded its progress deadline")
	},
	"root-waits-for-a-chain": func(c *Cluster) {
		c.at(atInfrastructure).Resources[0].Health = suspended
		c.at(atRoot).ails(0, "Progressing", "")
		c.at(atInfrastructure).ails(1, "Progressing", "")
		c.at(atCertManager).ails(0, "Progressing", "Waiting for rollout to finish")
	},
	"root-waits-for-one-by-hand": func(c *Cluster) {
		c.at(atRoot).runs("waiting for healthy state of argoproj.io/Application/infrastructure",
			waits(c.at(atRoot).Resources[0].Object, running))
		c.at(atInfrastructure).drifts(0)
		c.at(atInfrastructure).Automated = false
	},
	"parent-has-a-problem-of-its-own": func(c *Cluster) {
		c.at(atInfrastructure).ails(0, "Degraded", "exceeded its progress deadline")
		c.at(atInfrastructure).Resources[1].Health = "Degraded"
		c.at(atCertManager).ails(0, "Degraded", "exceeded its progress deadline")
	},
}

// refuses adds the condition that Argo CD sets if it does not begin an automated sync.
func (a *Application) refuses(message string) {
	a.Errors = append(a.Errors, Condition{syncError, message})
}

// breaks makes the comparison of an Application fail as if Git did not answer. The status has the reference as the revision then.
func (a *Application) breaks() {
	a.Errors = []Condition{{"ComparisonError", "Failed to load target state: rpc error: failed to list refs: unexpected status code: 500"}}
	a.Sync, a.Sources[0].Revision = "Unknown", a.Sources[0].Ref
}

func (a *Application) invalid() {
	a.Errors = []Condition{{"InvalidSpecError", "application repo " + repo + " is not permitted in project 'default'"}}
	a.Sync, a.Health = "Unknown", "Unknown"
}

func TestHandover_AFailureNamesTheStuckObjectAndItsReason(t *testing.T) {
	reports := healthtest.Begin(t, "argocd", "(applied)", Evaluate(declared(), applied()))
	for name, breakIt := range failures {
		seen := applied()
		breakIt(seen)
		seen.Note(declared())
		results := Evaluate(declared(), seen)
		assert.NotEmpty(t, problems(results), "%s: something is named", name)
		reports.Add(t, name, false, results)
	}
	assert.Greater(t, reports.Compare(t), 3*len(Checks))
}

func problems(results []health.Result) (failed []health.Result) {
	for _, result := range results {
		if result.Verdict == health.Failed && !result.Unseen {
			failed = append(failed, result)
		}
	}
	return failed
}

// remarks returns the reasons of skipped results by their subjects.
func remarks(results []health.Result) map[string]string {
	all := map[string]string{}
	for _, result := range results {
		if result.Verdict == health.Skipped && !result.Blocked {
			all[result.Subject] = result.Reason
		}
	}
	return all
}

func TestSpec_RefusesAURLWithAPasswordWithoutQuotingIt(t *testing.T) {
	spec := declared()
	spec.URL = "https://argocd:hunter2@git.home.arpa/x.git"
	require.ErrorContains(t, spec.Validate(), "holds a password")
	assert.NotContains(t, spec.Validate().Error(), "hunter2")
	spec.URL = "git.home.arpa/x.git"
	require.ErrorContains(t, spec.Validate(), "url: is not a URL; give the repository's")
	require.ErrorContains(t, new(Spec).Validate(), "cluster: is empty")
}

func TestSpec_ComesBackAsItWasEncodedWithDefaultsSet(t *testing.T) {
	spec := declared()
	text, err := probe.Encode(&Spec{Target: health.Target{Cluster: "infra", Kubeconfig: "k"}, URL: spec.URL, Ref: spec.Ref, Path: spec.Path})
	require.NoError(t, err)
	read := new(Spec)
	require.NoError(t, probe.Read(strings.NewReader(text), read))
	assert.Equal(t, spec, read)
	assert.Equal(t, "argocd", read.Namespace)
	assert.Equal(t, "root", read.Root)
	assert.Error(t, probe.Read(strings.NewReader(strings.Replace(text, `"url"`, `"uri"`, 1)), new(Spec)), "an unknown key")
}
