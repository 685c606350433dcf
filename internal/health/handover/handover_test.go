package handover

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/healthtest"
	"github.com/slipway-platform/slipway/internal/probe"
)

const revision = "refs/heads/main@sha1:1111111111111111111111111111111111111111"

func declared() *Spec {
	spec := &Spec{
		Target: health.Target{Cluster: "infra", Kubeconfig: "k"},
		URL:    "https://git.home.arpa/platform/slipway.git", Ref: "main", Path: "kubernetes/clusters/infra",
	}
	spec.SetDefaults()
	return spec
}

// applied is a cluster in which Flux has applied everything.
func applied() *Cluster {
	source := "GitRepository flux-system/flux-system"
	object := func(kind, namespace, name, owner string) Object {
		return Object{Kind: kind, Namespace: namespace, Name: name, Owner: owner, Current: true, Ready: "True"}
	}
	git := object("GitRepository", "flux-system", "flux-system", "")
	git.URL, git.Ref, git.Revision = "https://git.home.arpa/platform/slipway.git", "refs/heads/main", revision
	root := object("Kustomization", "flux-system", "flux-system", "")
	root.Path, root.Revision, root.Source = "./kubernetes/clusters/infra", revision, source
	root.Inventory = []string{"Kustomization flux-system/infrastructure"}
	child := object("Kustomization", "flux-system", "infrastructure", "flux-system/flux-system")
	child.Path, child.Revision, child.Source = "./kubernetes/infrastructure", revision, source
	synced := func(items ...Object) health.Seen[Object] { return health.Seen[Object]{Synced: true, Items: items} }
	return &Cluster{
		Instances:  synced(object("FluxInstance", "flux-system", "flux", "")),
		GitSources: synced(git), OtherSources: synced(object("HelmRepository", "flux-system", "jetstack", "flux-system/infrastructure")),
		Kustomizations: synced(root, child, object("Kustomization", "tenant", "somebody-elses", "")),
		HelmReleases:   synced(object("HelmRelease", "cert-manager", "cert-manager", "flux-system/infrastructure")),
	}
}

func TestHandover_HoldsWhenEverythingIsApplied(t *testing.T) {
	spec := declared()
	results := Evaluate(spec, applied())
	assert.True(t, health.Hold(results), "%v", results)
	assert.Equal(t, revision, applied().AppliedRevision(spec))
}

func TestHandover_DoesNotHoldBeforeAnythingWasRead(t *testing.T) {
	assert.False(t, health.Hold(Evaluate(declared(), &Cluster{})))
}

func TestHandover_DoesNotHoldBeforeEveryKindWasRead(t *testing.T) {
	for i := range 5 {
		seen := applied()
		kinds := []*health.Seen[Object]{&seen.Instances, &seen.GitSources, &seen.OtherSources, &seen.Kustomizations, &seen.HelmReleases}
		*kinds[i] = health.Seen[Object]{}
		assert.False(t, health.Hold(Evaluate(declared(), seen)), "kind %d", i)
	}
}

func TestHandover_AnObjectThatTheRootDidNotApplyIsNotJudged(t *testing.T) {
	seen := applied()
	seen.Kustomizations.Items[2].Ready = "False"
	assert.True(t, health.Hold(Evaluate(declared(), seen)))
}

func TestHandover_AFailureNamesTheStuckObjectAndItsReason(t *testing.T) {
	cases := map[string]func(*Cluster){
		"crds-missing": func(f *Cluster) {
			f.Instances = health.Seen[Object]{Err: &health.Broken{Reason: "the API server does not know fluxinstances.fluxcd.controlplane.io yet"}}
		},
		"instance-missing": func(f *Cluster) { f.Instances.Items = nil },
		"instance-not-ready": func(f *Cluster) {
			f.Instances.Items[0].Ready, f.Instances.Items[0].Reason, f.Instances.Items[0].Message = "False", "HealthCheckFailed",
				"Deployment/flux-system/source-controller: not ready"
		},
		"instance-behind-its-spec": func(f *Cluster) { f.Instances.Items[0].Current = false },
		"git-credentials-refused": func(f *Cluster) {
			s := &f.GitSources.Items[0]
			s.Ready, s.Reason, s.Message, s.Revision = "False", "GitOperationFailed",
				"failed to checkout and determine revision: authentication required: Unauthorized", ""
			f.Kustomizations.Items[0] = Object{
				Kind: "Kustomization", Namespace: "flux-system", Name: "flux-system", Path: "./kubernetes/clusters/infra",
				Current: true, Ready: "False", Reason: "ArtifactFailed", Message: "Source artifact not found, retrying in 30s",
			}
		},
		"git-url-of-another-repository": func(f *Cluster) { f.GitSources.Items[0].URL = "https://git.home.arpa/other.git" },
		"git-ref-of-another-branch":     func(f *Cluster) { f.GitSources.Items[0].Ref = "refs/heads/dev" },
		"git-nothing-fetched":           func(f *Cluster) { f.GitSources.Items[0].Revision = "" },
		"root-missing":                  func(f *Cluster) { f.Kustomizations.Items = nil },
		"root-of-another-path":          func(f *Cluster) { f.Kustomizations.Items[0].Path = "./kubernetes/clusters/apps" },
		"root-suspended":                func(f *Cluster) { f.Kustomizations.Items[0].Suspended = true },
		"root-behind-the-source":        func(f *Cluster) { f.Kustomizations.Items[0].Revision = "refs/heads/main@sha1:0000" },
		"child-stuck": func(f *Cluster) {
			f.Kustomizations.Items[1].Ready, f.Kustomizations.Items[1].Reason, f.Kustomizations.Items[1].Message = "False", "BuildFailed",
				"kustomization.yaml not found"
		},
		"child-behind-the-source": func(f *Cluster) { f.Kustomizations.Items[1].Revision = "refs/heads/main@sha1:0000" },
		"child-not-created":       func(f *Cluster) { f.Kustomizations.Items = f.Kustomizations.Items[:1] },
		"grandchild-release-failed": func(f *Cluster) {
			f.HelmReleases.Items[0].Ready, f.HelmReleases.Items[0].Reason, f.HelmReleases.Items[0].Message = "False", "InstallFailed",
				"timed out waiting for the condition"
		},
	}
	base := healthtest.Report(t, "handover", Evaluate(declared(), applied()))
	reports := map[string]string{"(applied)": base}
	for name, breakIt := range cases {
		seen := applied()
		breakIt(seen)
		results := Evaluate(declared(), seen)
		assert.False(t, health.Hold(results), name)
		reports[name] = healthtest.Differing(base, healthtest.Report(t, "handover", results))
		assert.NotEmpty(t, reports[name], name)
	}
	assert.Greater(t, len(reports), 3*len(Checks))
	healthtest.Cases(t, "reports.txt", reports)
}

func TestHandover_JudgesTheSourceOfTheDeclaredKind(t *testing.T) {
	for _, kind := range []string{OCIRepository, Bucket} {
		spec, seen := declared(), applied()
		spec.SourceKind, spec.URL, spec.Ref = kind, "s3.example.com:9000", "main"
		source := seen.GitSources.Items[0]
		source.Kind, source.URL, source.Ref = kind, "s3.example.com:9000", "main"
		seen.OtherSources.Items = append(seen.OtherSources.Items, source)
		root := &seen.Kustomizations.Items[0]
		root.Source = source.title()
		assert.True(t, health.Hold(Evaluate(spec, seen)), "%v", Evaluate(spec, seen))

		root.Revision = "main@sha256:0000"
		assert.False(t, health.Hold(Evaluate(spec, seen)), "the revision of another source with the same name does not count")
		root.Revision = revision
		seen.OtherSources.Items = seen.OtherSources.Items[:1]
		assert.Equal(t, kind+" flux-system/flux-system", problems(Evaluate(spec, seen))[0].Subject)
	}
}

func problems(results []health.Result) (failed []health.Result) {
	for _, result := range results {
		if result.Verdict == health.Failed {
			failed = append(failed, result)
		}
	}
	return failed
}

func TestSpec_RefusesAnUnknownKindOfSource(t *testing.T) {
	spec := declared()
	spec.SourceKind = "HelmRepository"
	require.ErrorContains(t, spec.Validate(), "sourceKind: HelmRepository is not a kind of source; write GitRepository, OCIRepository or Bucket")
}

func TestHandover_OwnersInACircleDoNotDescendFromTheRoot(t *testing.T) {
	ring := []Object{{Namespace: "n", Name: "a", Owner: "n/b"}, {Namespace: "n", Name: "b", Owner: "n/a"}}
	assert.False(t, descends(ring[0], "flux-system/flux-system", ring))
}

func TestSpec_RefusesAURLWithAPasswordWithoutQuotingIt(t *testing.T) {
	spec := declared()
	spec.URL = "https://flux:hunter2@git.home.arpa/x.git"
	require.ErrorContains(t, spec.Validate(), "holds a password")
	assert.NotContains(t, spec.Validate().Error(), "hunter2")
}

func TestSpec_ComesBackAsItWasEncodedWithDefaultsSet(t *testing.T) {
	spec := declared()
	text, err := probe.Encode(&Spec{Target: health.Target{Cluster: "infra", Kubeconfig: "k"}, URL: spec.URL, Ref: spec.Ref, Path: spec.Path})
	require.NoError(t, err)
	read := new(Spec)
	require.NoError(t, probe.Read(strings.NewReader(text), read))
	assert.Equal(t, spec, read)
}
