package machineconfig

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/syntax"
)

// typo is the most letters in which a name that is refused differs from one that the components know.
const typo = 2

// unknownTo returns the arguments that the components of a version do not take, and with which they do not start: flags, fields, admission
// plugins and controllers that this release does not have, values of another type, and feature gates that an earlier release knew or that
// are almost the name of a known one. Other feature gates are left to the API server that runs and to the first node: a later patch release
// may know them. go-kubernetes knows of removals, too, but of some releases not all, or none.
func (a argued) unknownTo(version semver.Version) []wrong {
	table := tableOf(version.Minor)
	if table == nil {
		return nil
	}
	known := knowledge{table: table, minor: version.Minor}
	for _, id := range []string{k8s.APIServerID, k8s.ControllerManagerID, k8s.SchedulerID, k8s.KubeletID, etcdID} {
		for _, argument := range a.arguments[id] {
			flag, value, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
			known.checkFlag(id, flag, value)
		}
	}
	config := kubeletConfig.part + "."
	gates := a.gateFields()
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		set, is := gates[name].(bool)
		if !is {
			known.refuse(config+"featureGates", name, name+" has a value that the kubelet refuses", toWrite("bool"))
			continue
		}
		known.checkGate(config+"featureGates", k8s.KubeletID, gate{name, strconv.FormatBool(set)})
	}
	known.checkFields(kubeletConfig, kubeletConfig.part, "", a.fields)
	known.checkFields(schedulerConfig, schedulerConfig.part, "", a.scheduler)
	if !a.partial {
		known.checkRelations(a)
	}
	return known.wrong
}

// knowledge compares arguments with the table of a minor release.
type knowledge struct {
	table takes
	minor uint64
	wrong []wrong
}

func (k *knowledge) refuse(part, item, problem, remedy string) {
	k.wrong = append(k.wrong, wrong{fault{part, problem, remedy}, item})
}

// checkFlag checks the name of a component's flag, and its value. Talos chooses etcd's release by itself, so that etcd may have flags that
// the table does not know.
func (k *knowledge) checkFlag(id, written, value string) {
	part := componentParts[id] + ".extraArgs." + written
	flag := written
	if id != etcdID {
		flag = strings.ReplaceAll(written, "_", "-") // the components do likewise
	}
	if !k.table.has(id, flag) {
		if id == etcdID {
			k.checkSpelling(part, id, flag, "flag of etcd")
		} else {
			k.checkName(part, id, flag, "flag of "+id)
		}
		return
	}
	kind := cmp.Or(flagTypes[flag], k.table[id][flag])
	if id == k8s.ControllerManagerID && flag == "cloud-provider" { // KubeControllerManagerOptions.Validate
		kind = "string{external}"
	}
	switch flag {
	case "feature-gates":
		for _, gate := range gatesOf(value) {
			k.checkGate(part, id, gate)
		}
	case "enable-admission-plugins", "disable-admission-plugins":
		for plugin := range strings.SplitSeq(value, ",") {
			k.checkItem(part, admissionPlugins, plugin, "admission plugin")
		}
	case "controllers":
		k.checkControllers(part, value)
	}
	switch {
	case !isOfType(kind, value):
		k.refuse(part, flag, flag+" has a value that "+id+" refuses", toWrite(kind))
	case id == k8s.KubeletID:
		k.checkForm(part, flag, value)
	case flag == "runtime-config":
		k.checkAPIs(part, value)
	}
}

// checkAPIs refuses groups and versions that this release has not: MergeAPIResourceConfigs of k8s.io/apiserver. Of resources, it takes all.
func (k *knowledge) checkAPIs(part, list string) {
	for item := range strings.SplitSeq(list, ",") {
		key, _, _ := strings.Cut(item, "=")
		if parts := strings.Split(strings.TrimSpace(key), "/"); len(parts) > 1 {
			k.checkName(part, apis, parts[0]+"/"+parts[1], "API of kube-apiserver")
		}
	}
}

// checkForm checks a flag of the kubelet by the form of its field.
func (k *knowledge) checkForm(part, flag, value string) {
	for _, form := range talosForms {
		field, isField := strings.CutPrefix(form.part, kubelet)
		field, isList := strings.CutSuffix(field, "[]")
		values := []string{value}
		if isList {
			values = strings.Split(value, ",")
		}
		wrong := func(value string) bool { return !form.takes(value) }
		if isField && flagOf(field) == flag && slices.ContainsFunc(values, wrong) {
			k.refuse(part, flag, flag+" "+form.says, form.remedy)
		}
	}
}

// ownConfig is a configuration of a component's own that is in the machine configuration.
type ownConfig struct {
	part string // that has it
	kind string // of its fields in the table
	name string
	by   string // the component
}

var (
	kubeletConfig   = ownConfig{componentParts[k8s.KubeletID] + ".extraConfig", kubeletFields, "KubeletConfiguration", "the kubelet"}
	schedulerConfig = ownConfig{componentParts[k8s.SchedulerID] + ".config", schedulerFields, "KubeSchedulerConfiguration", k8s.SchedulerID}
)

// checkFields checks what is below a field: names and types. With an unknown name, the scheduler does not start, and Talos leaves the
// kubelet as it is, without a word.
func (k *knowledge) checkFields(of ownConfig, part, field string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			name := cluster.KeyPath(field, key)
			if anyKey := cluster.KeyPath(field, "*"); k.table.has(of.kind, anyKey) {
				name = anyKey
			}
			k.checkField(of, part+"."+key, name, value[key])
		}
	case []any:
		for i, item := range value {
			k.checkField(of, cluster.ItemPath(part, i), field+"[]", item)
		}
	}
}

// checkField checks a field, which the table has under another name than its part of the configuration.
func (k *knowledge) checkField(of ownConfig, part, field string, value any) {
	shown := strings.TrimPrefix(part, of.part+".")
	if !k.table.has(of.kind, field) {
		k.checkFieldName(of, part, field, shown)
		return
	}
	form := k.table[of.kind][field]
	if same, is := strings.CutPrefix(form, "="); is {
		field, form = same, "map"
	}
	if !isOfField(form, value) {
		k.refuse(part, shown, shown+" has a value that "+of.by+" refuses", toWrite(form))
	} else if field != "featureGates" && form != "" {
		k.checkFields(of, part, field, value)
	}
	plugin, is := value.(string)
	if is && of == schedulerConfig && strings.Contains(part, ".enabled[") && strings.HasSuffix(part, ".name") {
		k.checkName(part, schedulerPlugins, plugin, "plugin of kube-scheduler")
	}
}

// checkFieldName refuses a field that the release does not have.
func (k *knowledge) checkFieldName(of ownConfig, part, field, shown string) {
	if what := "field of " + of.name; !k.checkGone(part, of.kind, field, what) {
		above := field[:strings.LastIndex(field, ".")+1]
		var beside []string
		for _, name := range k.table.names(of.kind) {
			if key, is := strings.CutPrefix(name, above); is && !strings.ContainsAny(key, ".[") {
				beside = append(beside, key)
			}
		}
		remedy := removeIt
		if meant := syntax.Nearest(field[len(above):], beside, typo); meant != "" {
			remedy = "did you mean " + meant + "?"
		}
		k.refuse(part, shown, shown+" is no "+k.inRelease(what), remedy)
	}
}

// needed are the controllers without which no cluster comes up: nodes get no pod range and no certificate, and namespaces no account.
var needed = []string{
	"certificatesigningrequest-signing-controller", "daemonset-controller", "deployment-controller", "endpointslice-controller",
	"namespace-controller", "node-ipam-controller", "replicaset-controller", "root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
}

// checkControllers checks a list of controllers, of which those with "-" are switched off. Talos puts it behind its own, which begins with
// all of them.
func (k *knowledge) checkControllers(part, list string) {
	for item := range strings.SplitSeq(list, ",") {
		name, off := strings.CutPrefix(item, "-")
		k.checkItem(part, controllers, name, "controller of kube-controller-manager")
		if off && slices.Contains(needed, cmp.Or(k.table[controllers][name], name)) {
			k.refuse(part, name, name+" is a controller without which no cluster comes up", removeIt)
		}
	}
}

// checkItem checks an item of a list, but for "" and "*".
func (k *knowledge) checkItem(part, kind, name, what string) {
	if name != "" && name != "*" {
		k.checkName(part, kind, name, what)
	}
}

// checkName refuses a name that this release does not have, and that none of its patch releases gets.
func (k *knowledge) checkName(part, kind, name, what string) {
	if k.table.has(kind, name) || k.checkGone(part, kind, name, what) {
		return
	}
	what = k.inRelease(what)
	if !k.checkSpelling(part, kind, name, what) {
		k.refuse(part, name, name+" is no "+what, removeIt)
	}
}

// checkGate refuses a feature gate that is gone or mistyped, and another value than that to which a release has locked it.
func (k *knowledge) checkGate(part, id string, set gate) {
	const what = "feature gate"
	if id == etcdID {
		k.checkSpelling(part, etcdFeatureGates, set.name, what+" of etcd")
		return
	}
	if !k.checkGone(part, featureGates, set.name, what) {
		k.checkSpelling(part, featureGates, set.name, k.inRelease(what))
	}
	value, err := strconv.ParseBool(set.value)
	if only := k.table[featureGates][set.name]; only != "" && err == nil && strconv.FormatBool(value) != only {
		k.refuse(part, set.name, fmt.Sprintf("%s can only be %s in Kubernetes 1.%d", set.name, only, k.minor), removeIt)
	}
}

func (k *knowledge) inRelease(what string) string {
	return fmt.Sprintf("%s in Kubernetes 1.%d", what, k.minor)
}

// checkGone refuses a name that an earlier release had and this one does not, and tells whether it has.
func (k *knowledge) checkGone(part, kind, name, what string) bool {
	removed := removedBy(kind, name, k.minor)
	if removed != 0 {
		k.refuse(part, name, fmt.Sprintf("%s is no %s any more since Kubernetes 1.%d", name, what, removed), removeIt)
	}
	return removed != 0
}

// checkSpelling refuses what is almost the name of something known, and tells whether it has.
func (k *knowledge) checkSpelling(part, kind, name, what string) bool {
	meant := ""
	if !k.table.has(kind, name) {
		meant = syntax.Nearest(name, k.table.names(kind), typo)
	}
	if meant != "" {
		k.refuse(part, name, name+" is no "+what, "did you mean "+meant+"?")
	}
	return meant != ""
}

// gate is a feature gate, and the text of its value.
type gate struct{ name, value string }

// gatesOf returns what a list of feature gates sets: GATE=BOOLEAN or COMPONENT:GATE=BOOLEAN, separated by commas. Spaces count for nothing.
func gatesOf(list string) (gates []gate) {
	for one := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(one, "=")
		if name = strings.TrimSpace(name[strings.LastIndex(name, ":")+1:]); name != "" {
			gates = append(gates, gate{name, strings.TrimSpace(value)})
		}
	}
	return gates
}
