//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGitOps_ComponentsChangeTheirOwnerWithoutARestart hands Cilium and cert-manager over to Flux and back. A run is killed on both ways.
func TestGitOps_ComponentsChangeTheirOwnerWithoutARestart(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "owned", func(s settings) {
		for i := range 2 {
			s.pool(i)["nodes"] = s.pool(i)["nodes"].([]any)[:1]
		}
		delete(s["slipway:cilium"].(map[string]any), "version")
	})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	before := l.identities()
	require.Greater(t, len(before), 60)

	l.writeReleases("cilium", "cert-manager")
	l.change("hand over", func(s settings) {
		s.set("cilium", map[string]any{"owner": "flux"})
		s.set("certManager", map[string]any{"owner": "flux"})
	})
	preview := l.pulumiSays(`(?s)Helm release \S+ goes from Pulumi to Flux; .* same on both sides.*`, "preview", "--stack", "infra")
	require.Contains(t, preview, "cert-manager/cert-manager goes from Pulumi to Flux; chart, version and values are the same on both sides")
	require.Contains(t, preview, "kube-system/cilium goes from Pulumi to Flux; every object is the same on both sides")
	l.killedUpgradeIsCompleted()
	l.eventually("Flux owns both", func() bool {
		return l.releases("{.items[*].status.conditions[?(@.type=='Ready')].status}") == "True True"
	})
	require.Equal(t, before, l.identities(), "handing over changes no object and no pod")
	l.changesNothing()

	l.editRelease("cert-manager", "  valuesFrom:", "  values:\n    replicaCount: 2\n  valuesFrom:")
	l.change("two replicas", nil)
	replicas := func() string {
		return l.kubectl("get", "--namespace=cert-manager", "deployment/cert-manager", "--output=jsonpath={.status.readyReplicas}")
	}
	l.eventually("Flux rolls out a value of Git", func() bool { return replicas() == "2" })
	l.changesNothing()
	require.Equal(t, "2", replicas())
	before = l.identities()

	for _, release := range []string{"cilium", "cert-manager"} {
		l.editRelease(release, "  valuesFrom:", "  suspend: true\n  valuesFrom:")
	}
	edit := func(s settings) {
		s.set("cilium", map[string]any{"owner": "pulumi"})
		s.set("certManager", map[string]any{"owner": "pulumi", "values": map[string]any{"replicaCount": 2}})
	}
	editStackFile(t, filepath.Join(l.project, "Pulumi.infra.yaml"), edit)
	out, err := l.try("pulumi", "--non-interactive", "--color=never", "up", "--yes", "--skip-preview", "--stack", "infra")
	require.Error(t, err, "Pulumi has changed what Flux owns")
	require.Contains(t, out, "is active in the cluster, and Pulumi is to change its release")
	l.change("take back", edit)
	l.eventually("Flux lets go", func() bool { return l.releases("{.items[*].spec.suspend}") == "true true" })
	l.killedUpgradeIsCompleted()
	require.Equal(t, before, l.identities(), "handing back changes no object and no pod")
	l.changesNothing()
	unprotectAndDestroy(l)
}

// TestGitOps_ANewClusterInstallsWhatFluxOwns creates a cluster all of whose components belong to Flux from the first run. Flux finds each
// as its file says: it rolls nothing out again. A value that Slipway changes reaches the component by Flux, while `up` waits for its
// effect.
func TestGitOps_ANewClusterInstallsWhatFluxOwns(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "fluxowned", func(s settings) {
		for i := range 2 {
			s.pool(i)["nodes"] = s.pool(i)["nodes"].([]any)[:1]
		}
		delete(s["slipway:cilium"].(map[string]any), "version")
	})
	components := []string{
		"cilium", "coredns", "spegel", "cert-manager", "sealed-secrets", "connect", "external-secrets", "flux-operator",
	}
	l.writeReleases(components...)
	flux := map[string]any{"owner": "flux"}
	l.commit("flux owns all", func(s settings) {
		for _, section := range []string{"cilium", "coreDNS", "spegel", "certManager"} {
			s.set(section, flux)
		}
		s.set("gitops", map[string]any{"operator": flux})
		onepassword := s["slipway:secrets"].(map[string]any)["onepassword"].(map[string]any)
		onepassword["connect"], onepassword["operator"] = flux, flux
		s.set("secrets", map[string]any{"sealedSecrets": flux})
	})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.eventually("Flux owns all", func() bool {
		return l.releases("{.items[*].status.conditions[?(@.type=='Ready')].status}") == strings.TrimSpace(strings.Repeat("True ", len(components)))
	})
	revisions := l.kubectl("get", "--all-namespaces", "deployments", "--selector=app.kubernetes.io/managed-by=Helm",
		`--output=jsonpath={range .items[*]}{.metadata.name} {.metadata.annotations.deployment\.kubernetes\.io/revision}{"\n"}{end}`)
	require.NotEmpty(t, revisions)
	for line := range strings.Lines(revisions) {
		require.Regexp(t, ` 1$`, strings.TrimSpace(line), "a Deployment was rolled out again")
	}
	require.Equal(t, "1 1", l.kubectl("get", "--namespace=kube-system", "daemonsets", "cilium", "cilium-envoy",
		"--output=jsonpath={.items[*].metadata.generation}"))
	l.changesNothing()

	// The controller reads its keys when it starts, and only Flux can start it again.
	l.commit("another key", func(s settings) {
		s["slipway:secrets"].(map[string]any)["sealedSecrets"].(map[string]any)["keyPairs"] = 2
	})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.changesNothing()
	unprotectAndDestroy(l)
}

// TestGitOps_TakesOverCiliumThatTalosHasBroughtUp creates a cluster whose Cilium comes with the machine configuration, and changes
// it in Git.
func TestGitOps_TakesOverCiliumThatTalosHasBroughtUp(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "fluxinline", func(s settings) {
		oneNode(s)
		delete(s["slipway:cilium"].(map[string]any), "version")
	})
	l.smallFluxTree()
	l.writeReleases("cilium")
	l.commit("Flux owns Cilium", func(s settings) { s.set("cilium", map[string]any{"mode": "inline", "owner": "flux"}) })
	comesUp(l)
	ready := func() bool { return l.releases("{.items[*].status.conditions[?(@.type=='Ready')].status}") == "True" }
	l.eventually("Flux owns Cilium", ready)
	agents := func() string {
		return l.field("daemonset/cilium", "{.metadata.generation} {.spec.template.metadata.annotations.of} {.status.numberReady}")
	}
	require.Equal(t, "1  1", agents(), "nothing is rolled out")
	l.changesNothing()
	l.editRelease("cilium", "  valuesFrom:", "  values:\n    podAnnotations: {of: git}\n  valuesFrom:")
	l.change("annotated", nil)
	l.eventually("Flux rolls out a value of Git", func() bool { return agents() == "2 git 1" })
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.changesNothing()
	unprotectAndDestroy(l)
}

// writeReleases writes the files with which Flux takes over components.
func (l *lab) writeReleases(components ...string) {
	l.t.Helper()
	write := exec.CommandContext(l.t.Context(), "go", append([]string{"run", "./cmd/config-check", "handover", "infra"}, components...)...)
	write.Dir = l.project
	said, err := write.CombinedOutput()
	require.NoError(l.t, err, "%s", said)
}

// killedUpgradeIsCompleted kills a run while Helm upgrades Cilium, and runs another one.
func (l *lab) killedUpgradeIsCompleted() {
	l.t.Helper()
	newest := 0
	for _, record := range l.records() {
		newest = max(newest, record)
	}
	up := l.up("infra")
	up.reaches("Helm upgrades Cilium", func() bool { return slices.Contains(l.records(), newest+1) })
	up.kill("infra")
	l.pulumiSays(pendingOperations, "up", "--yes", "--skip-preview", "--stack", "infra")
	l.pulumiSays(pendingOperations, "refresh", "--clear-pending-creates", "--yes", "--skip-preview", "--stack", "infra")
}

// records returns the revisions of Cilium's release that Pulumi has made.
func (l *lab) records() []int {
	l.t.Helper()
	var revisions []int
	for _, text := range strings.Fields(l.kubectl("get", "--namespace=kube-system", "secrets", "--selector=owner=helm,name=cilium",
		"--output=jsonpath={.items[*].metadata.labels.version}")) {
		revision, err := strconv.Atoi(text)
		require.NoError(l.t, err)
		revisions = append(revisions, revision)
	}
	return revisions
}

// changesNothing checks that Pulumi finds nothing to do, also after a refresh.
func (l *lab) changesNothing() {
	l.t.Helper()
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	l.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	l.pulumi("preview", "--expect-no-changes", "--stack", "infra")
}

// change commits, and makes Flux fetch it at once.
func (l *lab) change(message string, edit func(settings)) {
	l.t.Helper()
	l.commit(message, edit)
	l.kubectl("annotate", "--namespace=flux-system", "--overwrite", "gitrepository/flux-system", "reconcile.fluxcd.io/requestedAt="+message)
}

// commit edits infra's stack file, and commits everything.
func (l *lab) commit(message string, edit func(settings)) {
	l.t.Helper()
	if edit != nil {
		editStackFile(l.t, filepath.Join(l.project, "Pulumi.infra.yaml"), edit)
	}
	runGit(l.t, "-C", l.project, "add", "--all")
	runGit(l.t, "-C", l.project, "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message", message)
}

// editRelease changes the text of the file of a release.
func (l *lab) editRelease(release, was, is string) {
	l.t.Helper()
	file := filepath.Join(l.project, "kubernetes", "clusters", "infra", "platform", release+".yaml")
	text, err := os.ReadFile(file)
	require.NoError(l.t, err)
	require.Contains(l.t, string(text), was)
	require.NoError(l.t, os.WriteFile(file, []byte(strings.Replace(string(text), was, is, 1)), 0o600))
}

// releases returns a field of all HelmReleases.
func (l *lab) releases(path string) string {
	l.t.Helper()
	return l.kubectl("get", "--namespace=flux-system", "helmreleases", "--output=jsonpath="+path)
}

// identities returns the objects of Cilium and cert-manager with their UIDs, and the pods with their restarts, too.
func (l *lab) identities() []string {
	l.t.Helper()
	return l.identitiesOf(map[string]string{"cilium": "kube-system", "cert-manager": "cert-manager"})
}

// identitiesOf returns them for releases with their namespaces. Pods of Jobs come and go.
func (l *lab) identitiesOf(releases map[string]string) []string {
	l.t.Helper()
	const object = `{.kind} {.metadata.namespace}/{.metadata.name} {.metadata.uid}`
	var all []string
	for line := range strings.Lines(l.kubectl("get", "--all-namespaces", "--selector=app.kubernetes.io/managed-by=Helm",
		"daemonsets,deployments,configmaps,secrets,services,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,"+
			"mutatingwebhookconfigurations,validatingwebhookconfigurations",
		"--output=jsonpath={range .items[*]}{.metadata.annotations.meta\\.helm\\.sh/release-name} "+object+`{"\n"}{end}`)) {
		if release, _, _ := strings.Cut(line, " "); releases[release] != "" {
			all = append(all, line)
		}
	}
	for _, namespace := range releases {
		all = slices.AppendSeq(all, strings.Lines(l.kubectl("get", "--namespace="+namespace, "pods", "--selector=!job-name",
			"--output=jsonpath={range .items[*]}"+object+` {.status.containerStatuses[*].restartCount}{"\n"}{end}`)))
	}
	slices.Sort(all)
	return all
}
