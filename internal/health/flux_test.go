package health

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/probe"
)

const revision = "refs/heads/main@sha1:1111111111111111111111111111111111111111"

func handoverSpec() *HandoverSpec {
	spec := &HandoverSpec{
		Cluster: "infra", Kubeconfig: "k", URL: "https://git.home.arpa/platform/slipway.git", Ref: "main", Path: "kubernetes/clusters/infra",
	}
	spec.SetDefaults()
	return spec
}

// applied is what is seen when Flux has done all of its work.
func applied() *Flux {
	source := "GitRepository flux-system/flux-system"
	object := func(kind, namespace, name, owner string) FluxObject {
		return FluxObject{Kind: kind, Namespace: namespace, Name: name, Owner: owner, Current: true, Ready: "True"}
	}
	git := object("GitRepository", "flux-system", "flux-system", "")
	git.URL, git.Ref, git.Revision = "https://git.home.arpa/platform/slipway.git", "refs/heads/main", revision
	root := object("Kustomization", "flux-system", "flux-system", "")
	root.Path, root.Revision, root.Source = "./kubernetes/clusters/infra", revision, source
	root.Inventory = []string{"Kustomization flux-system/infrastructure"}
	child := object("Kustomization", "flux-system", "infrastructure", "flux-system/flux-system")
	child.Path, child.Revision, child.Source = "./kubernetes/infrastructure", revision, source
	synced := func(items ...FluxObject) Seen[FluxObject] { return Seen[FluxObject]{Synced: true, Items: items} }
	return &Flux{
		Instances:  synced(object("FluxInstance", "flux-system", "flux", "")),
		GitSources: synced(git), OtherSources: synced(object("HelmRepository", "flux-system", "jetstack", "flux-system/infrastructure")),
		Kustomizations: synced(root, child, object("Kustomization", "tenant", "somebody-elses", "")),
		HelmReleases:   synced(object("HelmRelease", "cert-manager", "cert-manager", "flux-system/infrastructure")),
	}
}

func TestHandover_HoldsWhenEverythingIsApplied(t *testing.T) {
	spec := handoverSpec()
	results := Evaluate(HandoverChecks(spec), applied())
	assert.True(t, Hold(results), "%v", results)
	assert.Equal(t, revision, applied().AppliedRevision(spec))
}

func TestHandover_OfNothingSeenDoesNotHold(t *testing.T) {
	assert.False(t, Hold(Evaluate(HandoverChecks(handoverSpec()), &Flux{})))
}

func TestHandover_WhatTheRootDidNotApplyIsNotWaitedFor(t *testing.T) {
	seen := applied()
	seen.Kustomizations.Items[2].Ready = "False"
	assert.True(t, Hold(Evaluate(HandoverChecks(handoverSpec()), seen)))
}

func TestHandover_AFailureNamesTheStuckObjectAndItsReason(t *testing.T) {
	cases := map[string]func(*Flux){
		"crds-missing": func(f *Flux) {
			f.Instances = Seen[FluxObject]{Err: &Broken{Reason: "the API server does not know fluxinstances.fluxcd.controlplane.io yet"}}
		},
		"instance-missing": func(f *Flux) { f.Instances.Items = nil },
		"instance-not-ready": func(f *Flux) {
			f.Instances.Items[0].Ready, f.Instances.Items[0].Reason, f.Instances.Items[0].Message = "False", "HealthCheckFailed", "Deployment/flux-system/source-controller: not ready"
		},
		"instance-behind-its-spec": func(f *Flux) { f.Instances.Items[0].Current = false },
		"git-credentials-refused": func(f *Flux) {
			s := &f.GitSources.Items[0]
			s.Ready, s.Reason, s.Message, s.Revision = "False", "GitOperationFailed", "failed to checkout and determine revision: authentication required: Unauthorized", ""
			f.Kustomizations.Items[0] = FluxObject{Kind: "Kustomization", Namespace: "flux-system", Name: "flux-system", Path: "./kubernetes/clusters/infra", Current: true, Ready: "False",
				Reason: "ArtifactFailed", Message: "Source artifact not found, retrying in 30s"}
		},
		"git-url-of-another-repository": func(f *Flux) { f.GitSources.Items[0].URL = "https://git.home.arpa/other.git" },
		"git-ref-of-another-branch":     func(f *Flux) { f.GitSources.Items[0].Ref = "refs/heads/dev" },
		"git-nothing-fetched":           func(f *Flux) { f.GitSources.Items[0].Revision = "" },
		"root-missing":                  func(f *Flux) { f.Kustomizations.Items = nil },
		"root-of-another-path":          func(f *Flux) { f.Kustomizations.Items[0].Path = "./kubernetes/clusters/apps" },
		"root-suspended":                func(f *Flux) { f.Kustomizations.Items[0].Suspended = true },
		"root-behind-the-source":        func(f *Flux) { f.Kustomizations.Items[0].Revision = "refs/heads/main@sha1:0000" },
		"child-stuck": func(f *Flux) {
			f.Kustomizations.Items[1].Ready, f.Kustomizations.Items[1].Reason, f.Kustomizations.Items[1].Message = "False", "BuildFailed", "kustomization.yaml not found"
		},
		"child-behind-the-source": func(f *Flux) { f.Kustomizations.Items[1].Revision = "refs/heads/main@sha1:0000" },
		"child-not-created":       func(f *Flux) { f.Kustomizations.Items = f.Kustomizations.Items[:1] },
		"grandchild-release-failed": func(f *Flux) {
			f.HelmReleases.Items[0].Ready, f.HelmReleases.Items[0].Reason, f.HelmReleases.Items[0].Message = "False", "InstallFailed", "timed out waiting for the condition"
		},
	}
	for name, breakIt := range cases {
		t.Run(name, func(t *testing.T) {
			seen := applied()
			breakIt(seen)
			results := Evaluate(HandoverChecks(handoverSpec()), seen)
			assert.False(t, Hold(results))
			full := NewReport("handover", "infra", probe.Duration(DefaultStableFor), End{Outcome: Closed, Results: results, Waited: time.Minute}, 42)
			var text strings.Builder
			require.NoError(t, full.Write(&text))
			golden(t, "handover/"+name, text.String())
		})
	}
}

func TestHandover_OwnersInACircleAreNobodysDescendants(t *testing.T) {
	ring := []FluxObject{{Namespace: "n", Name: "a", Owner: "n/b"}, {Namespace: "n", Name: "b", Owner: "n/a"}}
	assert.False(t, descends(ring[0], "flux-system/flux-system", ring))
}
