package syntax

import (
	"regexp"
	"slices"
	"strings"
)

const (
	labelPattern   = `[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`
	valuePattern   = `[0-9A-Za-z]([0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?`
	subdomain      = `[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*`
	keyPattern     = `^(` + subdomain + `/)?` + valuePattern + `$`
	maxSubdomain   = 253                                                   // RFC 1123, as Kubernetes has it
	effectsPattern = `(NoSchedule|PreferNoSchedule|NoExecute)`             // of Kubernetes's taints
	reserved       = "is a label that Kubernetes lets no node give itself" // by the admission plugin NodeRestriction
)

var (
	keyForm = regexp.MustCompile(keyPattern)
	effects = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}
)

var nameForms = []Form{
	{
		Name: "label", What: "a host name", Words: "host name, at most 63 of a-z, 0-9 and -", Example: "cp-1", Pattern: `^` + labelPattern + `$`,
		fix: fixLabel, remedy: "write at most 63 of a-z, 0-9 and -, with a letter or digit at both ends",
	},
	{
		// Cilium: cluster name
		Name: "cluster-name", What: "the name of a cluster", Words: "host name, at most 32 characters, not `default`", Example: "infra",
		Pattern: `^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`, fix: fixLabel,
		remedy: "write at most 32 of a-z, 0-9 and -, with a letter or digit at both ends",
		check: refusing(func(value string) bool { return value == "default" },
			"is Cilium's name for a cluster without one", "pick another, such as infra"),
	},
	{
		// Pulumi: the name of a stack, and of its file.
		Name: "stack-name", What: "the name of a stack", Words: "name of a stack, of letters, digits, `-`, `_` and `.`", Example: "apps",
		Pattern: `^[0-9A-Za-z_.-]{1,100}$`, fix: fixStack,
		check:  refusing(func(value string) bool { return strings.HasPrefix(value, "Pulumi.") }, ""),
		remedy: "write the name of its file, Pulumi.STACK.yaml, without Pulumi. and .yaml",
	},
	{
		Name: "csi-driver", What: "the name of a CSI driver", Words: "at most 63 of a-z, 0-9, . and -", Example: "driver.example.com",
		Pattern: `^` + subdomain + `$`, remedy: "write at most 63 of a-z, 0-9, . and -, as in the driver's CSIDriver",
		check: refusing(func(value string) bool { return len(value) > 63 }, ""),
	},
	{
		// Connect's filters have the name between quotation marks.
		Name: "onepassword-name", What: "a name in 1Password", Words: "text without `\"`, or an id", Example: "infra", anyScript: true,
		Pattern: `^[^"\x00-\x1f\x7f]+$`,
		check: func(value string) *Fault {
			switch {
			case strings.HasPrefix(value, "op://"):
				return because("is a reference to a secret", "write the name alone")
			case strings.Contains(value, `"`):
				return because(`has a " in it, which Connect's filters do not allow`, "rename it in 1Password, or write its id")
			case placeholder.MatchString(value):
				return because("has a placeholder in it", "write what it stands for")
			}
			return nil
		},
	},
	{
		Name: "setting", What: "the name of a cluster setting", Words: "name of a setting, of A-Z, 0-9 and `_`", Example: "DOMAIN",
		Pattern: `^[A-Z][0-9A-Z_]{0,62}$`,
		fix: func(value string) []string {
			return []string{strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(strings.Trim(value, "${}")))}
		},
	},
	{
		Name: "kubernetes-label-value", What: "the value of a Kubernetes label",
		Words: "text, a Kubernetes label's value", Example: "rack-7",
		Pattern: `^` + valuePattern + `$`, fix: fixValue,
		remedy: "write at most 63 letters, digits, -, _ and ., with a letter or digit at both ends",
	},
	{
		Name: "node-label-value", What: "the value of a Kubernetes label",
		Words: "text, a Kubernetes label's value, may be empty", Example: "rack-7",
		Pattern: `^(` + valuePattern + `)?$`, fix: fixValue, mayBeVoid: true,
		remedy: "write at most 63 letters, digits, -, _ and ., with a letter or digit at both ends",
	},
	{
		Name: "node-label-key", What: "the name of a Kubernetes label", Words: "a Kubernetes label's name, `[PREFIX/]NAME`",
		Example: "example.com/rack", Pattern: keyPattern, fix: fixKey,
		check: func(value string) *Fault {
			if fault := keyFault(value); fault != nil {
				return fault
			}
			if slices.Contains(kubeletLabels, value) {
				return because("is a label that kubelet itself sets", "remove it")
			}
			if isReservedLabel(value) {
				return because(reserved, "pick another prefix")
			}
			return nil
		},
	},
	{
		Name: "taint-key", What: "the name of a Kubernetes taint", Words: "a Kubernetes taint's name, `[PREFIX/]NAME`",
		Example: "example.com/gpu", Pattern: keyPattern, fix: fixKey,
		check: func(value string) *Fault {
			if slices.Contains(passingTaints, value) {
				return because("is a taint that is removed as soon as the node is ready, and a gate would wait for it",
					"remove it, or pick another name")
			}
			return keyFault(value)
		},
	},
	{
		Name: "taint", What: "a Kubernetes taint", Words: "`EFFECT` or `VALUE:EFFECT`", Example: "NoSchedule",
		Pattern: `^((` + valuePattern + `)?:)?` + effectsPattern + `$`, fix: fixTaint,
		remedy: "write EFFECT or VALUE:EFFECT, with an effect of NoSchedule, PreferNoSchedule or NoExecute",
	},
	{
		// Talos: with its prefix it is a partition's label
		Name: "volume-name", What: "a name that Talos gives a volume", Words: "1 to 34 letters, digits and `-`", Example: "osd-1",
		Pattern: `^[0-9A-Za-z-]{1,34}$`,
		fix:     func(value string) []string { return []string{hyphened(value)} },
		remedy:  "write 1 to 34 letters, digits and -",
	},
}

// hyphened is a name with hyphens for what names of hosts cannot have.
func hyphened(name string) string {
	return strings.NewReplacer("_", "-", " ", "-", ".", "-").Replace(name)
}

// fixLabel makes a label of a name in capitals, with underscores, or with a domain.
func fixLabel(value string) []string {
	lower := strings.ToLower(value)
	first, _, _ := strings.Cut(lower, ".")
	return []string{lower, first, strings.Trim(hyphened(lower), "-")}
}

// fixStack makes the name of a stack of its file's.
func fixStack(value string) []string {
	return []string{strings.TrimSuffix(strings.TrimPrefix(value, "Pulumi."), ".yaml")}
}

func fixValue(value string) []string {
	return []string{strings.Trim(strings.ReplaceAll(value, " ", "-"), "-_.")}
}

// keyFault checks what Kubernetes calls a qualified name: [PREFIX/]NAME.
func keyFault(value string) *Fault {
	prefix, _, found := strings.Cut(value, "/")
	if !keyForm.MatchString(value) || found && len(prefix) > maxSubdomain {
		return wrong()
	}
	return nil
}

func fixKey(value string) []string {
	key, _, _ := strings.Cut(value, "=")
	prefix, name, found := strings.Cut(key, "/")
	if !found {
		return []string{key, strings.Trim(hyphened(key), "-")}
	}
	return []string{key, strings.ToLower(prefix) + "/" + name}
}

// nodeLabels are the labels of Kubernetes' own that a stack may give a node. The admission plugin NodeRestriction refuses
// all others below kubernetes.io and k8s.io, but kubeletLabels and those with one of nodeLabelPrefixes.
var (
	nodeLabels        = []string{"topology.kubernetes.io/region", "topology.kubernetes.io/zone"}
	kubeletLabels     = []string{"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch"}
	nodeLabelPrefixes = []string{"kubelet.kubernetes.io", "node.kubernetes.io"}
)

// AgentTaint is the key of the taint that Cilium's operator gives a node without a ready agent.
const AgentTaint = "node.cilium.io/agent-not-ready"

// passingTaints are the taints that Kubernetes's node-lifecycle controller and Cilium's operator set and remove by themselves.
var passingTaints = []string{
	"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/memory-pressure",
	"node.kubernetes.io/disk-pressure", "node.kubernetes.io/pid-pressure", "node.kubernetes.io/network-unavailable",
	"node.kubernetes.io/unschedulable", AgentTaint,
}

// isReservedLabel reports whether a node may not give itself the label, though its form is right.
func isReservedLabel(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	within := func(domain string) bool { return prefix == domain || strings.HasSuffix(prefix, "."+domain) }
	if !within("kubernetes.io") && !within("k8s.io") {
		return false
	}
	return !slices.Contains(nodeLabels, key) && !slices.ContainsFunc(nodeLabelPrefixes, within)
}

func fixTaint(value string) []string {
	given, effect, found := strings.Cut(strings.ReplaceAll(value, " ", ""), ":")
	if !found {
		given, effect = "", given
	} else if Nearest(given, effects, 3) != "" && Nearest(effect, effects, 3) == "" {
		given, effect = effect, given
	}
	if strings.Contains(effect, ":") {
		return nil
	}
	effect = Nearest(effect, effects, 3)
	if found {
		effect = given + ":" + effect
	}
	return []string{effect}
}
