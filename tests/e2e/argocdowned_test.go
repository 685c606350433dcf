//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ownedByArgoCD are releases that change their owner, with their namespaces.
var ownedByArgoCD = map[string]string{"cilium": "kube-system", "cert-manager": "cert-manager", "argocd": "argocd"}

// TestArgoCD_ComponentsChangeTheirOwnerWithoutARestart hands Cilium, cert-manager and Argo CD itself over to Argo CD and back.
func TestArgoCD_ComponentsChangeTheirOwnerWithoutARestart(t *testing.T) {
	t.Parallel()
	l := labOfArgoCD(t, "argocdowned", func(s settings) { delete(s["slipway:cilium"].(map[string]any), "version") })
	l.argoCDTree()
	l.commit("argocd", nil)
	comesUp(l)
	before := l.identitiesOf(ownedByArgoCD)
	generations := l.rolledOut()
	require.Greater(t, len(before), 60)

	l.writeReleases("cilium", "cert-manager", "argocd")
	l.applyPlatform(true)
	l.commit("hand over", ownedBy("argocd", nil))
	preview := l.pulumiSays(`(?s)Helm release \S+ goes from Pulumi to Argo CD; .*`, "preview", "--stack", "infra")
	require.Contains(t, preview, "cert-manager/cert-manager goes from Pulumi to Argo CD; chart, version and values are the same on both sides")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.platformIsApplied()
	require.Equal(t, before, l.identitiesOf(ownedByArgoCD), "handing over changes no object and no pod")
	require.Equal(t, generations, l.rolledOut(), "nothing is rolled out")
	require.NotContains(t, l.kubectl("get", "--namespace=cert-manager", "deployment/cert-manager", "--show-managed-fields",
		"--output=jsonpath={.metadata.managedFields[*].manager}"), "pulumi-resource-kubernetes", "what Git removes later goes")
	l.changesNothing()

	l.editRelease("cert-manager", "  valuesFrom:", "  values:\n    replicaCount: 2\n  valuesFrom:")
	l.commit("two replicas", nil)
	l.lookAtPlatform()
	replicas := func() string {
		return l.kubectl("get", "--namespace=cert-manager", "deployment/cert-manager", "--output=jsonpath={.status.readyReplicas}")
	}
	l.eventually("Argo CD rolls out a value of Git", func() bool { return replicas() == "2" })
	l.changesNothing()

	// A setting is part of the values that Slipway sets in Argo CD's own chart. Argo CD restarts its repo-server for it, and `up` waits.
	argoCDSettings(l)
	require.NotEqual(t, generations, l.rolledOut(), "Argo CD has rolled out its own repo-server")
	l.platformIsApplied()
	before, generations = l.identitiesOf(ownedByArgoCD), l.rolledOut()

	for release := range ownedByArgoCD {
		l.editRelease(release, "  valuesFrom:", "  suspend: true\n  valuesFrom:")
	}
	back := ownedBy("pulumi", map[string]any{"replicaCount": 2})
	editStackFile(t, l.stackFile("infra"), back)
	out, err := l.try("pulumi", "--non-interactive", "--color=never", "up", "--yes", "--skip-preview", "--stack", "infra")
	require.Error(t, err, "Pulumi has changed what Argo CD owns")
	require.Contains(t, out, "says that the Application platform applies the release, and Pulumi is to change it")
	l.commit("take back", nil)
	l.lookAtPlatform()
	l.eventually("Argo CD lets go", func() bool { return l.recordsOfArgoCD() == "" })
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(t, before, l.identitiesOf(ownedByArgoCD), "handing back changes no object and no pod")
	require.Equal(t, generations, l.rolledOut())
	l.changesNothing()

	l.applyPlatform(false)
	for release := range ownedByArgoCD {
		require.NoError(t, os.Remove(filepath.Join(l.project, "kubernetes", "clusters", "infra", "platform", release+".yaml")))
	}
	l.commit("no platform", nil)
	l.lookNow()
	l.eventually("the Application goes", func() bool { return !strings.Contains(strings.Join(l.applications(), "\n"), "platform ") })
	require.Equal(t, before, l.identitiesOf(ownedByArgoCD), "what it has applied stays")
	l.changesNothing()
	unprotectAndDestroy(l)
}

// TestArgoCD_ANewClusterInstallsWhatArgoCDOwns creates a cluster all of whose components belong to Argo CD from the first run.
func TestArgoCD_ANewClusterInstallsWhatArgoCDOwns(t *testing.T) {
	t.Parallel()
	l := labOfArgoCD(t, "argocdnew", func(s settings) { delete(s["slipway:cilium"].(map[string]any), "version") })
	l.argoCDTree()
	l.writeReleases("cilium", "coredns", "spegel", "cert-manager", "argocd")
	l.applyPlatform(true)
	l.commit("Argo CD owns all", func(s settings) {
		ownedBy("argocd", nil)(s)
		s.set("coreDNS", map[string]any{"owner": "argocd"})
		s.set("spegel", map[string]any{"owner": "argocd"})
	})
	comesUp(l)
	l.platformIsApplied()
	require.Len(t, strings.Fields(l.recordsOfArgoCD()), 5, "Argo CD owns all")
	for _, workload := range l.rolledOut() {
		require.Regexp(t, `=1$`, workload, "it was rolled out again")
	}
	l.changesNothing()
	unprotectAndDestroy(l)
}

// TestArgoCD_TakesOverCiliumThatTalosHasBroughtUp creates a cluster whose Cilium comes with the machine configuration, and changes
// it in Git.
func TestArgoCD_TakesOverCiliumThatTalosHasBroughtUp(t *testing.T) {
	t.Parallel()
	l := labOfArgoCD(t, "argocdinline", func(s settings) {
		delete(s["slipway:cilium"].(map[string]any), "version")
		s.set("cilium", map[string]any{"mode": "inline"})
	})
	l.argoCDTree()
	l.writeReleases("cilium")
	l.applyPlatform(true)
	inline := func(owner string) func(settings) {
		return func(s settings) { s.set("cilium", map[string]any{"mode": "inline", "owner": owner}) }
	}
	l.commit("Argo CD owns Cilium", inline("argocd"))
	comesUp(l)
	l.platformIsApplied()
	require.Equal(t, "cilium-values", l.recordsOfArgoCD())
	for _, workload := range l.rolledOut() {
		require.Regexp(t, `=1$|^cilium-operator=2$`, workload, "it was rolled out again; the operator once, by `up`, after the CRDs of gateways")
	}
	require.NotContains(t, l.kubectl("get", "secrets", "--namespace=kube-system", "--output=name"), "sh.helm.release.v1.cilium")
	l.changesNothing()

	l.editRelease("cilium", "  valuesFrom:", "  values:\n    podAnnotations: {of: git}\n  valuesFrom:")
	l.commit("an annotation of Cilium's pods", nil)
	l.lookAtPlatform()
	annotated := func() string {
		return l.kubectl("get", "--namespace=kube-system", "daemonset/cilium", "--output=jsonpath={.spec.template.metadata.annotations.of}"+
			" {.status.updatedNumberScheduled} {.status.numberReady}")
	}
	l.eventually("Argo CD rolls out a value of Git", func() bool { return annotated() == "git 1 1" })
	boots := l.boots()
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(t, boots, l.boots(), "the machine configuration follows without a reboot")
	l.changesNothing()
	before := l.identitiesOf(map[string]string{"cilium": "kube-system"})

	l.editRelease("cilium", "  valuesFrom:", "  suspend: true\n  valuesFrom:")
	l.commit("take back", func(s settings) {
		inline("pulumi")(s)
		s.set("cilium", map[string]any{"values": map[string]any{"podAnnotations": map[string]any{"of": "git"}}})
	})
	l.lookAtPlatform()
	l.eventually("Argo CD lets go", func() bool { return l.recordsOfArgoCD() == "" })
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(t, before, l.identitiesOf(map[string]string{"cilium": "kube-system"}), "taking back changes no object and no pod")
	l.changesNothing()
	unprotectAndDestroy(l)
}

// ownedBy gives the components an owner, and cert-manager the values that are its own in the stack file.
func ownedBy(owner string, certManager map[string]any) func(settings) {
	return func(s settings) {
		s.set("cilium", map[string]any{"owner": owner})
		s.set("certManager", map[string]any{"owner": owner})
		if certManager != nil {
			s.set("certManager", map[string]any{"values": certManager})
		}
		s.set("gitops", map[string]any{"argocd": map[string]any{"owner": owner}})
	}
}

// applyPlatform adds the Application of the owned components to the cluster's folder, or removes it.
func (l *lab) applyPlatform(applies bool) {
	l.t.Helper()
	file := filepath.Join(l.project, "kubernetes", "clusters", "infra", "kustomization.yaml")
	text, err := os.ReadFile(file)
	require.NoError(l.t, err)
	const line = "  - platform.yaml\n"
	is := strings.Replace(string(text), line, "", 1)
	if applies {
		is += line
	}
	require.NoError(l.t, os.WriteFile(file, []byte(is), 0o600))
	if !applies {
		require.NoError(l.t, os.Remove(filepath.Join(filepath.Dir(file), "platform.yaml")))
	}
}

// lookAtPlatform makes Argo CD render the owned components at once.
func (l *lab) lookAtPlatform() {
	l.t.Helper()
	l.lookNow()
	l.kubectl("annotate", "--namespace=argocd", "--overwrite", "application/platform", "argocd.argoproj.io/refresh=hard")
}

// platformIsApplied waits until Argo CD has applied the owned components at the newest commit.
func (l *lab) platformIsApplied() {
	l.t.Helper()
	l.lookNow()
	l.eventually("Argo CD owns its components", func() bool {
		for _, one := range l.applications() {
			if one == "platform Synced Healthy "+l.head() {
				return true
			}
		}
		return false
	})
}

// recordsOfArgoCD returns the names of the records of what Argo CD owns.
func (l *lab) recordsOfArgoCD() string {
	l.t.Helper()
	var names []string
	for name := range strings.FieldsSeq(l.kubectl("get", "--namespace=argocd", "configmaps", "--output=jsonpath={.items[*].metadata.name}")) {
		if strings.HasSuffix(name, "-values") {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// rolledOut returns each workload of the owned components with the number of its rollouts: a Deployment's generation also grows with an
// annotation.
func (l *lab) rolledOut() (all []string) {
	l.t.Helper()
	for _, namespace := range []string{"argocd", "cert-manager", "kube-system"} {
		for kinds, field := range map[string]string{
			"deployments": `.metadata.annotations.deployment\.kubernetes\.io/revision`, "daemonsets,statefulsets": ".metadata.generation",
		} {
			lines := l.kubectl("get", "--namespace="+namespace, kinds, `--output=jsonpath={range .items[*]}{.metadata.name}={`+field+`}{"\n"}{end}`)
			all = append(all, strings.Fields(lines)...)
		}
	}
	slices.Sort(all)
	return all
}
