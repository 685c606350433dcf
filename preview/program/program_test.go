package program

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/preview/report"
	"github.com/slipway-platform/slipway/stacks/config"
)

func TestProject_LeavesOutWhatIsEncrypted(t *testing.T) {
	p := &Project{secrets: config.Placeholders{"gitPassword": "placeholder", "meshCA": "ca"}}
	declared := cluster.New("home")
	text := "encryptionsalt: v1:x\nconfig:\n  slipway:gitPassword:\n    secure: v1:CIPHERTEXT\n  meshCA: {secure: v1:CIPHERTEXT}\n" +
		"  slipway:cluster: {name: home, id: 1}\n  pulumi:disable-default-providers: [\"*\"]\n"
	file, needed, err := p.secretsOf(declared, []byte(text))
	require.NoError(t, err)
	copied, err := yaml.Marshal(file)
	require.NoError(t, err)
	assert.Equal(t, []string{"gitPassword", "meshCA"}, needed)
	assert.NotContains(t, string(copied), "secure")
	assert.NotContains(t, string(copied), "CIPHERTEXT")
	assert.NotContains(t, string(copied), "encryptionsalt")
	assert.Contains(t, string(copied), "name: home")
	assert.Contains(t, string(copied), "disable-default-providers")

	p.secrets = config.Placeholders{}
	_, _, err = p.secretsOf(declared, []byte(text))
	assert.ErrorContains(t, err, "gitPassword: there is no placeholder")
}

func TestProject_PassesNoCredentialsOfTheUser(t *testing.T) {
	p := &Project{folder: "/tmp/x"}
	env := strings.Join(p.environment([]string{
		"PATH=/bin", "HOME=/home/me", "GOFLAGS=-mod=mod", "https_proxy=http://p", "PULUMI_ACCESS_TOKEN=MINE", "PULUMI_CONFIG_PASSPHRASE=MINE",
		"PROXMOX_VE_API_TOKEN=MINE", "AWS_SECRET_ACCESS_KEY=MINE", "GITHUB_TOKEN=MINE", "KUBECONFIG=MINE", "GOOGLE_CREDENTIALS=MINE",
	}), "\n")
	assert.NotContains(t, env, "MINE")
	for _, want := range []string{
		"PATH=/bin", "HOME=/home/me", "GOFLAGS=-mod=mod -trimpath\n", "https_proxy=http://p", "PULUMI_BACKEND_URL=file:///tmp/x/backend",
	} {
		assert.Contains(t, env, want)
	}
}

func TestProject_RunsTheProgramOfTheCheckout(t *testing.T) {
	checkout, folder := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(checkout, "Pulumi.yaml"),
		[]byte("name: slipway\nruntime: {name: go, options: {buildTarget: bin/slipway}}\nbackend: {url: s3://elsewhere}\n"), 0o600))
	p := &Project{folder: folder, checkout: checkout}
	require.NoError(t, p.writeProject())
	text, err := os.ReadFile(filepath.Join(folder, "Pulumi.yaml"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "main: "+checkout+"\n")
	assert.Contains(t, string(text), "buildTarget: "+folder+"/slipway\n")
	assert.NotContains(t, string(text), "elsewhere")
}

// events are lines as pulumi 3.250 prints them, shortened.
//
//go:embed testdata/events.jsonl
var events string

func TestParse_ReadsResourcesWithoutSecretsAndPaths(t *testing.T) {
	outcome, err := parse([]byte(events+`{"sequence":6,"summaryEvent":{"maybeCorrupt":false}}`+"\n"), "/src/checkout")
	require.NoError(t, err)
	require.Len(t, outcome.Operations, 2, "the stack itself is none")
	assert.Equal(t, "create", outcome.Operations[1].Op)
	outcome.Operations = nil
	assert.Equal(t, report.Program{Ran: true, Warnings: []string{"take care"}, Resources: []report.Resource{
		{Type: "slipway:gitops:GitOpsHandover", Name: "gitops", Root: "gitops", Inputs: map[string]any{}},
		{Type: "kubernetes:core/v1:Secret", Name: "gitops-git", Root: "gitops", Protect: true, Inputs: map[string]any{
			"stringData": report.Hidden, "path": "./x", "uid": report.Later,
		}},
		{Type: "pulumi:pulumi:Stack", Name: "outputs", Root: "outputs", Inputs: map[string]any{
			"meshSpec": map[string]any{"id": 1.0}, "kubeconfig": report.Hidden,
		}},
	}}, outcome)
}

func TestParse_ARunThatEndsEarlyIsAnError(t *testing.T) {
	_, err := parse([]byte(events), "/src/checkout")
	require.ErrorContains(t, err, "ended without a summary")
	outcome, err := parse([]byte(events+`{"diagnosticEvent":{"message":"network.vip: is missing","severity":"error"}}`+"\n"), "/src/checkout")
	require.NoError(t, err)
	assert.Equal(t, []report.Problem{{Text: "network.vip: is missing"}}, outcome.Problems)
}

func TestCharts_AreTheReleasesOfTheProgram(t *testing.T) {
	charts := Charts(report.Program{Resources: []report.Resource{
		{Type: "kubernetes:core/v1:Namespace", Name: "x"},
		{Type: "kubernetes:helm.sh/v3:Release", Name: "cilium-release", Inputs: map[string]any{
			"name": "cilium", "namespace": "kube-system", "chart": "cilium", "version": "1.18.7",
			"repositoryOpts": map[string]any{"repo": "https://helm.cilium.io"}, "values": map[string]any{"a": 1.0},
		}},
	}})
	assert.Equal(t, []report.Chart{{
		Name: "cilium", Namespace: "kube-system", Chart: "cilium", Version: "1.18.7", Repository: "https://helm.cilium.io",
		Values: map[string]any{"a": 1.0},
	}}, charts)
}
