package machineconfig

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/golden"
)

// seen is what is shown of a configuration: its secrets as "[secret]".
func seen(t *testing.T, c *cluster.Cluster, role cluster.Role) string {
	t.Helper()
	tree, err := Effective(c, machineOf(c, role))
	require.NoError(t, err)
	text, err := yaml.Marshal(masked(tree))
	require.NoError(t, err)
	return string(text)
}

func masked(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			value[key] = masked(child)
		}
		return value
	case []any:
		for i, child := range value {
			value[i] = masked(child)
		}
		return value
	case Secret:
		return "[secret]"
	}
	return value
}

func TestEffective_ShowsTheWholeConfigurationOfANode(t *testing.T) {
	golden.File(t, "testdata/effective-everything.txt", seen(t, sample(t, everything), cluster.Worker))
	golden.File(t, "testdata/effective-controlplane.txt", seen(t, sample(t), cluster.ControlPlane))
}

func TestEffective_ShowsNothingOfTheStandInsForMachineSecrets(t *testing.T) {
	for _, role := range []cluster.Role{cluster.ControlPlane, cluster.Worker} {
		text := seen(t, sample(t), role)
		assert.NotContains(t, text, "stand")
		assert.NotContains(t, text, "c3RhbmQt")
		assert.NotContains(t, text, standInSchematic)
		assert.Contains(t, text, "token: "+fromMachineSecrets)
	}
}

func TestEffective_HidesWhatThePatchesOfAUserMayHoldOfSecrets(t *testing.T) {
	for name, patch := range map[string]string{
		"registry password":        "machine: {registries: {config: {ghcr.io: {auth: {username: flux, password: SENSITIVE}}}}}",
		"registry user":            "machine: {registries: {config: {ghcr.io: {auth: {username: SENSITIVE}}}}}",
		"registry document":        "apiVersion: v1alpha1\nkind: RegistryAuthConfig\nname: ghcr.io\nusername: flux\npassword: SENSITIVE\n",
		"client key":               "machine: {registries: {config: {ghcr.io: {tls: {clientIdentity: {crt: cHVibGlj, key: U0VOU0lUSVZF}}}}}}",
		"token of the cluster":     "cluster: {token: abcdef.SENSITIVESENSITI}",
		"environment":              "machine: {env: {HTTP_PROXY: 'http://proxy/SENSITIVE'}}",
		"file":                     "machine: {files: [{path: /var/etc/x, op: create, permissions: 0o600, content: SENSITIVE}]}",
		"inline manifest":          "cluster: {inlineManifests: [{name: x, contents: 'kind: SENSITIVE'}]}",
		"manifest headers":         "cluster: {extraManifestHeaders: {Accept: SENSITIVE}}",
		"static pod":               "machine: {pods: [{kind: Pod, metadata: {name: x}, spec: {containers: [{image: SENSITIVE}]}}]}",
		"environment of a service": "apiVersion: v1alpha1\nkind: ExtensionServiceConfig\nname: tailscale\nenvironment: [TS_AUTHKEY=SENSITIVE]\n",
		"file of a service": "apiVersion: v1alpha1\nkind: ExtensionServiceConfig\nname: x\n" +
			"configFiles: [{content: SENSITIVE, mountPath: /x}]\n",
		"passphrase": "apiVersion: v1alpha1\nkind: VolumeConfig\nname: STATE\n" +
			"encryption: {provider: luks2, keys: [{slot: 0, static: {passphrase: SENSITIVE}}]}\n",
		"password in a URL":        "machine: {sysctls: {x: 'https://flux:SENSITIVE@git'}}",
		"token in a URL":           "machine: {install: {extraKernelArgs: ['siderolink.api=grpc://x?jointoken=SENSITIVE']}}",
		"flag":                     "cluster: {apiServer: {extraArgs: {oidc-client-secret: SENSITIVE}}}",
		"flags of another program": "cluster: {apiServer: {env: {X: SENSITIVE}}}",
		"key by its look":          "machine: {sysctls: {x: AGE-SECRET-KEY-SENSITIVE}}",
		"digits":                   "machine: {sysctls: {x: SENSITIVESENSITIVESENSITIVE0123456789}}",
	} {
		t.Run(name, func(t *testing.T) {
			for at, change := range map[string]func(*cluster.Cluster){
				"all":  func(c *cluster.Cluster) { c.Talos.Patches.All = patches(patch) },
				"role": func(c *cluster.Cluster) { c.Talos.Patches.ControlPlanes = patches(patch) },
				"node": func(c *cluster.Cluster) { controlPlane(c).Patches = patches(patch) },
			} {
				text := seen(t, sample(t, change), cluster.ControlPlane)
				assert.NotContains(t, text, "SENSITIVE", at)
				assert.NotContains(t, text, "U0VOU0lUSVZF", at)
				assert.Contains(t, text, "[secret]", at)
			}
		})
	}
}

func TestEffective_HidesSecretsAmongTypedValues(t *testing.T) {
	c := sample(t)
	c.Talos.Kubelet.ExtraArgs = map[string]string{"azure-container-registry-token": "SENSITIVE", "v": "2"}
	c.Talos.RegistryMirrors = map[string][]string{"docker.io": {"https://flux:SENSITIVE@mirror"}}
	text := seen(t, c, cluster.Worker)
	assert.NotContains(t, text, "SENSITIVE")
	assert.Contains(t, text, `v: "2"`)
}

func TestEffective_ShowsWhatIsNoSecret(t *testing.T) {
	text := seen(t, sample(t, func(c *cluster.Cluster) {
		c.Talos.Extensions = []string{cluster.LLDPDExtension}
		c.Talos.Patches.All = patches(
			"machine: {sysctls: {vm.nr_hugepages: '1024'}, kernel: {modules: [{name: drbd}]}, kubelet: {extraArgs: {v: '4'}}}",
			"machine: {install: {image: 'factory.talos.dev/nocloud-installer/"+strings.Repeat("f", 64)+":v1.12.7'}}",
		)
	}), cluster.Worker)
	for _, want := range []string{
		`vm.nr_hugepages: "1024"`, "name: drbd", `v: "4"`, "discard_unpacked_layers = false", "configure lldp portid",
		"nocloud-installer/" + strings.Repeat("f", 64),
	} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, "[secret]")
}

func TestEffective_ChangesWithASecret(t *testing.T) {
	at := func(password string) string {
		c := sample(t)
		c.Talos.Patches.All = patches("machine: {registries: {config: {ghcr.io: {auth: {password: " + password + "}}}}}")
		tree, err := Effective(c, machineOf(c, cluster.Worker))
		require.NoError(t, err)
		return fmt.Sprint(tree)
	}
	assert.NotEqual(t, at("one"), at("other"), "the program's secrets show that they change")
}

func TestEffective_HidesEverythingOfASecretPatch(t *testing.T) {
	c := sample(t)
	c.SecretPatches.All = patches("machine: {sysctls: {vm.nr_hugepages: SENSITIVE}, kernel: {modules: [{name: SENSITIVE}]}}")
	c.SecretPatches.Workers = patches("machine: {time: {bootTimeout: 7m0s}}")
	c.Talos.Patches.All = patches("machine: {sysctls: {vm.max_map_count: '262144'}}")
	text := seen(t, c, cluster.Worker)
	assert.NotContains(t, text, "SENSITIVE")
	assert.NotContains(t, text, "7m0s")
	assert.Contains(t, text, `vm.max_map_count: "262144"`)
	assert.Contains(t, text, "cluster.local")
}

func TestEffective_LeavesOutInlineManifests(t *testing.T) {
	text := seen(t, sample(t, inlineCilium), cluster.ControlPlane)
	assert.NotContains(t, text, "inlineManifests")
}
