package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/tests/mocks"
)

// read reads one of the example's own YAML files, and refuses keys that the test does not know.
func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, into), name)
}

// configured returns the project's name, and the configuration of a stack as Pulumi passes it to the program: text as it is, and the rest
// as JSON.
func configured(t *testing.T, stack string) (project string, config map[string]string) {
	t.Helper()
	var declared struct{ Name, Runtime, RequiredPulumiVersion, Description string }
	read(t, "Pulumi.yaml", &declared)
	var file struct{ Config map[string]any }
	read(t, "Pulumi."+stack+".yaml", &file)
	config = map[string]string{}
	for key, value := range file.Config {
		text, is := value.(string)
		if !is {
			encoded, err := json.Marshal(value)
			require.NoError(t, err)
			text = string(encoded)
		}
		config[key] = text
	}
	return declared.Name, config
}

// newRecorder returns a recorder with the configuration of Pulumi.home.yaml, after changes, keys and values in turn.
func newRecorder(t *testing.T, changes ...string) *mocks.Recorder {
	t.Helper()
	project, config := configured(t, "home")
	rec := &mocks.Recorder{Project: project, Stack: "home", OnResource: answer, OnCall: answerCall, Config: config}
	for i := 0; i < len(changes); i += 2 {
		rec.Config[changes[i]] = changes[i+1]
	}
	return rec
}

// answer answers for the providers with what the program reads of their outputs.
func answer(reg mocks.Registration) (resource.PropertyMap, error) {
	pair := map[string]any{"cert": "CERT", "key": "KEY"}
	answers := map[string]map[string]any{
		"talos:imageFactory/schematic:Schematic": {"schematicId": "0123"},
		"talos:machine/secrets:Secrets": {
			"machineSecrets": map[string]any{
				"certs": map[string]any{
					"etcd": pair, "k8s": pair, "k8sAggregator": pair, "os": pair, "k8sServiceaccount": map[string]any{"key": "KEY"},
				},
				"cluster":    map[string]any{"id": "id", "secret": "SECRET"},
				"secrets":    map[string]any{"bootstrapToken": "TOKEN", "secretboxEncryptionSecret": "SECRET"},
				"trustdinfo": map[string]any{"token": "TOKEN"},
			},
			"clientConfiguration": map[string]any{"caCertificate": "CA", "clientCertificate": "CERT", "clientKey": "KEY"},
		},
		"talos:cluster/kubeconfig:Kubeconfig":           {"kubeconfigRaw": "KUBECONFIG"},
		"tls:index/privateKey:PrivateKey":               {"privateKeyPem": "KEY"},
		"tls:index/selfSignedCert:SelfSignedCert":       {"certPem": "CERT"},
		"tls:index/certRequest:CertRequest":             {"certRequestPem": "REQUEST"},
		"tls:index/locallySignedCert:LocallySignedCert": {"certPem": "CERT"},
		"command:local:Command":                         {"stdout": `{"kind":"gate","cluster":"home","outcome":"open"}` + "\n"},
	}
	return resource.NewPropertyMapFromMap(answers[reg.Type]), nil
}

func answerCall(call pulumi.MockCallArgs) (resource.PropertyMap, error) {
	answers := map[string]map[string]any{
		"talos:machine/getConfiguration:getConfiguration": {"machineConfiguration": "CONFIGURATION"},
		"talos:client/getConfiguration:getConfiguration":  {"talosConfig": "TALOSCONFIG"},
	}
	result, ok := answers[call.Token]
	if !ok {
		return nil, errors.New("no answer for " + call.Token)
	}
	return resource.NewPropertyMapFromMap(result), nil
}

func TestHomelab_RunsInOrderFromMachinesToWorkloads(t *testing.T) {
	rec := newRecorder(t)
	require.NoError(t, rec.Run(deploy))
	chain := []string{"home-1", "talos-bootstrap", "machines-probe", "crds-apply", "cilium-release", "gate-probe", "core-coredns", "media"}
	chain[0] = rec.OfType("proxmoxve:VM/virtualMachine:VirtualMachine")[0].Name
	for i, later := range chain {
		for _, earlier := range chain[:i] {
			assert.True(t, rec.After(rec.Resource(t, later), rec.Resource(t, earlier)), "%s after %s", later, earlier)
			assert.False(t, rec.After(rec.Resource(t, earlier), rec.Resource(t, later)), "%s before %s", earlier, later)
		}
	}
	assert.Len(t, rec.OfType("proxmoxve:VM/virtualMachine:VirtualMachine"), 3)
}

// Pulumi refuses a resource without a provider of its own, and keys of another namespace belong to nobody.
func TestHomelab_TheStackFileHasTheProgramsKeysOnly(t *testing.T) {
	project, config := configured(t, "home")
	assert.Equal(t, "homelab", project)
	assert.Equal(t, `["*"]`, config["pulumi:disable-default-providers"])
	assert.Len(t, config, 4)
	for _, key := range []string{"proxmox", "hosts", "network"} {
		rec := newRecorder(t)
		delete(rec.Config, project+":"+key)
		require.Error(t, rec.Run(deploy), "the program needs %s", key)
	}
}

func TestHomelab_APreviewRegistersTheSameResources(t *testing.T) {
	preview, up := newRecorder(t), newRecorder(t)
	preview.DryRun = true
	require.NoError(t, preview.Run(deploy))
	require.NoError(t, up.Run(deploy))
	assert.Equal(t, up.Names(), preview.Names())
}

func TestHomelab_AFailedGateRegistersNothingAfterIt(t *testing.T) {
	rec := newRecorder(t)
	rec.OnResource = func(reg mocks.Registration) (resource.PropertyMap, error) {
		if reg.Name == "gate-probe" {
			return nil, errors.New("home-2 is not Ready")
		}
		return answer(reg)
	}
	require.ErrorContains(t, rec.Run(deploy), "home-2 is not Ready")
	for _, reg := range rec.Resources() {
		assert.NotContains(t, []string{"core", "core-coredns", "media"}, reg.Name)
	}
}

func TestHomelab_AllProblemsOfTheClusterAreReportedBeforeAnythingIsRegistered(t *testing.T) {
	rec := newRecorder(t, "homelab:hosts", `["pve1","pve2"]`, "homelab:proxmox", "pve.home.arpa")
	err := rec.Run(deploy)
	require.ErrorContains(t, err, "proxmox.endpoint: pve.home.arpa ")
	require.ErrorContains(t, err, "nodePools: 2 control planes tolerate no more failures than 1 would; declare 1 or 3")
	assert.Empty(t, rec.Names())
}

// The compiler refuses a package of internal only to another module.
func TestHomelab_CompilesInAModuleOfItsOwnAndFindsTheProbe(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	folder := t.TempDir()
	for _, name := range []string{"main.go", "cluster.go"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	text := strings.Replace(string(module), "module github.com/slipway-platform/slipway\n", "module example.com/homelab\n", 1) +
		"\nrequire github.com/slipway-platform/slipway v0.0.0\nreplace github.com/slipway-platform/slipway => " + root + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte(text), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "go.sum"), sums, 0o600))

	for _, args := range [][]string{{"vet", "."}, {"list", "-deps", "github.com/slipway-platform/slipway/cmd/slipway-probe"}} {
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir = folder
		out, err := command.CombinedOutput()
		require.NoError(t, err, "go %s: %s", strings.Join(args, " "), out)
	}
}
