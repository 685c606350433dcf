package cluster

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// podTypes are the names of values that charts write into objects as they are, with the types that Kubernetes gives them. Keys beside those
// of the type are the chart's own: securityContext may be that of the pod, too. The strategy of a DaemonSet has the keys of a Deployment's.
var podTypes = byName(map[reflect.Type][]string{
	reflect.TypeFor[corev1.Affinity]():                     {"affinity"},
	reflect.TypeFor[[]corev1.Container]():                  {"extraContainers", "extraInitContainers", "initContainers"},
	reflect.TypeFor[corev1.DNSPolicy]():                    {"dnsPolicy", "podDnsPolicy"},
	reflect.TypeFor[appsv1.DeploymentStrategy]():           {"strategy", "updateStrategy"},
	reflect.TypeFor[[]corev1.EnvVar]():                     {"env", "extraEnv", "extraEnvs"},
	reflect.TypeFor[admissionv1.FailurePolicyType]():       {"failurePolicy"},
	reflect.TypeFor[[]corev1.HostAlias]():                  {"hostAliases"},
	reflect.TypeFor[corev1.IPFamilyPolicy]():               {"ipFamilyPolicy", "serviceIPFamilyPolicy"},
	reflect.TypeFor[corev1.PodDNSConfig]():                 {"dnsConfig", "podDnsConfig"},
	reflect.TypeFor[corev1.PodSecurityContext]():           {"podSecurityContext"},
	reflect.TypeFor[corev1.Probe]():                        {"livenessProbe", "readinessProbe", "startupProbe"},
	reflect.TypeFor[corev1.PullPolicy]():                   {"imagePullPolicy", "pullPolicy"},
	reflect.TypeFor[corev1.ResourceRequirements]():         {"resources"},
	reflect.TypeFor[corev1.SecurityContext]():              {"containerSecurityContext", "securityContext"},
	reflect.TypeFor[corev1.ServiceExternalTrafficPolicy](): {"externalTrafficPolicy"},
	reflect.TypeFor[corev1.ServiceType]():                  {"serviceType"},
	reflect.TypeFor[[]corev1.Toleration]():                 {"tolerations"},
	reflect.TypeFor[[]corev1.TopologySpreadConstraint]():   {"topologySpreadConstraints"},
	reflect.TypeFor[[]corev1.Volume]():                     {"additionalVolumes", "extraVolumes", "volumes"},
	reflect.TypeFor[[]corev1.VolumeMount]():                {"additionalVolumeMounts", "extraVolumeMounts", "volumeMounts"},
})

// byName returns the type of each name.
func byName(names map[reflect.Type][]string) map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for kind, all := range names {
		for _, name := range all {
			types[name] = kind
		}
	}
	return types
}

// choices are the texts that Kubernetes takes for a type.
var choices = map[reflect.Type][]string{
	reflect.TypeFor[admissionv1.FailurePolicyType]():        {"Fail", "Ignore"},
	reflect.TypeFor[appsv1.DeploymentStrategyType]():        {"OnDelete", "Recreate", "RollingUpdate"}, // the first is for a DaemonSet
	reflect.TypeFor[corev1.DNSPolicy]():                     {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"},
	reflect.TypeFor[corev1.IPFamilyPolicy]():                {"PreferDualStack", "RequireDualStack", "SingleStack"},
	reflect.TypeFor[corev1.NodeInclusionPolicy]():           {"Honor", "Ignore"},
	reflect.TypeFor[corev1.NodeSelectorOperator]():          {"DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"},
	reflect.TypeFor[corev1.PullPolicy]():                    {"Always", "IfNotPresent", "Never"},
	reflect.TypeFor[corev1.SeccompProfileType]():            {"Localhost", "RuntimeDefault", "Unconfined"},
	reflect.TypeFor[corev1.ServiceExternalTrafficPolicy]():  {"Cluster", "Local"},
	reflect.TypeFor[corev1.ServiceType]():                   {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"},
	reflect.TypeFor[corev1.TaintEffect]():                   {"NoExecute", "NoSchedule", "PreferNoSchedule"},
	reflect.TypeFor[corev1.TolerationOperator]():            {"Equal", "Exists", "Gt", "Lt"},
	reflect.TypeFor[corev1.UnsatisfiableConstraintAction](): {"DoNotSchedule", "ScheduleAnyway"},
	reflect.TypeFor[metav1.LabelSelectorOperator]():         {"DoesNotExist", "Exists", "In", "NotIn"},
}

// oneShape are the names that have no other shape in any chart.
var oneShape = []string{"affinity", "nodeSelector", "podAnnotations", "podLabels", "tolerations"}

// textMaps are names of values that charts write into objects as they are, and whose values are texts to Kubernetes.
var textMaps = regexp.MustCompile(`^nodeSelector$|([aA]nnotations|[lL]abels)$`)

// labelMaps are the textMaps that Kubernetes reads as labels.
var labelMaps = []string{"additionalLabels", "commonLabels", "customLabels", "matchLabels", "nodeSelector", "podLabels"}

// CheckPodValues checks the values of a chart that have one name and one form in all charts, because Kubernetes has them: resources,
// tolerations, security contexts, node selectors, labels, annotations. A value of another shape is the chart's own, and is left alone, and
// so is a template.
func CheckPodValues(path, chart, version string, own, values map[string]any, findings *Findings) {
	podValues{findings, path, chart, version, own}.values(path, values)
}

// values checks a mapping of a chart.
func (p podValues) values(path string, values map[string]any) {
	p.replicas(path, values)
	p.resolver(path, values)
	p.leases(path, values)
	for _, key := range sorted(values) {
		at := KeyPath(path, key)
		if p.known(at, key, values[key]) {
			continue
		}
		p.named(at, key, values[key])
		switch value := values[key].(type) {
		case map[string]any:
			switch key {
			case "podDisruptionBudget", "pdb":
				p.budget(at, value, values)
			case "webhook":
				p.webhook(at, value)
			}
			p.values(at, value)
		case []any:
			for i, item := range value {
				below, _ := item.(map[string]any)
				p.values(ItemPath(at, i), below)
			}
		case string:
			if key == "enabled" && value == "false" {
				p.Found(at, "write it without quotes", "false is text, which charts take for true")
			}
		}
	}
}

type podValues struct {
	*Findings
	root           string // path of all values
	chart, version string
	own            map[string]any // what Slipway sets
}

// budget refuses a PodDisruptionBudget that lets no pod go, beside the values of its workload: no node with such a pod could be drained.
func (p podValues) budget(path string, given, workload map[string]any) {
	const problem = "%v lets no pod go, so that no node can be drained"
	most, least := given["maxUnavailable"], given["minAvailable"]
	if enabled, switched := given["enabled"]; switched && enabled != true || given["create"] == false { // some charts have no switch
		return
	}
	for _, key := range []string{"maxUnavailable", "minAvailable"} {
		text, isText := given[key].(string)
		if isText && text != "" && !isTemplate(text) && !count.MatchString(text) {
			p.Found(KeyPath(path, key), "write a number, or a share such as 50%", "%s is neither a number nor a share of the pods", text)
			return
		}
	}
	// Charts write both, or only the first.
	_, declared := given["maxUnavailable"]
	if usual := p.usual(path + ".maxUnavailable"); least != nil && least != "" && !declared && usual != "" {
		p.Found(path+".minAvailable", "add maxUnavailable: null",
			"%v is beside the chart's own maxUnavailable, %s, of which Kubernetes takes one", least, usual)
		return
	}
	if most == "" || least == "" || most == 0.0 && least != nil { // as many charts write that there is none
		return
	}
	if usual, err := strconv.ParseFloat(p.usual(path+".minAvailable"), 64); least == nil && most == nil && err == nil {
		least = usual
	}
	number, isNumber := least.(float64)
	replicas, known := cmp.Or(workload["replicas"], workload["replicaCount"]).(float64)
	if above := path[:strings.LastIndex(path, ".")+1]; scaled(workload) {
		known = false
	} else if !known {
		usual, err := strconv.ParseFloat(cmp.Or(p.usual(above+"replicas"), p.usual(above+"replicaCount")), 64)
		replicas, known = usual, err == nil
	}
	switch {
	case most != nil && least != nil:
		p.Found(path, "keep one", "has minAvailable and maxUnavailable, of which Kubernetes takes one")
	case slices.Contains([]any{0.0, "0", "0%"}, most):
		p.Found(path+".maxUnavailable", "write 1 or more", problem, most)
	case least == "100%", isNumber && known && number >= replicas:
		p.Found(path+".minAvailable", "write fewer than there are replicas", problem, least)
	}
}

// scaled tells whether something else than the values decides how many pods a workload has.
func scaled(workload map[string]any) bool {
	return slices.ContainsFunc([]string{"autoscaler", "autoscaling", "hpa"}, func(key string) bool {
		scaler, _ := workload[key].(map[string]any)
		return scaler["enabled"] == true
	})
}

// count matches a number of pods, or a share of all.
var count = regexp.MustCompile(`^([0-9]+|([0-9]|[1-9][0-9]|100)%)$`)

// usual returns what Slipway sets, or the chart's default, of a number that others depend on; "" if it is not known.
func (p podValues) usual(path string) string {
	at := strings.TrimPrefix(path, p.root+".")
	if value := ValueAt(p.own, at); value != nil {
		return fmt.Sprint(value)
	}
	if !KnowsChart(p.chart, p.version) || charts()[p.chart].keys[at] == nil {
		return ""
	}
	if usual := charts()[p.chart].keys[at].usual; usual != "0" { // as charts write that there is none
		return usual
	}
	return ""
}

// kubeletPort is the port that the webhooks of cert-manager and of External Secrets have, too, by default.
const kubeletPort = 10250.0

// webhook checks what Kubernetes or the kubelet refuses of an admission webhook.
func (p podValues) webhook(path string, given map[string]any) {
	if seconds, is := given["timeoutSeconds"].(float64); is && (seconds < 1 || seconds > 30) {
		p.Found(path+".timeoutSeconds", "write a number from 1 to 30", "%v is no timeout that Kubernetes takes", seconds)
	}
	port, is := cmp.Or(given["securePort"], given["port"]).(float64)
	if given["hostNetwork"] == true && (!is || port == kubeletPort) {
		p.Found(path+".hostNetwork", "give it another port by the chart's key for it, or remove it",
			"true puts the webhook on the node's port %.0f, which the kubelet has", kubeletPort)
	}
}

// ofChart tells whether the chart is known to have a key.
func (p podValues) ofChart(path string) bool {
	return KnowsChart(p.chart, p.version) && charts()[p.chart].keys[strings.TrimPrefix(path, p.root+".")] != nil
}

// known checks a value whose name and shape are Kubernetes' own, and reports whether it is one.
func (p podValues) known(path, key string, value any) bool {
	kind, has := podTypes[key]
	if textMaps.MatchString(key) {
		kind, has = reflect.TypeFor[map[string]string](), true
	}
	_, isMap := value.(map[string]any)
	_, isList := value.([]any)
	_, isText := value.(string)
	fits := has && (isList && kind.Kind() == reflect.Slice || isText && kind.Kind() == reflect.String ||
		isMap && kind.Kind() != reflect.Slice && kind.Kind() != reflect.String)
	if !fits && !((isMap || isList) && slices.Contains(oneShape, key)) {
		return false
	}
	p.check(path, key, value, kind)
	return true
}

// check compares a value with the type that Kubernetes has for it.
func (p podValues) check(path, key string, value any, kind reflect.Type) {
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	text, isText := value.(string)
	given, isMap := value.(map[string]any)
	list, isList := value.([]any)
	switch {
	case value == nil, isText && isTemplate(text):
	case kind == reflect.TypeFor[resource.Quantity]():
		p.quantity(path, value)
	case kind == reflect.TypeFor[intstr.IntOrString]():
		if !isText {
			p.scalar(path, value, reflect.Int)
		} else if share.MatchString(key) && len(validation.IsValidPercent(text)) > 0 {
			p.Found(path, "write a number without quotes, or a share such as 25%", "%s is neither a number nor a share",
				syntax.ShownText(text))
		}
	case kind.Kind() == reflect.Slice && !isList:
		p.Found(path, "write a list, each item after a dash", "is %s", shape(value))
	case kind.Kind() == reflect.Slice:
		p.twice(path, list, kind.Elem())
		for i, item := range list {
			p.check(ItemPath(path, i), key, item, kind.Elem())
		}
	case slices.Contains([]reflect.Kind{reflect.Struct, reflect.Map}, kind.Kind()) && !isMap:
		p.Found(path, "write a mapping, without dashes", "is %s", shape(value))
	case kind.Kind() == reflect.Map:
		for _, name := range sorted(given) {
			p.check(KeyPath(path, name), name, given[name], kind.Elem())
		}
		if slices.Contains(labelMaps, key) {
			p.labels(path, given)
		}
	case kind.Kind() == reflect.Struct:
		p.object(path, given, kind)
	case isText && text != "" && choices[kind] != nil && !slices.Contains(choices[kind], text):
		p.Found(path, OneOf(text, choices[kind]), "%s is not known to Kubernetes", syntax.ShownText(text))
	default:
		p.scalar(path, value, kind.Kind())
	}
}

// object checks the keys of a mapping that an object of Kubernetes has, too.
func (p podValues) object(path string, given map[string]any, kind reflect.Type) {
	fields := jsonFields(kind)
	for _, key := range sorted(given) {
		if field, known := fields[key]; known {
			p.check(KeyPath(path, key), key, given[key], field)
		} else if meant := syntax.Nearest(key, sorted(fields), min(2, len(key)/2)); meant != "" && !p.ofChart(KeyPath(path, key)) {
			p.Found(KeyPath(path, key), "did you mean "+meant+"?", "is no key that Kubernetes knows")
		} else { // the chart's own
			p.values(path, map[string]any{key: given[key]})
		}
	}
	if rule := podRules[kind]; rule != nil {
		rule(p, path, given)
	}
}

// scalar checks a text, a number or a switch.
func (p podValues) scalar(path string, value any, kind reflect.Kind) {
	number, isNumber := value.(float64)
	_, isText := value.(string)
	_, isSwitch := value.(bool)
	switch {
	case kind == reflect.String && (isNumber || isSwitch):
		p.Found(path, "write it in quotes", "%v is no text, and Kubernetes takes texts only", value)
	case kind == reflect.String && !isText:
		p.Found(path, "write a text", "is %s", shape(value))
	case kind == reflect.Bool && !isSwitch:
		p.Found(path, "write true or false, without quotes", "is %s", shape(value))
	case (kind == reflect.Int || kind == reflect.Int32 || kind == reflect.Int64) && (!isNumber || number != float64(int64(number))):
		p.Found(path, "write a whole number, without quotes", "is %s", shape(value))
	}
}

// shape says what a value is.
func shape(value any) string {
	switch value := value.(type) {
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return "the text " + syntax.ShownText(value)
	default:
		return fmt.Sprint(value)
	}
}

// jsonFields returns the types of an object's fields by their names in JSON.
func jsonFields(kind reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(kind) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			fields[name] = field.Type
		}
	}
	return fields
}

// quantity checks a number or a text.
func (p podValues) quantity(path string, value any) {
	text := fmt.Sprint(value)
	if quantity, err := resource.ParseQuantity(text); err != nil || quantity.Sign() < 0 {
		p.Found(path, "write one, such as 500m of cpu or 256Mi of memory", "%s is no quantity of Kubernetes", syntax.ShownText(text))
	}
}

// labels checks the form of labels.
func (p podValues) labels(path string, given map[string]any) {
	const system = "kubernetes.io/os"
	if os := given[system]; strings.HasSuffix(path, ".nodeSelector") && os != nil && os != "" && os != "linux" {
		p.Found(KeyPath(path, system), "write linux", "%v is the system of no node", os)
	}
	for _, key := range sorted(given) {
		value, isText := given[key].(string)
		at := KeyPath(path, key)
		switch {
		case !isText || isTemplate(key+value):
		case len(validation.IsQualifiedName(key)) > 0:
			p.Found(at, "write a name, after a domain and a slash if you like, such as example.com/team", "has a key that is no label's")
		case len(validation.IsValidLabelValue(value)) > 0:
			p.Found(at, "write letters, digits, dashes, dots and underscores, at most 63", "%s is no label of Kubernetes",
				syntax.ShownText(value))
		}
	}
}

// isTemplate reports whether a chart may compute something else of a text.
func isTemplate(text string) bool { return strings.Contains(text, "{{") }
