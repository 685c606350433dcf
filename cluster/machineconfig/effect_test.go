package machineconfig

import (
	"regexp"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

const spegelFile = "/etc/cri/conf.d/20-customization.part"

// parse reads a configuration. Each part of it is a document.
func parse(t *testing.T, documents ...string) config.Provider {
	t.Helper()
	full, err := configloader.NewFromBytes([]byte(strings.Join(documents, "\n---\n")))
	require.NoError(t, err, documents)
	return full
}

func volumeConfig(kind, name, rest string) string {
	return "apiVersion: v1alpha1\nkind: " + kind + "\nname: " + name + "\n" + rest
}

func TestEffectOf_EachPartAndItsNeighbours(t *testing.T) {
	const v1alpha1 = "machine: {}"
	files := func(entries ...string) string { // each is a path and a content
		var list []string
		for i := 0; i < len(entries); i += 2 {
			list = append(list, "{path: "+entries[i]+", content: "+entries[i+1]+"}")
		}
		return "machine: {files: [" + strings.Join(list, ", ") + "]}"
	}
	disk := func(slot string) string {
		return "machine: {systemDiskEncryption: {state: {keys: [{nodeID: {}, slot: " + slot + "}]}}}"
	}
	modules := func(list string) string { return "machine: {kernel: {modules: [" + list + "]}}" }
	state := func(rest string) string { return volumeConfig("VolumeConfig", "STATE", rest) }
	data := func(rest string) string { return volumeConfig("UserVolumeConfig", "data", rest) }
	password := func(value string) string {
		return "machine: {registries: {config: {ghcr.io: {auth: {password: " + value + "}}}}}"
	}
	keys := func(secret string) string {
		return "encryption: {provider: luks2, keys: [{slot: 0, static: {passphrase: " + secret + "}}]}"
	}
	for name, one := range map[string]struct {
		before, after string
		want          Effect
		part          string
	}{
		"nothing":       {"machine: {type: worker}", "machine: {type: worker}", AtOnce, ""},
		"its own order": {"machine: {sysctls: {a: '1', b: '2'}}", "machine: {sysctls: {b: '2', a: '1'}}", AtOnce, ""},
		"the role":      {"machine: {type: worker}", "machine: {type: controlplane}", NeedsMachine, "machine.type"},
		"the token":     {"machine: {token: a}", "machine: {token: b}", AtOnce, ""},

		"a file":             {"machine: {files: []}", files("/var/a", "b"), NeedsReboot, "machine.files"},
		"its content":        {files("/var/a", "b"), files("/var/a", "c"), NeedsReboot, "machine.files"},
		"a file that goes":   {files("/var/a", "b"), "machine: {}", NeedsReboot, "machine.files"},
		"the order of files": {files("/var/a", "b", "/var/b", "b"), files("/var/b", "b", "/var/a", "b"), AtOnce, ""},
		"containerd's file":  {"machine: {}", files(spegelFile, "b"), RestartsCRI, "containerd's settings in machine.files"},
		"its other content":  {files(spegelFile, "b"), files(spegelFile, "c"), RestartsCRI, "containerd's settings in machine.files"},
		"it goes": {files(spegelFile, "b", "/var/a", "b"), files("/var/a", "b"),
			RestartsCRI, "containerd's settings in machine.files"},
		"a second one":        {files(spegelFile, "b"), files(spegelFile, "b", spegelFile, "c"), NeedsReboot, "machine.files"},
		"a file beside it":    {"machine: {}", files(spegelFile, "b", "/etc/cri/conf.d/21-mine.part", "b"), NeedsReboot, "machine.files"},
		"a path of its own":   {"machine: {}", files("'/var/[a]'", "b"), NeedsReboot, "machine.files"},
		"a variable":          {"machine: {}", "machine: {env: {a: b}}", NeedsReboot, "machine.env"},
		"a variable removed":  {"machine: {env: {a: b}}", "machine: {env: {}}", NeedsReboot, "machine.env"},
		"an annotation named": {"machine: {}", "machine: {nodeAnnotations: {machine.env: b}}", AtOnce, ""},

		"a first key of a disk": {"machine: {}", disk("0"), AtOnce, ""},
		"another key of a disk": {disk("0"), disk("1"), NeedsReboot, "machine.systemDiskEncryption"},
		"a first key":           {v1alpha1, state(keys("a")), AtOnce, ""},
		"another key":           {state(keys("a")), state(keys("b")), NeedsReboot, "encryption of a volume"},
		"another key of data":   {data(keys("a")), data(keys("b")), NeedsReboot, "encryption of a volume"},
		"no key any more":       {state(keys("a")), v1alpha1, AtOnce, ""},
		"the size of a volume":  {state("provisioning: {maxSize: 9GiB}"), state("provisioning: {maxSize: 8GiB}"), AtOnce, ""},
		"a volume's first mount": {state("provisioning: {maxSize: 9GiB}"), state("provisioning: {maxSize: 9GiB}\nmount: {secure: false}"),
			NeedsReboot, "mount of a volume"},
		"a new volume": {v1alpha1, data(keys("a") + "\nmount: {secure: false}"), AtOnce, ""},
		"quotas": {"machine: {features: {}}", "machine: {features: {diskQuotaSupport: true}}",
			NeedsReboot, "machine.features.diskQuotaSupport"},
		"another feature": {"machine: {features: {}}", "machine: {features: {rbac: true}}", AtOnce, ""},

		"an argument of etcd": {"cluster: {etcd: {}}", "cluster: {etcd: {extraArgs: {quota-backend-bytes: '1'}}}",
			NeedsReboot, "cluster.etcd"},
		"the image of etcd": {"cluster: {etcd: {image: a}}", "cluster: {etcd: {image: b}}", NeedsReboot, "cluster.etcd"},
		"the addresses of etcd": {"cluster: {etcd: {advertisedSubnets: [10.0.0.0/8]}}", "cluster: {etcd: {advertisedSubnets: [10.0.0.0/9]}}",
			NeedsReboot, "cluster.etcd"},
		"the CA of etcd": {"cluster: {etcd: {ca: {crt: YQ==, key: YQ==}}}", "cluster: {etcd: {ca: {crt: Yg==, key: YQ==}}}",
			AtOnce, ""},
		"an argument of a server": {"cluster: {apiServer: {}}", "cluster: {apiServer: {extraArgs: {v: '1'}}}",
			RestartsPods, "cluster.apiServer"},
		"a name of a server": {"cluster: {apiServer: {}}", "cluster: {apiServer: {certSANs: [a]}}",
			RestartsPods, "cluster.apiServer"},
		"an image of a scheduler": {"cluster: {scheduler: {image: a}}", "cluster: {scheduler: {image: b}}",
			RestartsPods, "cluster.scheduler"},
		"the ranges of pods": {"cluster: {network: {podSubnets: [10.0.0.0/16]}}", "cluster: {network: {podSubnets: [10.0.0.0/17]}}",
			RestartsPods, "cluster.network"},
		"the CA":           {"cluster: {acceptedCAs: []}", "cluster: {acceptedCAs: [{crt: YQ==}]}", RestartsPods, "cluster.acceptedCAs"},
		"a module":         {modules("{name: a}"), modules("{name: b}, {name: a}"), AtOnce, ""},
		"a module removed": {modules("{name: a}, {name: b}"), modules("{name: b}"), NeedsReboot, "machine.kernel.modules"},
		"a parameter": {modules("{name: a}"), modules("{name: a, parameters: [c=1]}"),
			NeedsReboot, "machine.kernel.modules"},
		"a rule of udev":           {"machine: {}", "machine: {udev: {rules: [a]}}", AtOnce, ""},
		"one of two rules of udev": {"machine: {udev: {rules: [a, b]}}", "machine: {udev: {rules: [b]}}", AtOnce, ""},
		"the last rule of udev":    {"machine: {udev: {rules: [a]}}", "machine: {}", NeedsReboot, "machine.udev.rules"},
		"debug":                    {"debug: false", "debug: true", NeedsReboot, "debug"},

		"a limit of containers": {"machine: {}", "machine: {baseRuntimeSpecOverrides: {process: {noNewPrivileges: true}}}",
			RestartsCRI, "machine.baseRuntimeSpecOverrides"},
		"a password": {password("a"), password("b"), RestartsCRI, "credentials of a registry"},
		"a password of its own": {v1alpha1, volumeConfig("RegistryAuthConfig", "ghcr.io", "username: a\npassword: b"),
			RestartsCRI, "credentials of a registry"},
		"the CA of a registry": {"machine: {}", "machine: {registries: {config: {ghcr.io: {tls: {insecureSkipVerify: true}}}}}",
			AtOnce, ""},
		"a mirror": {"machine: {}", "machine: {registries: {mirrors: {ghcr.io: {endpoints: ['https://a']}}}}", AtOnce, ""},
		"variables of their own": {v1alpha1, "apiVersion: v1alpha1\nkind: EnvironmentConfig\nvariables: {a: b}",
			NeedsReboot, "EnvironmentConfig"},
		"a time server": {"machine: {time: {servers: [a]}}", "machine: {time: {servers: [b]}}", AtOnce, ""},
		"the installer": {"machine: {install: {image: a}}", "machine: {install: {image: b}}", AtOnce, ""},
		"the most decides": {"machine: {}", "machine: {env: {a: b}, baseRuntimeSpecOverrides: {process: {noNewPrivileges: true}}}",
			NeedsReboot, "machine.env"},
		"an MTU": {"machine: {network: {interfaces: [{interface: eth0}]}}", "machine: {network: {interfaces: [{interface: eth0, mtu: 9000}]}}",
			MayIsolate, "machine.network.interfaces"},
		"an MTU and a flag": {"machine: {network: {interfaces: [{interface: eth0}]}}",
			"machine: {network: {interfaces: [{interface: eth0, mtu: 9000}]}}\ncluster: {apiServer: {extraArgs: {v: '1'}}}",
			MayIsolateAndRestartsPods, "machine.network.interfaces"},
		"a link of its own":       {v1alpha1, "apiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\nmtu: 9000", MayIsolate, "LinkConfig eth0"},
		"a resolver":              {"machine: {}", "machine: {network: {nameservers: [10.0.0.1]}}", AtOnce, ""},
		"a host name":             {v1alpha1, "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\nauto: 'off'", AtOnce, ""},
		"the kubelet":             {"machine: {}", "machine: {kubelet: {extraArgs: {v: '1'}}}", AtOnce, ""},
		"a file in another place": {"machine: {}", "machine: {seccompProfiles: [{name: a, value: {b: c}}]}", AtOnce, ""},
	} {
		effect, part, err := EffectOf("v1.14.6", cluster.ControlPlane, parse(t, one.before), parse(t, one.after))
		require.NoError(t, err, name)
		assert.Equal(t, one.want, effect, name)
		assert.Equal(t, one.part, part, name)
	}
}

func TestEffectOf_TheControlPlaneCountsOnItsNodesOnlyAndContainerdFrom114On(t *testing.T) {
	effect := func(talos string, role cluster.Role, before, after string) Effect {
		effect, _, err := EffectOf(talos, role, parse(t, before), parse(t, after))
		require.NoError(t, err)
		return effect
	}
	etcd := [2]string{"cluster: {etcd: {image: a}}", "cluster: {etcd: {image: b}}"}
	assert.Equal(t, AtOnce, effect("v1.14.6", cluster.Worker, etcd[0], etcd[1]))
	assert.Equal(t, NeedsReboot, effect("v1.12.7", cluster.ControlPlane, etcd[0], etcd[1]))
	servers := [2]string{"cluster: {apiServer: {image: a}}", "cluster: {apiServer: {image: b}}"}
	assert.Equal(t, AtOnce, effect("v1.14.6", cluster.Worker, servers[0], servers[1]))
	assert.Equal(t, RestartsPods, effect("v1.12.7", cluster.ControlPlane, servers[0], servers[1]))
	containerd := [2]string{"machine: {}", "machine: {baseRuntimeSpecOverrides: {process: {noNewPrivileges: true}}}"}
	assert.Equal(t, AtOnce, effect("v1.13.9", cluster.Worker, containerd[0], containerd[1]))
	assert.Equal(t, RestartsCRI, effect("v1.14.0", cluster.Worker, containerd[0], containerd[1]))
}

func TestEffectOfLines_ReadsDocumentsThatOnlyLaterReleasesKnowAndLinesOfAPreview(t *testing.T) {
	containerd := func(line string) string {
		return "machine.files[0].content | " + line + "\nmachine.files[0].path = " + spegelFile
	}
	for name, one := range map[string]struct {
		before, after string
		want          Effect
	}{
		"a module":            {"", "KernelModuleConfig zfs = {}\n", AtOnce},
		"a module removed":    {"KernelModuleConfig zfs = {}\n", "", NeedsReboot},
		"isolation":           {"", "SecurityProfileConfig.workloadIsolation = true\n", NeedsReboot},
		"containerd":          {"", "CRICustomizationConfig mine.content = a\n", RestartsCRI},
		"limits":              {"", "CRIBaseRuntimeSpecConfig.overrides.a = b\n", RestartsCRI},
		"quoted":              {`["VolumeConfig STATE"].encryption.cipher = a`, `["VolumeConfig STATE"].encryption.cipher = b`, NeedsReboot},
		"a registry":          {"", `machine.registries.config["ghcr.io"].auth.password = [secret]`, RestartsCRI},
		"one line of several": {containerd("a"), containerd("b"), RestartsCRI},
		"a hidden path":       {"", "machine.files[0].path = [secret]", NeedsReboot},
		"an unknown document": {"", "SomethingConfig x.mount = a\n", AtOnce},
		"an empty part":       {"machine.env = {}\n", "", AtOnce},
	} {
		effect, _ := EffectOfLines("v1.14.6", cluster.Worker, one.before, one.after)
		assert.Equal(t, one.want, effect, name)
	}
}

func TestEffectOf_TheSpegelOfAStackRestartsContainerd(t *testing.T) {
	configuration := func(enabled bool) config.Provider {
		c := sample(t, func(c *cluster.Cluster) { c.Spegel.Enabled = enabled })
		full, err := assemble(model{*c}, machineOf(c, cluster.ControlPlane))
		require.NoError(t, err)
		return full
	}
	effect, _, err := EffectOf("v1.14.6", cluster.ControlPlane, configuration(true), configuration(false))
	require.NoError(t, err)
	assert.Equal(t, RestartsCRI, effect)
}

func TestParts_SayWhyAndWhereThatWasRead(t *testing.T) {
	source := regexp.MustCompile(`\w\.go|^as machine\.`)
	for _, part := range parts {
		assert.Regexp(t, source, part.reason, part.name)
	}
}
