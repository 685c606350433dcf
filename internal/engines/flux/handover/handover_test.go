package handover

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/healthtest"
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
	child.Workloads = []string{"Deployment podinfo/podinfo"}
	synced := func(items ...Object) health.Seen[Object] { return health.Seen[Object]{Synced: true, Items: items} }
	sets, pods := health.Seen[kube.Workload]{Synced: true}, health.Seen[kube.Pod]{Synced: true}
	for _, one := range [][2]string{
		{"flux-system", "flux-operator"}, {"flux-system", "source-controller"}, {"podinfo", "podinfo"}, {"cert-manager", "cert-manager"},
	} {
		labels := map[string]string{"app": one[1]}
		set := kube.Workload{
			Kind: "Deployment", Namespace: one[0], Name: one[1], Labels: map[string]string{}, Selector: labels,
			Observed: true, Desired: 1, Updated: 1,
		}
		switch one[1] {
		case "flux-operator":
			set.Release = "flux-operator"
		case "source-controller":
			set.Labels["app.kubernetes.io/part-of"] = "flux"
		case "cert-manager":
			set.Labels["helm.toolkit.fluxcd.io/namespace"], set.Labels["helm.toolkit.fluxcd.io/name"] = "cert-manager", "cert-manager"
		}
		sets.Items = append(sets.Items, set)
		pods.Items = append(pods.Items, kube.Pod{
			Namespace: one[0], Name: one[1] + "-5d8f", Labels: labels, Node: "infra-worker-1", Phase: "Running", Ready: true,
		})
	}
	return &Cluster{
		Workloads: sets, Pods: pods,
		Instances: synced(object("FluxInstance", "flux-system", "flux", "")), ResourceSets: synced(),
		GitSources: synced(git), OtherSources: synced(object("HelmRepository", "flux-system", "jetstack", "flux-system/infrastructure")),
		Kustomizations: synced(root, child, object("Kustomization", "tenant", "somebody-elses", "")),
		HelmReleases:   synced(object("HelmRelease", "cert-manager", "cert-manager", "flux-system/infrastructure")),
	}
}

// pull makes the pod of a Deployment wait for its image.
func (seen *Cluster) pull(index int) {
	pod := &seen.Pods.Items[index]
	pod.Ready, pod.Phase = false, "Pending"
	pod.Containers = []kube.Container{{Name: "manager", Image: "ghcr.io/x:1",
		State: `waiting: ImagePullBackOff: Back-off pulling image "ghcr.io/x:1"`}}
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
	for i := range 7 {
		seen := applied()
		if i == 6 {
			seen.Workloads = health.Seen[kube.Workload]{}
			assert.False(t, health.Hold(Evaluate(declared(), seen)), "workloads")
			continue
		}
		kinds := []*health.Seen[Object]{&seen.Instances, &seen.GitSources, &seen.OtherSources, &seen.Kustomizations, &seen.HelmReleases,
			&seen.ResourceSets}
		*kinds[i] = health.Seen[Object]{}
		assert.False(t, health.Hold(Evaluate(declared(), seen)), "kind %d", i)
	}
}

func TestHandover_AnObjectThatTheRootDidNotApplyIsNotJudged(t *testing.T) {
	seen := applied()
	seen.Kustomizations.Items[2].Ready = "False"
	assert.True(t, health.Hold(Evaluate(declared(), seen)))
}

// Kustomization and ResourceSet often have one name.
func TestHandover_WhatAResourceSetAppliesDescendsFromTheRoot(t *testing.T) {
	apply := func(change func(set, release *Object)) []health.Result {
		seen := applied()
		set := Object{
			Kind: "ResourceSet", Namespace: "flux-system", Name: "infrastructure", Owner: "flux-system/infrastructure", Current: true, Ready: "True",
		}
		release := Object{Kind: "HelmRelease", Namespace: "shop", Name: "shop", Owner: set.title(), Current: true, Ready: "True"}
		change(&set, &release)
		seen.ResourceSets.Items = append(seen.ResourceSets.Items, set)
		seen.HelmReleases.Items = append(seen.HelmReleases.Items, release)
		return Evaluate(declared(), seen)
	}
	assert.True(t, health.Hold(apply(func(_, _ *Object) {})))
	for title, change := range map[string]func(set, release *Object){
		"ResourceSet flux-system/infrastructure": func(set, _ *Object) {
			set.Ready, set.Reason, set.DependsOn = "False", dependencyNotReady, []string{"ResourceSet flux-system/crd"}
		},
		"HelmRelease shop/shop": func(_, release *Object) { release.Ready = "False" },
	} {
		failed := problems(apply(change))
		require.Len(t, failed, 1, title)
		assert.Equal(t, title, failed[0].Subject)
		assert.Contains(t, failed[0].Reason, "Ready is False")
	}
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
		// The texts are those of source-controller and kustomize-controller 1.9, helm-controller 1.6 and flux-operator 0.59.
		"git-host-answers-500": func(f *Cluster) {
			s := &f.GitSources.Items[0]
			s.Ready, s.Reason, s.Message = "False", "GitOperationFailed",
				"failed to checkout and determine revision: unable to list remote for 'https://git.home.arpa/platform/slipway.git': unexpected "+
					`client error: unexpected requesting "https://git.home.arpa/platform/slipway.git/info/refs?service=git-upload-pack" status code: 500`
		},
		"source-suspended": func(f *Cluster) { f.GitSources.Items[0].Suspended = true },
		"controller-image-cannot-be-pulled": func(f *Cluster) {
			f.pull(1)
			one := &f.Instances.Items[0]
			one.Ready, one.Reason, one.Message = "Unknown", "Progressing", "Reconciliation in progress"
		},
		"operator-image-cannot-be-pulled": func(f *Cluster) {
			f.pull(0)
			f.Instances.Items[0].Ready, f.Instances.Items[0].Current = "", false
		},
		"controllers-missing": func(f *Cluster) { f.Workloads.Items = nil },
		"version-unknown-to-the-operator": func(f *Cluster) {
			i := &f.Instances.Items[0]
			i.Ready, i.Reason, i.Message = "False", "BuildFailed",
				"build failed: no match found for semver: 2.99.x in /data/flux matching embedded minor versions in /data/flux"
		},
		"root-path-missing": func(f *Cluster) {
			r := &f.Kustomizations.Items[0]
			r.Ready, r.Reason, r.Message = "False", "ArtifactFailed",
				"kustomization path not found: stat /tmp/kustomization-2716862263/kubernetes/clusters/infra: no such file or directory"
		},
		"child-does-not-build": func(f *Cluster) {
			k := &f.Kustomizations.Items[1]
			k.Ready, k.Reason, k.Message = "False", "BuildFailed",
				"kustomize build failed: accumulating resources: accumulation err='accumulating resources from 'web.yaml': "+
					"MalformedYAMLError: yaml: line 4: mapping values are not allowed in this context in File: web.yaml'"
			f.pull(2) // an older problem, which is not the cause
		},
		"child-health-check-failed": func(f *Cluster) {
			k := &f.Kustomizations.Items[1]
			k.Ready, k.Reason, k.Message = "False", "HealthCheckFailed",
				"health check failed after 30.02s: timeout waiting for: [Deployment/podinfo/podinfo status: 'InProgress']"
			f.pull(2)
		},
		"child-waits-for-its-workloads": func(f *Cluster) {
			k := &f.Kustomizations.Items[1]
			k.Ready, k.Reason, k.Message = "Unknown", "Progressing", "Running health checks for revision "+revision+" with a timeout of 4m30s"
			k.Revision = ""
			f.pull(2)
		},
		"child-waits-for-one-that-fails": func(f *Cluster) {
			f.dependent("flux-system/infrastructure")
			f.Kustomizations.Items[1].Ready, f.Kustomizations.Items[1].Reason = "False", "BuildFailed"
		},
		"child-waits-for-a-suspended-one": func(f *Cluster) {
			f.dependent("flux-system/infrastructure")
			f.Kustomizations.Items[1].Suspended, f.Kustomizations.Items[1].Ready = true, ""
		},
		"child-waits-for-one-that-does-not-exist": func(f *Cluster) { f.dependent("flux-system/gone") },
		"child-waits-for-itself": func(f *Cluster) {
			f.dependent("flux-system/infrastructure")
			k := &f.Kustomizations.Items[1]
			k.DependsOn, k.Ready, k.Reason = []string{"Kustomization flux-system/apps"}, "False", "DependencyNotReady"
			k.Message = "dependency 'flux-system/apps' is not ready"
		},
		"release-waits-for-its-workloads": func(f *Cluster) {
			r := &f.HelmReleases.Items[0]
			r.Ready, r.Reason, r.Message = "Unknown", "Progressing", "Running 'install' action with timeout of 5m0s"
			f.pull(3)
		},
		"root-missing":           func(f *Cluster) { f.Kustomizations.Items = nil },
		"root-of-another-path":   func(f *Cluster) { f.Kustomizations.Items[0].Path = "./kubernetes/clusters/apps" },
		"root-suspended":         func(f *Cluster) { f.Kustomizations.Items[0].Suspended = true },
		"root-behind-the-source": func(f *Cluster) { f.Kustomizations.Items[0].Revision = "refs/heads/main@sha1:0000" },
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
	reports := healthtest.Begin(t, "handover", "(applied)", Evaluate(declared(), applied()))
	for name, breakIt := range cases {
		seen := applied()
		breakIt(seen)
		reports.Add(t, name, false, Evaluate(declared(), seen))
	}
	assert.Greater(t, reports.Compare(t), 3*len(Checks))
}

// dependent adds a Kustomization that waits for another.
func (seen *Cluster) dependent(on string) {
	seen.Kustomizations.Items = append(seen.Kustomizations.Items, Object{
		Kind: "Kustomization", Namespace: "flux-system", Name: "apps", Owner: "flux-system/flux-system", Current: true,
		DependsOn: []string{"Kustomization " + on}, Source: "GitRepository flux-system/flux-system",
		Ready: "False", Reason: "DependencyNotReady", Message: "dependency '" + on + "' is not ready",
	})
}

// A run that was killed while it removed what Flux had applied leaves the FluxInstance so.
func TestHandover_ASuspendedFluxInstanceThatHasMoreToDoIsToBeResumed(t *testing.T) {
	seen := applied()
	instance := &seen.Instances.Items[0]
	instance.Suspended = true
	assert.True(t, health.Hold(Evaluate(declared(), seen)), "it has done all")
	instance.Current = false
	failed := problems(Evaluate(declared(), seen))
	require.Len(t, failed, 1)
	assert.Equal(t, "is suspended; resume it", failed[0].Reason)
	assert.Equal(t, "kubectl -n flux-system annotate fluxinstance flux fluxcd.controlplane.io/reconcile-", failed[0].Command)
}

// Its generation grows with the deletion, which its controller need not note in the status.
func TestHandover_SaysThatAnObjectIsBeingDeleted(t *testing.T) {
	seen := applied()
	child := &seen.Kustomizations.Items[1]
	child.Deleting, child.Current = true, false
	failed := problems(Evaluate(declared(), seen))
	require.Len(t, failed, 1)
	assert.Equal(t, "is being deleted", failed[0].Reason)
	assert.NotEmpty(t, failed[0].Ask, "its events")
	child.Ready, child.Reason, child.Message = "False", "UninstallFailed", "timed out waiting for the condition"
	failed = problems(Evaluate(declared(), seen))
	require.Len(t, failed, 1)
	assert.Equal(t, "is being deleted; Ready is False: UninstallFailed: timed out waiting for the condition", failed[0].Reason)
}

func TestHandover_ASuspendedChildIsARemark(t *testing.T) {
	seen := applied()
	seen.Kustomizations.Items[1].Suspended, seen.Kustomizations.Items[1].Revision = true, "refs/heads/main@sha1:0000"
	results := Evaluate(declared(), seen)
	assert.True(t, health.Hold(results), "it is as declared, or as somebody wants it at the moment")
	assert.Contains(t, healthtest.Report(t, "handover", results), "Kustomization flux-system/infrastructure: is suspended")
}

// A push while it waits: the root and what it applies follow one after the other, and the source may be ahead of them all the time.
func TestHandover_HoldsWhileTheRevisionMoves(t *testing.T) {
	spec, seen := declared(), applied()
	for range 3 {
		seen.Note(spec)
		source, root, child := &seen.GitSources.Items[0], &seen.Kustomizations.Items[0], &seen.Kustomizations.Items[1]
		old := source.Revision
		source.Ready, source.Reason = "Unknown", "Progressing" // "building artifact: new upstream revision …"
		seen.Note(spec)
		assert.True(t, health.Hold(Evaluate(spec, seen)), "the source fetches the next")
		source.Ready, source.Reason, source.Revision = "True", "Succeeded", old+"1"
		seen.Note(spec)
		assert.True(t, health.Hold(Evaluate(spec, seen)), "the source is ahead")
		root.Ready, root.Reason = "Unknown", "Progressing"
		assert.True(t, health.Hold(Evaluate(spec, seen)), "the root applies the next")
		root.Ready, root.Revision = "True", source.Revision
		child.Ready, child.Reason = "Unknown", "Progressing"
		assert.True(t, health.Hold(Evaluate(spec, seen)), "a child applies the next")
		child.Ready, child.Reason = "False", "BuildFailed"
		assert.False(t, health.Hold(Evaluate(spec, seen)), "the push broke it")
		child.Ready, child.Revision = "True", source.Revision
	}
	assert.Len(t, seen.Fetched, 4)
}

func TestHandover_ARevisionFromBeforeTheWaitDoesNotCount(t *testing.T) {
	spec, seen := declared(), applied()
	seen.GitSources.Items[0].URL = "https://git.home.arpa/other.git" // the former repository
	seen.Note(spec)
	assert.Empty(t, seen.Fetched)
	source := &seen.GitSources.Items[0]
	source.URL, source.Revision = spec.URL, "refs/heads/main@sha1:2222"
	seen.Note(spec)
	assert.Equal(t, []string{source.Revision}, seen.Fetched)
	assert.False(t, health.Hold(Evaluate(spec, seen)))
	root := &seen.Kustomizations.Items[0]
	root.Ready, root.Reason = "Unknown", "Progressing"
	assert.False(t, health.Hold(Evaluate(spec, seen)), "it has applied nothing that was fetched")
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
	require.ErrorContains(t, spec.Validate(),
		"sourceKind: HelmRepository is not a kind of source; write GitRepository, OCIRepository or Bucket")
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
