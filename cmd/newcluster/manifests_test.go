package newcluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cmd/check"
	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/internal/engines/flux/tree"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/docs"
)

func TestNew_WithADomainTheCheckFindsAGatewayAndNothingWrong(t *testing.T) {
	code, folder, problems := newRepository(t, "home", "--git", "https://git.example.com/home.git", "--public", "--insecure",
		"--domain", "home.example.com")
	require.Equal(t, command.Done, code, problems)
	stack := clusters.Read(t, filepath.Join(folder, "Pulumi.home.yaml"))
	assert.True(t, stack.GitOps.Public && stack.Proxmox.Insecure)
	assert.Contains(t, files(t, folder)["README.md"], "This one\n   needs none: the stack file has `public: true`.")
	assert.Equal(t, "home.example.com", stack.GitOps.Settings["DOMAIN"])
	code, out, problems := runIn(t, folder, check.Command("check"))
	assert.Equal(t, command.Done, code)
	assert.Empty(t, problems)
	assert.NotContains(t, out, "gitPassword")
	assert.FileExists(t, "kubernetes/infrastructure/networking/cilium/gateway/gateway.yaml")
	assert.FileExists(t, "kubernetes/apps/podinfo/route.yaml")
	assert.NoDirExists(t, "kubernetes/infrastructure/storage")
}

// A newcomer has no account at 1Password, so a choice that needs a key asks for a file of the repository.
func TestNew_WithADomainAChoiceThatNeedsAKeyAsksForAFileAndNoAccount(t *testing.T) {
	_, folder, _ := newRepository(t, "home", "--git", "https://git.example.com/home.git", "--public", "--domain", "home.example.com")
	const key = "kubernetes/infrastructure/networking/external-dns/git/cloudflare/key.yaml"
	t.Chdir(folder)
	const file = "Pulumi.home.yaml"
	text := files(t, ".")[file]
	chosen := strings.Replace(text, "settings: {", "settings: {DNS: cloudflare, CLOUDFLARE_ZONE: 023e105f4ecef8ad9ca31a8372d0c353, ", 1)
	require.NotEqual(t, text, chosen)
	require.NoError(t, os.WriteFile(file, []byte(chosen), 0o600))
	code, out, problems := runIn(t, ".", check.Command("check"))
	assert.Equal(t, command.Failed, code)
	assert.Contains(t, problems, key+" is not in the repository; commit it, or remove its line (its comment says: ")
	assert.NotContains(t, out+problems, "onepassword")

	const sealed = "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: cloudflare, namespace: external-dns}\n" +
		"spec: {encryptedData: {token: AgA=}}\n"
	require.NoError(t, os.WriteFile(key, []byte(sealed), 0o600))
	require.NoError(t, os.WriteFile(file, []byte(chosen+"  slipway:secrets: {sealedSecrets: {}}\n"), 0o600))
	code, _, problems = runIn(t, ".", check.Command("check"))
	assert.Equal(t, command.Done, code)
	assert.Empty(t, problems)
}

// The application of the page is added to a repository of the quick start, which has no volumes.
func TestFirstApp_TheCheckFindsNothingWrong(t *testing.T) {
	const sealed = "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: notes}\nspec: {encryptedData: {password: AgA=}}\n"
	page, err := os.ReadFile("../../" + docs.FirstAppPage)
	require.NoError(t, err)
	code, folder, problems := newRepository(t, "home", "--git", "https://git.example.com/home.git", "--public", "--domain", "home.example.com")
	require.Equal(t, command.Done, code, problems)
	app, err := docs.App{Cluster: "kubernetes/cluster", Secret: sealed}.Files(string(page))
	require.NoError(t, err)
	for name, text := range app {
		require.NoError(t, writeFile(filepath.Join(folder, name), text))
	}
	for name, line := range map[string]string{
		"Pulumi.home.yaml": "  slipway:secrets: {sealedSecrets: {}}\n", "kubernetes/cluster/kustomization.yaml": "  - notes.yaml\n",
	} {
		file := filepath.Join(folder, name)
		before, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, writeFile(file, string(before)+line))
	}
	code, _, problems = runIn(t, folder, check.Command("check"))
	assert.Equal(t, command.Done, code)
	assert.Empty(t, problems)
}

// Whose volumes come from another app needs the area storage all the same: the area observability waits for its Kustomizations.
func TestVolumes_WithThoseOfProxmoxVENothingWaitsForStorageThatIsNotThere(t *testing.T) {
	page, err := os.ReadFile("../../docs/volumes.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "`slipway manifests ")
	require.True(t, found, "the page says how metrics and logs are added")
	areas, _, _ := strings.Cut(rest, "`")
	_, folder, _ := newRepository(t, "home", "--git", "https://git.example.com/home.git", "--public", "--domain", "home.example.com")
	t.Chdir(folder)
	code, _, problems := runIn(t, ".", Manifests("v0.1.0"), strings.Fields(areas)...)
	require.Equal(t, command.Done, code, problems)
	list := "  - proxmox-csi.yaml\n"
	for area := range strings.FieldsSeq(areas) {
		list += "  - ../infrastructure/" + area + "\n"
	}
	for _, block := range docs.Blocks("docs/volumes.md", string(page)) {
		if name, found := strings.CutPrefix(block.Lines[0], "# kubernetes/"); found {
			name = strings.Replace(name, "clusters/STACK/workloads", "cluster", 1)
			require.NoError(t, writeFile(filepath.Join("kubernetes", name), strings.Join(block.Lines, "\n")+"\n"))
		}
	}
	require.NoError(t, writeFile("kubernetes/apps/proxmox-csi/secret.yaml", "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\n"+
		"metadata: {name: proxmox-csi}\nspec: {encryptedData: {config.yaml: AgA=}}\n"))
	for name, lines := range map[string]string{
		"Pulumi.home.yaml":                      "  slipway:secrets: {sealedSecrets: {}}\n  slipway:storage: {role: none, classes: [proxmox]}\n",
		"kubernetes/cluster/kustomization.yaml": list,
	} {
		require.NoError(t, writeFile(name, files(t, ".")[name]+lines))
	}
	code, _, problems = runIn(t, ".", check.Command("check"))
	assert.Equal(t, command.Done, code)
	assert.Empty(t, problems)
}

func TestManifests_AreUpdatedAndWhatIsTheUsersStays(t *testing.T) {
	_, folder, _ := newRepository(t, "home", "--domain", "home.example.com")
	const (
		ours    = "kubernetes/infrastructure/networking/cilium/gateway/gateway.yaml"
		edited  = "kubernetes/slipway-settings.yaml"
		both    = "kubernetes/components/namespace/policy.yaml"
		his     = "kubernetes/infrastructure/networking/external-dns/git/cloudflare/key.yaml"
		summary = "kubernetes/infrastructure: networking, security, storage, as in this version\n"
	)
	before := files(t, folder)
	t.Chdir(folder)
	require.NoError(t, os.WriteFile(his, []byte("key"), 0o600))
	for _, name := range []string{edited, both} {
		require.NoError(t, os.WriteFile(name, []byte(before[name]+"# mine\n"), 0o600))
	}
	// The former version had other texts of these.
	require.NoError(t, os.WriteFile(ours, []byte("former"), 0o600))
	written, err := tree.ReadWritten(os.DirFS("."))
	require.NoError(t, err)
	written.Files[ours], written.Files[both] = sum("former"), sum("former")
	text, err := yaml.Marshal(written)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(tree.WrittenFile, text, 0o600))

	code, out, problems := runIn(t, ".", Manifests("v0.2.0"), "storage")
	require.Equal(t, command.Done, code, problems)
	assert.Equal(t, both+": kept, with your changes; this version has another text\n"+ours+": changed\n"+
		edited+": kept, with your changes\n"+howToMerge+
		"Next: list ../infrastructure/storage in the kustomization.yaml of the cluster's folder\n"+summary, out)
	assert.FileExists(t, "kubernetes/infrastructure/storage/layers.yaml")
	after := files(t, ".")
	assert.Equal(t, "key", after[his])
	for name, text := range before {
		if name == edited || name == both {
			text += "# mine\n"
		}
		if name != tree.WrittenFile {
			assert.Equal(t, text, after[name], name)
		}
	}
	assert.Contains(t, after[tree.WrittenFile], "\nversion: v0.2.0\n")
	assert.NotContains(t, before[tree.WrittenFile], "version", "a build of other sources has none")

	_, out, _ = runIn(t, ".", Manifests("v0.2.0"))
	assert.Equal(t, both+": kept, with your changes\n"+edited+": kept, with your changes\n"+summary, out)
	_, out, _ = runIn(t, ".", Manifests("v0.2.0"), "--overwrite")
	assert.Equal(t, both+": changed\n"+edited+": changed\n"+summary, out)
	_, out, _ = runIn(t, ".", Manifests("v0.1.0"))
	assert.Equal(t, summary, out)
	assert.Contains(t, files(t, ".")[tree.WrittenFile], "\nversion: v0.1.0\n", "the way back")
}

func TestManifests_WithoutARecordKeepWhatDiffers(t *testing.T) {
	_, folder, _ := newRepository(t, "home", "--domain", "home.example.com")
	t.Chdir(folder)
	const edited = "kubernetes/slipway-settings.yaml"
	for _, record := range []string{"", "{"} {
		require.NoError(t, os.WriteFile(tree.WrittenFile, []byte(record), 0o600))
		require.NoError(t, os.WriteFile(edited, []byte("{}"), 0o600))
		code, out, problems := runIn(t, ".", Manifests("v0.2.0"))
		require.Equal(t, command.Done, code, problems)
		assert.Contains(t, out, edited+": kept, with your changes; this version has another text\n")
		assert.Equal(t, "{}", files(t, ".")[edited])
	}
}

func TestManifests_AStackWithArgoCDGetsItsApplications(t *testing.T) {
	_, folder, _ := newRepository(t, "home", "--domain", "home.example.com", "--public", "--git", "https://git.example.com/a.git")
	t.Chdir(folder)
	const stack = "Pulumi.home.yaml"
	text := strings.Replace(files(t, ".")[stack], "public: true", "public: true, engine: argocd", 1)
	require.NoError(t, os.WriteFile(stack, []byte(text), 0o600))
	code, out, problems := runIn(t, ".", Manifests("v0.2.0"), "alerts")
	require.Equal(t, command.Done, code, problems)
	const next = "in the kustomization.yaml of the cluster's folder\n"
	assert.Equal(t, "Next: list ../argocd/networking "+next+"Next: list ../argocd/security "+next+
		"kubernetes/infrastructure: alerts, networking, security, as in this version\n", out)
	assert.NoDirExists(t, "kubernetes/argocd/alerts", "reports are Flux's")
	assert.NoDirExists(t, "kubernetes/argocd/storage")
	require.NoError(t, os.WriteFile("kubernetes/cluster/kustomization.yaml", []byte(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
components: [../argocd/application]
resources: [../argocd/networking, ../argocd/security]
`), 0o600))
	code, out, problems = runIn(t, ".", check.Command("check"))
	assert.Equal(t, command.Done, code, out)
	assert.Empty(t, problems)
}

func TestManifests_AreWrittenIntoAProjectOnly(t *testing.T) {
	code, _, problems := runIn(t, t.TempDir(), Manifests("v0.1.0"), "storage")
	assert.Equal(t, command.Misuse, code)
	assert.Contains(t, problems, "has no Pulumi.yaml; run the command in")
	_, folder, _ := newRepository(t, "home", "--domain", "")
	code, _, problems = runIn(t, folder, Manifests("v0.1.0"), "storrage")
	assert.Equal(t, command.Misuse, code)
	assert.Contains(t, problems, "storrage: is not an area; write alerts, backup, databases,")
	code, _, problems = runIn(t, ".", Manifests("v0.1.0"))
	assert.Equal(t, command.Misuse, code)
	assert.Contains(t, problems, "this project has no area yet")
}
