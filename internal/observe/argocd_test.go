package observe

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/engines/argocd/handover"
)

// argoApplication reads an Application with a spec and a status. metadata and the rest are in YAML's flow style.
func argoApplication(t *testing.T, metadata, spec, rest string) handover.Application {
	t.Helper()
	seen, err := application(object(t, `
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd, resourceVersion: "7", `+metadata+`}
spec: {`+spec+`}
`+rest))
	require.NoError(t, err)
	return seen
}

func TestApplication_IsReadAsArgoCDWritesIt(t *testing.T) {
	seen := argoApplication(t, `annotations: {argocd.argoproj.io/refresh: normal,
    argocd.argoproj.io/tracking-id: "root:argoproj.io/Application:argocd/web"},
  deletionTimestamp: "2026-01-01T00:00:00Z", ownerReferences: [{kind: ApplicationSet, name: webs}]`,
		`project: apps, destination: {server: "https://kubernetes.default.svc", namespace: web},
  source: {repoURL: "https://git.home.arpa/a.git", targetRevision: main, path: apps/web},
  syncPolicy: {automated: {prune: true, selfHeal: true}}`, `
operation: {sync: {revision: abc}}
status:
  health: {status: Degraded}
  sync: {status: OutOfSync, revision: abc, comparedTo: {destination: {server: "https://kubernetes.default.svc", namespace: web},
    source: {repoURL: "https://git.home.arpa/a.git", targetRevision: main, path: apps/web}}}
  conditions:
  - {type: SyncError, message: "Failed last sync attempt to [abc]:\n password=hunter2"}
  - {type: OrphanedResourceWarning, message: Application has 1 orphaned resources}
  resources:
  - {group: apps, version: v1, kind: Deployment, namespace: web, name: web, status: Synced,
     health: {status: Degraded, message: "no\nprogress"}}
  - {version: v1, kind: Namespace, name: web, status: OutOfSync, requiresPruning: true}
  - {group: batch, kind: Job, namespace: web, name: migrate, hook: true}
  operationState:
    phase: Running
    message: "one or more objects failed to apply, token=abcdef. Retrying attempt #1 at 3:04PM."
    finishedAt: "2026-01-01T00:00:00Z"
    syncResult:
      revision: abc
      resources:
      - {group: batch, version: v1, kind: Job, namespace: web, name: migrate, hookType: PreSync, hookPhase: Failed, message: "exit\n1"}
      - {version: v1, kind: Namespace, name: web, status: SyncFailed, message: denied}
`)
	migrate := handover.Object{Group: "batch", Kind: "Job", Namespace: "web", Name: "migrate"}
	assert.Equal(t, handover.Application{
		Namespace: "argocd", Name: "web", Version: "7", Project: "apps", InCluster: true, Tracker: "root", Set: "argocd/webs",
		Sources:   []handover.Source{{URL: "https://git.home.arpa/a.git", Ref: "main", Path: "apps/web", Revision: "abc"}},
		Automated: true, Prune: true, SelfHeal: true, Deleting: true, Refreshing: true, Compared: true, Sync: "OutOfSync", Health: "Degraded",
		Errors: []handover.Condition{{Type: "SyncError", Message: "Failed last sync attempt to [abc]: password=(hidden)"}},
		Operation: handover.Operation{
			Requested: true, Phase: "Running", Retries: true, Revisions: []string{"abc"},
			Message: "one or more objects failed to apply, token=(hidden) Retrying attempt #1 at 3:04PM.",
			Steps: []handover.Step{
				{Object: migrate, Hook: "PreSync", Phase: "Failed", Message: "exit 1"},
				{Object: handover.Object{Kind: "Namespace", Name: "web"}, Status: "SyncFailed", Message: "denied"},
			},
		},
		Resources: []handover.Resource{
			{Object: handover.Object{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "web"}, Sync: "Synced", Health: "Degraded",
				Message: "no progress"},
			{Object: handover.Object{Kind: "Namespace", Name: "web"}, Sync: "OutOfSync", Prune: true},
			{Object: migrate, Hook: true},
		},
	}, seen)
}

func TestApplication_ThatIsNewHasComparedNothing(t *testing.T) {
	seen := argoApplication(t, "", `source: {repoURL: a}, destination: {name: in-cluster}`, "")
	assert.Equal(t, handover.Application{Namespace: "argocd", Name: "web", Version: "7", InCluster: true,
		Sources: []handover.Source{{URL: "a"}}}, seen)
}

func TestApplication_HasComparedItsNewestSpecIfOnlyEmptyValuesDiffer(t *testing.T) {
	const source = `source: {repoURL: a, path: b, helm: {valueFiles: [c.yaml], skipCrds: false}, targetRevision: ""}`
	const spec = source + `, destination: {name: in-cluster}, ignoreDifferences: [{kind: Secret, jsonPointers: [/data]}]`
	const compared = `source: {repoURL: a, path: b, helm: {valueFiles: [c.yaml]}}, destination: {name: in-cluster},
    ignoreDifferences: [{kind: Secret, group: "", jsonPointers: [/data]}]`
	for name, c := range map[string]struct {
		spec, compared string
		want           bool
	}{
		"the same":               {spec, compared, true},
		"another path":           {spec, strings.Replace(compared, "path: b", "path: c", 1), false},
		"another file of values": {spec, strings.Replace(compared, "c.yaml", "d.yaml", 1), false},
		"a parameter that is gone": {spec, strings.Replace(compared, "helm: {", `helm: {releaseName: x, `, 1),
			false},
		"another destination":            {strings.Replace(spec, "in-cluster", "other", 1), compared, false},
		"other differences to ignore":    {strings.Replace(spec, "/data", "/spec", 1), compared, false},
		"nothing compared":               {spec, "", false},
		"several sources":                {"sources: [{repoURL: a}, {chart: b}]", "sources: [{repoURL: a}, {chart: b}]", true},
		"one of several sources differs": {"sources: [{repoURL: a}, {chart: b}]", "sources: [{repoURL: a}, {chart: c}]", false},
		"one source more":                {"sources: [{repoURL: a}, {chart: b}]", "sources: [{repoURL: a}]", false},
		"one source instead of several":  {"source: {repoURL: a}", "sources: [{repoURL: a}]", false},
		"hydrated": {"sourceHydrator: {drySource: {repoURL: a, path: dry, targetRevision: main}, syncSource: {targetBranch: env, path: out}}",
			"source: {repoURL: a, path: out, targetRevision: env}", true},
	} {
		if c.compared != "" {
			c.compared = "comparedTo: {" + c.compared + "}"
		}
		seen := argoApplication(t, "", c.spec, "status: {sync: {status: Synced, "+c.compared+"}}")
		assert.Equal(t, c.want, seen.Compared, name)
	}
}

func TestApplication_HasTheRevisionOfEachSource(t *testing.T) {
	seen := argoApplication(t, "", "sources: [{repoURL: a, targetRevision: main}, {repoURL: b, chart: c, targetRevision: 1.x}, {repoURL: d}]",
		"status: {sync: {revisions: [abc, 1.2.3]}, operationState: {phase: Succeeded, syncResult: {revisions: [abc, 1.2.3]}}}")
	assert.Equal(t, []handover.Source{{URL: "a", Ref: "main", Revision: "abc"}, {URL: "b", Ref: "1.x", Revision: "1.2.3"}, {URL: "d"}},
		seen.Sources)
	assert.Equal(t, []string{"abc", "1.2.3"}, seen.Operation.Revisions)
}

func TestApplication_IsAutomatedUnlessThatIsDisabled(t *testing.T) {
	for policy, want := range map[string]bool{
		"": false, "syncPolicy: {}": false, "syncPolicy: {retry: {limit: 1}}": false, "syncPolicy: {automated: {}}": true,
		"syncPolicy: {automated: {enabled: true}}": true, "syncPolicy: {automated: {enabled: false}}": false,
	} {
		assert.Equal(t, want, argoApplication(t, "", policy, "").Automated, policy)
	}
}

func TestApplication_IsInTheClusterOfArgoCDByNameOrAddress(t *testing.T) {
	for destination, want := range map[string]bool{
		"{}": false, "{name: in-cluster}": true, "{name: apps}": false, `{server: "https://kubernetes.default.svc"}`: true,
		`{server: "https://10.25.11.10:6443"}`: false,
	} {
		assert.Equal(t, want, argoApplication(t, "", "destination: "+destination, "").InCluster, destination)
	}
}

func TestApplication_IgnoresATrackingIdThatWasCopied(t *testing.T) {
	for id, want := range map[string]string{
		"root:argoproj.io/Application:argocd/web": "root", "tenant_root:argoproj.io/Application:argocd/web": "tenant_root",
		"root:argoproj.io/Application:argocd/api": "", "root:argoproj.io/AppProject:argocd/web": "", "root": "",
	} {
		assert.Equal(t, want, argoApplication(t, `annotations: {argocd.argoproj.io/tracking-id: "`+id+`"}`, "", "").Tracker, id)
	}
}

func TestCause_IsWhatTheComponentSaysThatFailed(t *testing.T) {
	for message, want := range map[string]string{
		"application destination is invalid": "application destination is invalid",
		"Failed to load target state: failed to generate manifest for source 1 of 1: rpc error: code = Unknown desc = " +
			"failed to list refs: authentication required": "failed to list refs: authentication required",
		"Failed to load target state: failed to generate manifest for source 1 of 1: rpc error: code = Unknown desc = Manifest generation " +
			"error (cached): CMP processing failed for application \"podinfo\": error generating manifests in cmp: rpc error: code = Unknown " +
			"desc = error generating manifests: `bash -c x` failed exit status 1: ${NONE} is not a setting\n": "error generating manifests: " +
			"`bash -c x` failed exit status 1: ${NONE} is not a setting",
	} {
		assert.Equal(t, want, cause(message))
	}
}
