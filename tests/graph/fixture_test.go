// Package graph tests the resources that the whole program registers for the committed stack files.
package graph

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/stacks"
	"github.com/slipway-platform/slipway/stacks/config"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// Type tokens of resources in the tests.
const (
	typeApply     = "talos:machine/configurationApply:ConfigurationApply"
	typeBootstrap = "talos:machine/bootstrap:Bootstrap"
	typeSecrets   = "talos:machine/secrets:Secrets"
	typeISO       = "proxmoxve:Download/file:File"
	typeVM        = "proxmoxve:VM/virtualMachine:VirtualMachine"
	typeCommand   = "command:local:Command"
	typeRelease   = "kubernetes:helm.sh/v3:Release"
	typeStash     = "pulumi:index:Stash"
)

// Names of the chain's leaves.
const (
	bootstrapName = "talos-bootstrap"
	retireName    = "talos-retire"
	upgradeName   = "talos-upgrade"
	machinesGate  = "machines-probe"
	ciliumMode    = "cilium-mode"
	kubernetes    = "kubernetes-cluster"
	crds          = "crds-apply"
	gate          = "gate-probe"
	ciliumRelease = "cilium-release"
	coreDNS       = "core-coredns"
	certManager   = "core-cert-manager"
	gitSecret     = "secrets-git"
	sealedSecrets = "secrets-sealed-secrets"
	onepassword   = "secrets-onepassword-probe"
	instance      = "gitops-instance"
	handover      = "gitops-probe"
)

// Markers are the values of secrets. None of them may be anywhere in plain text.
const (
	gitPassword   = "GIT-PASSWORD-MARKER"
	secretPatches = "all: [{machine: {registries: {config: {registry.example.com: {auth: {password: PATCH-MARKER}}}}}}]"
	proxmoxToken  = "slipway@pve!test=00000000-0000-4000-8000-0123456789ab"
	keyMaterial   = "KEY-MATERIAL-MARKER"

	connectCredentials = `{"verifier":{"salt":"c2FsdA"},"encCredentials":{"data":"CREDENTIALS-MARKER"},"version":"2",` +
		`"deviceUuid":"hhhhhhhhhhhhhhhhhhhhhhhhhh","uniqueKey":{"k":"azE"}}`
	connectToken = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.VE9LRU4tTUFSS0VS"
)

// checkout is the path of the repository.
var checkout, _ = filepath.Abs(filepath.Join("..", ".."))

// TestMain runs the tests in the folder of a project, as the program does: there it finds the files of the other stacks.
func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "graph")
	if err == nil {
		err = clusters.Project(folder, checkout)
	}
	if err == nil {
		err = os.Chdir(folder)
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// stackNames returns the names of the committed stack files, whose number is not fixed.
func stackNames(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("Pulumi.*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 2)
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "Pulumi."), ".yaml"))
	}
	return names
}

// load reads a committed stack file.
func load(t *testing.T, name string) *cluster.Cluster {
	t.Helper()
	return clusters.Read(t, "Pulumi."+name+".yaml")
}

// newRecorder returns a recorder that answers for a stack like the engine and the providers. Every output that is secret in reality
// has a secret value.
func newRecorder(t *testing.T, name string) *mocks.Recorder {
	t.Helper()
	return newRecorderOf(t, "Pulumi."+name+".yaml", name)
}

// newRecorderOf returns such a recorder for any stack file.
func newRecorderOf(t *testing.T, file, name string) *mocks.Recorder {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	source, err := config.ParseFile(file, text)
	require.NoError(t, err)
	stack, err := config.Load(source)
	require.NoError(t, err)
	rec := &mocks.Recorder{
		Stack:   name,
		Config:  map[string]string{},
		Secrets: map[string]string{"slipway:proxmoxApiToken": proxmoxToken, "slipway:talosSecretPatches": secretPatches},
	}
	secrets := secretValues()
	for _, missing := range stack.MissingSecrets() {
		rec.Secrets["slipway:"+missing] = secrets["slipway:"+missing]
	}
	for key, value := range source.Values {
		if secret, isSecret := secrets[key]; isSecret {
			rec.Secrets[key] = secret
		} else {
			rec.Config[key] = value.Text()
		}
	}
	rec.OnResource = answer
	rec.OnCall = answerCall
	return rec
}

// secretValues returns a valid value of each secret, by key.
var secretValues = sync.OnceValue(func() map[string]string {
	placeholders, err := config.NewPlaceholders()
	if err != nil {
		panic(err)
	}
	maps.Copy(placeholders, config.Placeholders{
		"gitPassword": gitPassword, "proxmoxApiToken": proxmoxToken, "talosSecretPatches": secretPatches, "meshCA": meshCA,
		"onepasswordCredentials": connectCredentials, "onepasswordToken": connectToken,
		"onepasswordStorageToken": connectToken,
	})
	values := map[string]string{}
	for key, value := range placeholders {
		values["slipway:"+key] = value
	}
	return values
})

// up runs a stack's program.
func up(t *testing.T, name string) *mocks.Recorder {
	t.Helper()
	rec := newRecorder(t, name)
	require.NoError(t, rec.Run(stacks.Deploy))
	return rec
}

// eachStack runs a test with the registrations of each committed stack file.
func eachStack(t *testing.T, test func(t *testing.T, stack *cluster.Cluster, rec *mocks.Recorder)) {
	t.Helper()
	for _, name := range stackNames(t) {
		t.Run(name, func(t *testing.T) { test(t, load(t, name), up(t, name)) })
	}
}

// talosKey is a key in the form of the Talos provider, base64 of PEM. It is another one for each resource.
func talosKey(name string) string {
	block := &pem.Block{Type: "KEY", Headers: map[string]string{"Of": name}, Bytes: []byte(keyMaterial)}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(block))
}

func answer(reg mocks.Registration) (resource.PropertyMap, error) {
	secret := func(text string) any { return &resource.Secret{Element: resource.NewProperty(text)} }
	pair := func(text string) map[string]any { return map[string]any{"cert": secret(text), "key": secret(text)} }
	talos := talosKey(reg.Name)
	report := `{"kind":"gate","cluster":"test","outcome":"open","revision":"refs/heads/main@sha1:abc"}` + "\n"
	answers := map[string]map[string]any{
		"talos:imageFactory/schematic:Schematic": {"schematicId": reg.Name},
		typeSecrets: {
			"machineSecrets": map[string]any{
				"certs": map[string]any{
					"k8sAggregator": pair(keyMaterial),
					"os":            pair(talos), "k8s": pair(talosKey(reg.Name + " of Kubernetes")), "etcd": pair(talosKey(reg.Name + " of etcd")),
					"k8sServiceaccount": map[string]any{"key": secret(keyMaterial)},
				},
				"cluster":    map[string]any{"id": "id", "secret": secret(keyMaterial)},
				"secrets":    map[string]any{"bootstrapToken": secret(keyMaterial), "secretboxEncryptionSecret": secret(keyMaterial)},
				"trustdinfo": map[string]any{"token": secret(keyMaterial)},
			},
			"clientConfiguration": map[string]any{
				"caCertificate": talos, "clientCertificate": talos, "clientKey": secret(talos),
			},
		},
		"talos:cluster/kubeconfig:Kubeconfig":           {"kubeconfigRaw": secret("kubeconfig " + keyMaterial)},
		"tls:index/privateKey:PrivateKey":               {"privateKeyPem": secret(keyMaterial)},
		"tls:index/selfSignedCert:SelfSignedCert":       {"certPem": secretValues()["slipway:sealedSecretsCert"]},
		"tls:index/certRequest:CertRequest":             {"certRequestPem": "REQUEST"},
		"tls:index/locallySignedCert:LocallySignedCert": {"certPem": "CERTIFICATE"},
		typeCommand: {"stdout": secret(report)}, // the provider marks it secret, because the input is secret
	}
	return resource.NewPropertyMapFromMap(answers[reg.Type]), nil
}

func answerCall(call pulumi.MockCallArgs) (resource.PropertyMap, error) {
	if call.Token == mocks.FunctionTemplate {
		return mocks.CiliumTemplate(call)
	}
	if call.Token == callStackOutputs {
		return nil, errUnknownStack
	}
	answers := map[string]map[string]any{
		"talos:machine/getConfiguration:getConfiguration": {"machineConfiguration": "configuration " + keyMaterial},
		"talos:client/getConfiguration:getConfiguration":  {"talosConfig": "talosconfig " + keyMaterial},
	}
	result, ok := answers[call.Token]
	if !ok {
		return nil, errors.New("no answer for " + call.Token)
	}
	return resource.NewPropertyMapFromMap(result), nil
}

// isProvider reports whether a resource is a provider.
func isProvider(reg mocks.Registration) bool { return strings.HasPrefix(reg.Type, "pulumi:providers:") }

// inCluster reports whether a resource is an object in the Kubernetes API.
func inCluster(reg mocks.Registration) bool { return strings.HasPrefix(reg.Type, "kubernetes:") }

// afterGate returns the resources of the components that wait for the gate.
func afterGate(rec *mocks.Recorder) []mocks.Registration {
	return rec.Find(func(reg mocks.Registration) bool {
		return strings.Contains(reg.URN, "slipway:core:CoreServices") ||
			strings.Contains(reg.URN, "slipway:secrets:") || strings.Contains(reg.URN, "slipway:gitops:")
	})
}

func namesOf(registrations []mocks.Registration) []string {
	var names []string
	for _, reg := range registrations {
		names = append(names, reg.Name)
	}
	return names
}
