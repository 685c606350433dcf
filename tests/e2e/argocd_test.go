//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestArgoCD_TakesOverWhatFluxWould brings a cluster up to Argo CD, with the tree for it, and changes everything that the handover must
// notice: settings, commits, credentials. What is stuck is named. Then the cluster goes from Argo CD to Flux and back, and no workload
// notices.
func TestArgoCD_TakesOverWhatFluxWould(t *testing.T) {
	t.Parallel()
	l := labOfArgoCD(t, "argocd")
	for _, part := range []struct {
		name string
		test func(*lab)
	}{
		{"a cluster comes up to Argo CD", argoCDComesUp},
		{"a changed setting is in every manifest when the run ends", argoCDSettings},
		{"a commit is applied, and what it removes is removed", argoCDCommits},
		{"what does not come up is named", argoCDNames},
		{"a wrong choice is put right by the stack file alone", argoCDChoices},
		{"refused credentials are named, and new ones tried", argoCDCredentials},
		{"Argo CD goes, Flux comes, and what runs stays", argoCDToFlux},
		{"Flux goes, Argo CD comes, and what runs stays", fluxToArgoCD},
		{"everything that Argo CD has applied goes with it", argoCDDeletes},
	} {
		l.part(part.name, part.test)
	}
	unprotectAndDestroy(l)
}

// labOfArgoCD starts a lab of one node, whose folder has Applications.
func labOfArgoCD(t *testing.T, name string, more ...func(settings)) *lab {
	t.Helper()
	l := labOfShape(t, name, func(s settings) {
		oneNode(s)
		delete(s, "slipway:secrets")
		s.set("gitops", map[string]any{"engine": "argocd", "timeout": "8m"})
		s["slipway:gitops"].(map[string]any)["settings"] = map[string]any{"DOMAIN": "infra.home.arpa", "KEYS": "git"}
		for _, edit := range more {
			edit(s)
		}
	})
	return l
}

// argoCDTree writes the cluster's folder: the Applications of the areas, and one of a workload.
func (l *lab) argoCDTree(more ...string) {
	l.t.Helper()
	folder := filepath.Join(l.project, "kubernetes", "clusters", "infra")
	write := func(name, text string) {
		require.NoError(l.t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	kustomization := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" +
		"components:\n  - ../../argocd/application\nresources:\n"
	for _, area := range areasOfArgoCD {
		kustomization += "  - ../../argocd/" + area + "\n"
	}
	write("kustomization.yaml", kustomization+"  - podinfo.yaml\n")
	write("podinfo.yaml", `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: podinfo
  annotations:
    argocd.argoproj.io/sync-wave: "4"
spec:
  source:
    path: kubernetes/apps/podinfo
`+strings.Join(more, ""))
}

// areasOfArgoCD are the areas of the tree but for observability: in the lab, nothing says that an object of VictoriaMetrics' operator
// works, and Argo CD waits for that.
var areasOfArgoCD = []string{"networking", "security", "scheduling", "storage", "databases", "backup"}

func argoCDComesUp(l *lab) {
	l.argoCDTree()
	l.commit("argocd", nil)
	comesUp(l)
	l.apply("infra", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "own", "namespace": "argocd"},
		"data": map[string]any{"stays": "yes"}})
	l.appliedByArgoCD()
	t := l.t
	require.Equal(t, `[{"start":"10.25.11.100","stop":"10.25.11.150"}]`, l.field("ciliumloadbalancerippool/infra", "{.spec.blocks}"),
		"settings are replaced")
	require.Equal(t, "podinfo.infra.home.arpa", l.host())
	require.Empty(t, l.kubectl("get", "namespaces", "--field-selector=metadata.name=flux-system", "--output=name"), "nothing of Flux is there")
	state := l.secret("pulumi", "stack", "export", "--stack", "infra", "--show-secrets")
	admin := l.decoded("infra", "argocd", "argocd-initial-admin-secret", "password")
	require.NotEmpty(t, admin)
	require.NotContains(t, state, admin, "the password that Argo CD makes stays in the cluster")
}

// host returns the name of the workload behind the gateway.
func (l *lab) host() string {
	l.t.Helper()
	return l.kubectl("get", "--namespace=podinfo", "httproute/podinfo", "--output=jsonpath={.spec.hostnames[0]}")
}

// applications returns a line for each Application: its name, its sync and health, and its revision.
func (l *lab) applications() (lines []string) {
	l.t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				Sync   struct{ Status, Revision string }
				Health struct{ Status string }
			}
		}
	}
	require.NoError(l.t, json.Unmarshal([]byte(l.kubectl("get", "--namespace=argocd", "applications", "--output=json")), &list))
	for _, one := range list.Items {
		sync, health := one.Status.Sync, one.Status.Health
		lines = append(lines, strings.Join([]string{one.Metadata.Name, sync.Status, health.Status, sync.Revision}, " "))
	}
	return lines
}

// appliedByArgoCD fails unless every Application is synced and healthy at the commit of the project, which the stack's output names.
func (l *lab) appliedByArgoCD() {
	l.t.Helper()
	all := l.applications()
	require.Greater(l.t, len(all), 8)
	for _, one := range all {
		require.Regexp(l.t, `^\S+ Synced Healthy `+l.head()+`$`, one)
	}
	require.Equal(l.t, "refs/heads/main@sha1:"+l.head(), strings.TrimSpace(l.output("gitRevision")))
}

// lookNow makes Argo CD look at the repository at once.
func (l *lab) lookNow() {
	l.t.Helper()
	l.kubectl("annotate", "--namespace=argocd", "--overwrite", "application/root", "argocd.argoproj.io/refresh=normal")
}

func argoCDSettings(l *lab) {
	editStackFile(l.t, l.stackFile("infra"), func(s settings) {
		s["slipway:gitops"].(map[string]any)["settings"] = map[string]any{"DOMAIN": "home.example.com", "KEYS": "git"}
	})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(l.t, "podinfo.home.example.com", l.host())
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
}

func argoCDCommits(l *lab) {
	config := filepath.Join(l.project, "kubernetes", "clusters", "infra", "config.yaml")
	kustomization := filepath.Join(filepath.Dir(config), "kustomization.yaml")
	before, err := os.ReadFile(kustomization)
	require.NoError(l.t, err)
	require.NoError(l.t, os.WriteFile(config, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: committed, namespace: argocd}\ndata: {cluster: \"${CLUSTER_NAME}\"}\n"), 0o600))
	require.NoError(l.t, os.WriteFile(kustomization, []byte(strings.Replace(string(before), "  - podinfo.yaml\n", "  - podinfo.yaml\n  - config.yaml\n", 1)), 0o600))
	l.commit("a ConfigMap", nil)
	l.lookNow()
	exists := func() bool {
		return l.kubectl("get", "--namespace=argocd", "configmaps", "--field-selector=metadata.name=committed", "--output=jsonpath={.items[*].data.cluster}") == "infra"
	}
	l.eventually("Argo CD applies a commit", exists)
	require.NoError(l.t, os.WriteFile(kustomization, before, 0o600))
	l.commit("no ConfigMap", nil)
	l.lookNow()
	l.eventually("Argo CD removes what is not in the repository any more", func() bool { return !exists() })
}

// argoCDNames makes one thing after the other fail, and puts it right by a commit or a changed image.
func argoCDNames(l *lab) {
	t := l.t
	run := 0
	fails := func(pattern string) {
		var out string
		for range 3 { // on a busy machine, Argo CD does not get that far within the timeout
			run++
			editStackFile(t, l.stackFile("infra"), func(s settings) { // another timeout makes the run look at Argo CD again
				s["slipway:gitops"].(map[string]any)["timeout"] = fmt.Sprintf("%ds", 75+run)
			})
			if out = l.failed(); regexp.MustCompile(pattern).MatchString(out) {
				return
			}
		}
		require.Regexp(t, pattern, out)
	}
	app := filepath.Join(l.project, "kubernetes", "apps", "podinfo", "deployment.yaml")
	text, err := os.ReadFile(app)
	require.NoError(t, err)
	broken := func(message, was, is string) {
		require.Contains(t, string(text), was)
		require.NoError(t, os.WriteFile(app, []byte(strings.Replace(string(text), was, is, 1)), 0o600))
		l.commit(message, nil)
	}

	broken("no such field", "apiVersion: apps/v1\n", "apiVersion: apps/v1\n- nonsense\n")
	fails(`Application argocd/podinfo: .*MalformedYAMLError`)
	broken("no such setting", "${CLUSTER_NAME}", "${NO_SUCH_SETTING}")
	fails(`Application argocd/podinfo: .*\$\{NO_SUCH_SETTING\} is not a setting of this cluster`)
	broken("refused", "name: podinfo\n", "name: Podinfo_\n")
	fails(`Application argocd/podinfo: .*Podinfo_.*(Invalid value|invalid)`)
	l.must("fault", "image-pull", "podinfo:6.9.1")
	broken("no such image", "podinfo:6.9.0", "podinfo:6.9.1")
	fails(`Application argocd/podinfo: .*Deployment podinfo/podinfo: 0 of 2 pods are Ready; .* podinfo is in (ErrImagePull|ImagePullBackOff)`)
	l.must("fault", "--off", "image-pull", "podinfo:6.9.1")
	hook := "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: before\n  annotations:\n    argocd.argoproj.io/hook: PreSync\n" +
		"spec:\n  backoffLimit: 0\n  template:\n    spec:\n      restartPolicy: Never\n      securityContext: {runAsNonRoot: true, runAsUser: 100, " +
		"seccompProfile: {type: RuntimeDefault}}\n      containers:\n        - name: before\n          image: ghcr.io/stefanprodan/podinfo:6.9.0\n" +
		"          command: [sh, -c, exit 3]\n          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}\n---\n"
	broken("a hook that fails", "apiVersion: apps/v1\n", hook+"apiVersion: apps/v1\n")
	fails(`Application argocd/podinfo: .*PreSync hook.*Job podinfo/before`)
	broken("as before", "", "")
	editStackFile(t, l.stackFile("infra"), func(s settings) { // a changed setting makes the run wait for all Applications at this commit
		gitops := s["slipway:gitops"].(map[string]any)
		gitops["settings"].(map[string]any)["RUN"], gitops["timeout"] = "again", "8m"
	})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.appliedByArgoCD()
}

// argoCDChoices makes choices of folders that fail, which keeps the Applications after them waiting, and that leave nothing of the former
// choice but what may not be removed.
func argoCDChoices(l *lab) {
	t := l.t
	choose := func(values map[string]any, timeout string) {
		editStackFile(t, l.stackFile("infra"), func(s settings) {
			gitops := s["slipway:gitops"].(map[string]any)
			gitops["settings"], gitops["timeout"] = values, timeout
		})
	}
	choose(map[string]any{"DOMAIN": "home.example.com"}, "75s") // of 1Password, which this cluster does not have
	broken := "kubernetes/infrastructure/security/issuers/onepassword/own-ca/kustomization.yaml"
	before, err := os.ReadFile(filepath.Join(l.project, broken))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(l.project, broken), []byte(string(before)+"  - nothing.yaml\n"), 0o600))
	l.commit("a folder that cannot be built", nil)
	l.fails(`Application argocd/issuers: .*nothing\.yaml`)
	choose(map[string]any{"DOMAIN": "home.example.com", "KEYS": "git"}, "8m")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.appliedByArgoCD()

	announce := func(how string) {
		editStackFile(t, l.stackFile("infra"), func(s settings) {
			s["slipway:network"].(map[string]any)["loadBalancers"].(map[string]any)["announce"] = how
		})
		l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
		l.appliedByArgoCD()
	}
	announce("none")
	require.Empty(t, l.kubectl("get", "ciliuml2announcementpolicies", "--output=name"), "the last object of an Application goes, too")
	announce("l2")
	require.NotEmpty(t, l.kubectl("get", "ciliuml2announcementpolicies", "--output=name"))

	kept := filepath.Join(l.project, "kubernetes", "infrastructure", "security", "issuers", "own-ca", "kustomization.yaml")
	text, err := os.ReadFile(kept)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(kept, []byte(strings.Replace(string(text), "  - ca.yaml\n", "", 1)), 0o600))
	l.commit("a CA that is not in the repository any more", nil)
	choose(map[string]any{"DOMAIN": "home.example.com", "KEYS": "git", "RUN": "again"}, "8m")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.appliedByArgoCD()
	require.NotEmpty(t, l.kubectl("get", "--namespace=cert-manager", "certificate/cluster-ca", "--output=name"), "it is kept, and nothing waits for it")
	require.NoError(t, os.WriteFile(kept, text, 0o600))
	l.commit("a CA", nil)
	choose(map[string]any{"DOMAIN": "home.example.com", "KEYS": "git"}, "8m")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
}

func argoCDCredentials(l *lab) {
	l.setSecret("infra", "gitPassword", "not "+l.password())
	l.timeout("60s")
	l.fails(`Application argocd/.*: ComparisonError: .*authentication required`)
	l.setSecret("infra", "gitPassword", l.password())
	l.timeout("8m")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.appliedByArgoCD()
	editStackFile(l.t, l.stackFile("infra"), func(s settings) {
		s.set("gitops", map[string]any{"argocd": map[string]any{"credentialsFor": "https://git.home.arpa/platform"}})
	})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.appliedByArgoCD()
}

// keepsCRDs is what Helm says of the chart's CRDs when Argo CD goes.
const keepsCRDs = `^warning: Helm uninstall returned information: "These resources were kept due to the resource policy`

// runsOn returns the identities of what the tree has brought, by manifests and by charts, and of its pods.
func (l *lab) runsOn() string {
	l.t.Helper()
	charts := ""
	for _, namespace := range []string{"descheduler", "cnpg-system"} {
		charts += l.kubectl("get", "--namespace="+namespace, "deployments,services,serviceaccounts,configmaps,pods",
			"--field-selector=metadata.name!=kube-root-ca.crt,metadata.name!=default", "--output=jsonpath={.items[*].metadata.uid}") + " "
	}
	return charts + l.field("ciliumloadbalancerippool/infra", "{.metadata.uid}") + " " +
		l.kubectl("get", "--namespace=gateway", "gateway/gateway", "--output=jsonpath={.metadata.uid}") + " " +
		l.kubectl("get", "--namespace=podinfo", "deployments,services,pods,httproutes", "--output=jsonpath={.items[*].metadata.uid}")
}

// engineIs declares what hands over, without settings that only one engine has.
func (l *lab) engineIs(engine string, enabled bool) {
	l.t.Helper()
	editStackFile(l.t, l.stackFile("infra"), func(s settings) {
		s.set("gitops", map[string]any{"engine": engine, "enabled": enabled})
		delete(s["slipway:gitops"].(map[string]any), "argocd")
	})
}

func argoCDToFlux(l *lab) {
	t := l.t
	before := l.runsOn()
	l.engineIs("flux", true)
	l.fails(`Argo CD.*(gitops\.enabled: false|enabled)`)
	require.Equal(t, before, l.runsOn(), "a refusal changes nothing")
	l.engineIs("argocd", false)
	l.pulumiSays(keepsCRDs, "up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(t, before, l.runsOn())
	require.Empty(t, l.kubectl("get", "--namespace=argocd", "deployments,statefulsets,applications", "--output=name"), "Argo CD is gone")
	require.Equal(t, "yes", l.kubectl("get", "--namespace=argocd", "configmap/own", "--output=jsonpath={.data.stays}"), "the namespace stays")
	runGit(t, "-C", l.project, "rm", "-r", "--quiet", "kubernetes/clusters/infra/kustomization.yaml",
		"kubernetes/clusters/infra/podinfo.yaml")
	l.smallFluxTree()
	l.commit("flux", nil)
	l.engineIs("flux", true)
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(t, before, l.runsOn(), "Flux has adopted what Argo CD had applied")
}

// smallFluxTree writes the cluster's folder for Flux: the same areas and the same workload.
func (l *lab) smallFluxTree() {
	l.t.Helper()
	folder := filepath.Join(l.project, "kubernetes", "clusters", "infra")
	kustomization := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"
	require.NoError(l.t, os.WriteFile(filepath.Join(folder, "infrastructure", "kustomization.yaml"),
		[]byte(kustomization+"  - ../../../infrastructure/networking\n  - ../../../infrastructure/security\n"+
			"  - ../../../infrastructure/scheduling\n  - ../../../infrastructure/databases\n"), 0o600))
}

func fluxToArgoCD(l *lab) {
	t := l.t
	before := l.runsOn()
	l.engineIs("argocd", true)
	l.fails(`Flux.*(gitops\.enabled: false|enabled)`)
	l.engineIs("flux", false)
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.argoCDTree()
	l.commit("argocd again", nil)
	l.engineIs("argocd", true)
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(t, before, l.runsOn(), "Argo CD has adopted what Flux had applied")
	l.appliedByArgoCD()
}

func argoCDDeletes(l *lab) {
	t := l.t
	editStackFile(t, l.stackFile("infra"), func(s settings) { s.set("gitops", map[string]any{"deletionPolicy": "delete"}) })
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.engineIs("argocd", false)
	l.pulumiSays(keepsCRDs, "up", "--yes", "--skip-preview", "--stack", "infra")
	require.Empty(t, l.kubectl("get", "namespaces", "--field-selector=metadata.name=podinfo", "--output=name"))
	require.Empty(t, l.kubectl("get", "ciliumloadbalancerippools", "--output=name"))
	require.NotEmpty(t, l.kubectl("get", "--namespace=cert-manager", "certificates", "--output=name"), "what may not be removed with its manifest")
}
