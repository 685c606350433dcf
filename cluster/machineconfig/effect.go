package machineconfig

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"golang.org/x/mod/semver"

	"github.com/slipway-platform/slipway/cluster"
)

// Effect is what a running node needs so that a change of its machine configuration takes effect. Of several parts of a change, the
// greatest decides.
type Effect int

// Effects.
const (
	AtOnce                    Effect = iota // nothing: Talos's controllers follow the configuration
	RestartsPods                            // the kubelet starts static pods of the control plane again by itself, the API server's perhaps
	MayIsolate                              // nothing, but nobody may reach the node any more
	MayIsolateAndRestartsPods               // both
	RestartsCRI                             // Talos restarts containerd of the pods by itself; pods and other services go on
	NeedsReboot                             // a reboot: until then Talos uses the former value, and does not say so
	NeedsMachine                            // another machine: Talos does not make the change on one that is installed
)

// RebootsByItself reports whether a version of Talos reboots for some changes by itself, as the releases before 1.14 do. They do not
// restart containerd of the pods: they reboot for such a change, or leave containerd as it is (registry credentials).
func RebootsByItself(talos string) bool { return semver.Compare(semver.MajorMinor(talos), "v1.14") < 0 }

// part is a part of a machine configuration that does not take effect at once.
type part struct {
	name   string         // has no value of the configuration, so it may be displayed; "": what the path matches
	path   *regexp.Regexp // of the thing whose change counts; if it has a group, that is the thing
	needs  Effect
	only   condition
	reason string // with where it was read, in Talos 1.14.1; internal/app/machined/pkg where nothing else is said
}

// condition narrows when the change of a thing counts.
type condition int

const (
	always        condition = iota
	wasThere                // it existed before: Talos takes over a new one at once
	staysThere              // it exists before and after
	isGone                  // nothing is left of it
	controlPlanes           // on control planes
)

// parts are the parts that do not take effect at once; the first row that matches a path decides. All other parts take effect at once, or
// need nothing on an installed node, such as machine.install.
//
// The table holds for each release of Talos. Releases before 1.14 reboot by themselves for some of the changes: a dry run says so.
// Documents of kinds that Slipway does not know take effect at once, as Talos 1.12 has it for all documents.
var parts = []part{
	row("machine.type", `machine\.type`, NeedsMachine, staysThere,
		"controllers follow at once, but etcd and trustd start only at boot: controllers/config/machine_type.go, v1alpha1_sequencer_tasks.go"),
	row("containerd's settings in machine.files", `machine\.files\[/etc/cri/conf\.d/20-customization\.part\]`, RestartsCRI, always,
		"pkg/machinery/config/types/v1alpha1/v1alpha1_cri_bridge.go, controllers/cri/service.go"),
	row("machine.files", `machine\.files\[[^\]]*\]`, NeedsReboot, always,
		"files are written at boot: runtime/v1alpha1/v1alpha1_sequencer_tasks.go"),
	row("machine.env", `machine\.env`, NeedsReboot, always,
		"a service keeps what it has started with, and machined what is removed: controllers/runtime/environment.go"),
	// A volume that is encrypted for the first time, or no longer, does not match its disk, and is not opened at boot ("block dev type
	// mismatch"): a reboot would end the node. Whether they match, package live asks the node.
	row("machine.systemDiskEncryption", `machine\.systemDiskEncryption\.\w+`, NeedsReboot, staysThere,
		"keys change when the volume is opened: controllers/block/internal/volumes/encrypt.go"),
	row("encryption of a volume", `\w*VolumeConfig [^.]+\.encryption`, NeedsReboot, staysThere,
		"as machine.systemDiskEncryption"),
	row("mount of a volume", `(\w*VolumeConfig [^.]+)\.mount`, NeedsReboot, staysThere,
		"a volume that is there keeps its options: controllers/block/internal/volumes/locate.go"),
	row("machine.features.diskQuotaSupport", `machine\.features\.diskQuotaSupport`, NeedsReboot, always,
		"EPHEMERAL is mounted at boot: controllers/block/internal/volumes/volumeconfig/system_volumes.go"),
	row("cluster.etcd.ca", `cluster\.etcd\.ca`, AtOnce, always, "controllers/secrets/etcd.go"),
	row("cluster.etcd", `cluster\.etcd`, NeedsReboot, controlPlanes,
		"arguments are read when etcd starts, and nothing restarts it: system/services/etcd.go"),
	row("", `cluster\.(?:apiServer|controllerManager|scheduler)`, RestartsPods, controlPlanes,
		"its arguments are in its pod, and names and keys in files that it reads when it starts: controllers/k8s/control_plane_static_pod.go"),
	row("", `cluster\.(?:network|controlPlane|secretboxEncryptionSecret|aescbcEncryptionSecret|ca|acceptedCAs|`+
		`aggregatorCA|serviceAccount|externalCloudProvider)`, RestartsPods, controlPlanes,
		"it is in arguments or files of the static pods: controllers/k8s/control_plane.go, controllers/secrets/kubernetes.go"),
	row("", `machine\.network\.(?:interfaces|kubespan)`, MayIsolate, always,
		"controllers follow at once: controllers/network/operator_config.go, controllers/network/address_config.go"),
	row("", `(?:Blackhole|Bond|Bridge|DHCPv|DummyLink|Ethernet|HCloudVIP|Kube[Ss]pan|Layer2VIP|Link|NetworkDefaultAction|`+
		`NetworkRule|Routing|VLAN|VRF|Wireguard)\w*Config(?: [^.]+)?`, MayIsolate, always,
		"as machine.network"),
	row("machine.kernel.modules", `machine\.kernel\.modules\[[^\]]*\]`, NeedsReboot, wasThere,
		"modules are loaded, and neither unloaded nor changed: controllers/runtime/kernel_module_spec.go"),
	row("machine.udev.rules", `machine\.udev\.rules`, NeedsReboot, isGone,
		"without a rule, udevd does not read its files again: controllers/files/udev.go"),
	row("debug", `debug`, NeedsReboot, always, "services read it when they start: system/services/cri.go"),
	row("machine.baseRuntimeSpecOverrides", `machine\.baseRuntimeSpecOverrides`, RestartsCRI, always,
		"controllers/files/cri_base_runtime_spec.go"),
	row("credentials of a registry", `machine\.registries\.config\..+\.auth`, RestartsCRI, always,
		"they are in containerd's configuration: internal/pkg/containers/cri/containerd/containerd.go"),
	row("credentials of a registry", `RegistryAuthConfig [^=]+`, RestartsCRI, always, "as machine.registries"),
	row("EnvironmentConfig", `EnvironmentConfig`, NeedsReboot, always, "as machine.env"),
	row("KernelModuleConfig", `KernelModuleConfig [^.]+`, NeedsReboot, wasThere, "as machine.kernel.modules"),
	row("SecurityProfileConfig", `SecurityProfileConfig`, NeedsReboot, always,
		"sandboxd is loaded at boot, and containerd depends on it: system/services/cri.go"),
	row("CRICustomizationConfig", `CRICustomizationConfig [^=]+`, RestartsCRI, always, "controllers/cri/customization_config.go"),
	row("CRIBaseRuntimeSpecConfig", `CRIBaseRuntimeSpecConfig`, RestartsCRI, always, "controllers/cri/runtime_spec_config.go"),
}

func row(name, path string, needs Effect, only condition, reason string) part {
	return part{name, regexp.MustCompile(`^(?:` + path + `)(?:[.\[]|$)`), needs, only, reason}
}

// EffectOf returns what a node that runs a version of Talos needs for a change of its configuration, and the part of the configuration
// that needs it. The part holds no value.
func EffectOf(talos string, role cluster.Role, before, after config.Provider) (Effect, string, error) {
	was, is, err := bothDocuments(before, after)
	if err != nil {
		return AtOnce, "", err
	}
	former, _ := Lines(was)
	later, _ := Lines(is)
	effect, what := EffectOfLines(talos, role, former, later)
	return effect, what, nil
}

// EffectOfLines does the same for configurations that are written as Lines writes them.
func EffectOfLines(talos string, role cluster.Role, before, after string) (Effect, string) {
	change := changed{talos: talos, role: role, before: valuesOf(before), after: valuesOf(after)}
	paths := maps.Clone(change.before)
	maps.Copy(paths, change.after)
	maps.DeleteFunc(paths, func(path, _ string) bool { return change.before[path] == change.after[path] })
	most, what, pods := AtOnce, "", false
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		effect, name := change.effect(path)
		pods = pods || effect == RestartsPods
		if effect > most {
			most, what = effect, name
		}
	}
	if pods && most == MayIsolate {
		most = MayIsolateAndRestartsPods
	}
	return most, what
}

// changed is a configuration before and after a change, with values by their paths.
type changed struct {
	talos         string
	role          cluster.Role
	before, after map[string]string
}

// effect returns what the change of the value at a path needs.
func (c changed) effect(path string) (Effect, string) {
	for _, part := range parts {
		if !part.path.MatchString(path) {
			continue
		}
		switch {
		case !c.counts(part, path), part.needs == RestartsCRI && RebootsByItself(c.talos):
			return AtOnce, ""
		}
		return part.needs, cmp.Or(part.name, strings.TrimRight(part.path.FindString(path), ".["))
	}
	return AtOnce, ""
}

// counts reports whether the change of a value counts for a part.
func (c changed) counts(part part, path string) bool {
	thing := strings.TrimRight(part.path.FindString(path), ".[")
	if group := part.path.FindStringSubmatch(path); len(group) > 1 {
		thing = group[1]
	}
	was, is := exists(c.before, thing), exists(c.after, thing)
	switch part.only {
	case wasThere:
		return was
	case staysThere:
		return was && is
	case isGone:
		return was && !is
	case controlPlanes:
		return c.role == cluster.ControlPlane
	}
	return true
}

// exists reports whether a configuration has something at a path, or below it.
func exists(values map[string]string, path string) bool {
	for at := range values {
		if cluster.Within(at, path) {
			return true
		}
	}
	return false
}

// valuesOf reads the lines of a configuration, PATH = VALUE, or PATH | VALUE for one line of a text with several. Items of the lists that
// Talos reads by a name are named by it, whatever their place is. What is empty is as good as missing, but for documents.
func valuesOf(text string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		at := separator.FindStringIndex(line)
		if at == nil {
			continue
		}
		path, value := quotedKey.ReplaceAllString(line[:at[0]], ".$1"), strings.TrimSuffix(line[at[1]:], "\n")
		path = strings.TrimPrefix(path, ".")
		if slices.Contains([]string{"{}", "[]", `""`, "null"}, value) && strings.ContainsAny(path, ".[") {
			continue
		}
		values[path] += value + "\n"
	}
	return named(values)
}

var (
	separator = regexp.MustCompile(` [=|] `)
	quotedKey = regexp.MustCompile(`\["([^"]*)"\]`)
	numbered  = regexp.MustCompile(`^(machine\.files|machine\.kernel\.modules)\[(\d+)\]`)
)

// nameOf are the keys by which the items of lists are named.
var nameOf = map[string]string{"machine.files": "path", "machine.kernel.modules": "name"}

// named replaces the numbers of items in lists by their names. Of several items with one name, all but the first keep their numbers.
func named(values map[string]string) map[string]string {
	renamed, owner := map[string]string{}, map[string]string{}
	for _, path := range slices.Sorted(maps.Keys(values)) {
		at := numbered.FindStringSubmatch(path)
		if at == nil {
			renamed[path] = values[path]
			continue
		}
		name := brackets.Replace(strings.TrimSpace(values[cluster.KeyPath(at[0], nameOf[at[1]])]))
		if owner[at[1]+name] == "" {
			owner[at[1]+name] = at[2]
		}
		if owner[at[1]+name] != at[2] {
			name = fmt.Sprintf("%s #%s", name, at[2])
		}
		renamed[at[1]+"["+name+"]"+strings.TrimPrefix(path, at[0])] = values[path]
	}
	return renamed
}

var brackets = strings.NewReplacer("[", "(", "]", ")")
