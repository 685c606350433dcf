package cluster

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// podRules are what Kubernetes refuses of an object beyond the types of its keys.
var podRules = map[reflect.Type]func(p podValues, path string, given map[string]any){
	reflect.TypeFor[appsv1.DeploymentStrategy]():       podValues.strategy,
	reflect.TypeFor[corev1.Container]():                podValues.container,
	reflect.TypeFor[corev1.EnvVar]():                   podValues.variable,
	reflect.TypeFor[corev1.NodeSelectorRequirement]():  podValues.requirement,
	reflect.TypeFor[corev1.ResourceRequirements]():     podValues.requests,
	reflect.TypeFor[corev1.Toleration]():               podValues.toleration,
	reflect.TypeFor[corev1.TopologySpreadConstraint](): podValues.spread,
	reflect.TypeFor[corev1.Volume]():                   podValues.volume,
	reflect.TypeFor[corev1.VolumeMount]():              podValues.mount,
	reflect.TypeFor[metav1.LabelSelectorRequirement](): podValues.requirement,
}

// needs adds a problem for each key that an object lacks.
func (p podValues) needs(path string, given map[string]any, keys ...string) {
	for _, key := range keys {
		if given[key] == nil || given[key] == "" {
			p.Found(path, "add it", "has no %s", key)
		}
	}
}

func (p podValues) strategy(path string, given map[string]any) {
	update, _ := given["rollingUpdate"].(map[string]any)
	if none := []any{0.0, "0%"}; slices.Contains(none, update["maxSurge"]) && slices.Contains(none, update["maxUnavailable"]) {
		p.Found(path+".rollingUpdate", "write 1 for one of the two", "allows neither more nor fewer pods, so that none can be replaced")
	}
	if given["type"] == "Recreate" && update != nil { // a DaemonSet may have it beside OnDelete; a null takes the chart's own away
		p.Found(path+".rollingUpdate", "write null for it, or type: RollingUpdate", "is for RollingUpdate, and the type is Recreate")
	}
}

func (p podValues) container(path string, given map[string]any) {
	p.needs(path, given, "name", "image")
}
func (p podValues) mount(path string, given map[string]any) {
	p.needs(path, given, "name", "mountPath")
}

func (p podValues) variable(path string, given map[string]any) {
	p.needs(path, given, "name")
	if name, _ := given["name"].(string); name != "" && !isTemplate(name) && len(validation.IsRelaxedEnvVarName(name)) > 0 {
		p.Found(path+".name", "remove what is no printable character, and =", "%s is no name of a variable", syntax.ShownText(name))
	}
	if given["value"] != nil && given["value"] != "" && given["valueFrom"] != nil {
		p.Found(path, "keep one", "has value and valueFrom, of which Kubernetes takes one")
	}
}

func (p podValues) volume(path string, given map[string]any) {
	p.needs(path, given, "name")
	if name, _ := given["name"].(string); name != "" && !isTemplate(name) && len(validation.IsDNS1123Label(name)) > 0 {
		p.Found(path+".name", lowerCase, "%s is no name of a volume", syntax.ShownText(name))
	}
}

// requirement checks a line of a selector of labels.
func (p podValues) requirement(path string, given map[string]any) {
	values, _ := given["values"].([]any)
	switch operator := given["operator"]; {
	case slices.Contains([]any{"In", "NotIn"}, operator) && len(values) == 0:
		p.Found(path, "add values", "has the operator %s, and no values", operator)
	case slices.Contains([]any{"Exists", "DoesNotExist"}, operator) && len(values) > 0:
		p.Found(path+".values", "remove them, or write operator: In", "are given beside operator: %s", operator)
	}
}

func (p podValues) spread(path string, given map[string]any) {
	p.needs(path, given, "topologyKey")
	if skew, is := given["maxSkew"].(float64); is && skew < 1 {
		p.Found(path+".maxSkew", "write 1 or more", "%v is less than the least difference between two domains", skew)
	}
	if given["minDomains"] != nil && given["whenUnsatisfiable"] == "ScheduleAnyway" {
		p.Found(path+".minDomains", "remove it, or write whenUnsatisfiable: DoNotSchedule", "%v is for DoNotSchedule", given["minDomains"])
	}
}

// requests checks that no request is above its limit.
func (p podValues) requests(path string, given map[string]any) {
	limits, _ := given["limits"].(map[string]any)
	requests, _ := given["requests"].(map[string]any)
	for _, name := range sorted(requests) {
		request, err := resource.ParseQuantity(fmt.Sprint(requests[name]))
		limit, none := resource.ParseQuantity(fmt.Sprint(limits[name]))
		if err == nil && none == nil && request.Cmp(limit) > 0 {
			p.Found(path+".requests."+name, "write at most that, or raise the limit", "%v is more than the limit %v", requests[name], limits[name])
		}
	}
}

// toleration checks what the types of Kubernetes leave open.
func (p podValues) toleration(path string, given map[string]any) {
	text := func(key string) string { value, _ := given[key].(string); return value }
	operator, effect := text("operator"), text("effect")
	if given["tolerationSeconds"] != nil && effect != "NoExecute" && !isTemplate(effect) {
		p.Found(path+".tolerationSeconds", "remove it, or write effect: NoExecute", "%v is for the effect NoExecute", given["tolerationSeconds"])
	}
	switch {
	case operator == "Exists" && text("value") != "":
		p.Found(path+".value", "remove it, or write operator: Equal", "%s is given beside operator: Exists", text("value"))
	case slices.Contains([]string{"", "Equal", "Gt", "Lt"}, operator) && given["key"] == nil:
		p.Found(path, "add the key of a taint, or operator: Exists", "has neither")
	}
}

// unique are the types of which Kubernetes takes each name once in a list. Of variables, it takes the last.
var unique = []reflect.Type{reflect.TypeFor[corev1.Container](), reflect.TypeFor[corev1.Volume]()}

// twice refuses the same name twice in a list of objects.
func (p podValues) twice(path string, list []any, kind reflect.Type) {
	seen := map[any]bool{}
	for i, item := range list {
		given, _ := item.(map[string]any)
		name, isText := given["name"].(string)
		if isText && seen[name] && slices.Contains(unique, kind) {
			p.Found(ItemPath(path, i)+".name", "remove one", "%s is there twice", syntax.ShownText(name))
		}
		seen[name] = true
	}
}

// replicas checks the numbers of an autoscaler.
func (p podValues) replicas(path string, given map[string]any) {
	least, hasLeast := given["minReplicas"].(float64)
	most, hasMost := given["maxReplicas"].(float64)
	if hasLeast && hasMost && least > most {
		p.Found(KeyPath(path, "minReplicas"), "write at most that", "%v is more than maxReplicas, %v", least, most)
	}
}

// resolver refuses pods with neither the cluster's DNS nor one of their own, if the chart has the key for their own beside the policy only.
func (p podValues) resolver(path string, given map[string]any) {
	for _, policy := range []string{"dnsPolicy", "podDnsPolicy"} {
		config := strings.Replace(policy, "Policy", "Config", 1)
		if !p.ofChart(KeyPath(path, config)) || path != p.root && p.ofChart(KeyPath(p.root, config)) {
			continue
		}
		of, _ := given[config].(map[string]any)
		if servers, isList := of["nameservers"].([]any); given[policy] == "None" && (!isList || len(servers) == 0) {
			p.Found(KeyPath(path, policy), "add "+config+" with nameservers", "None leaves the pods without DNS, which Kubernetes refuses")
		}
	}
}

// elections are the mappings with the times of the election of a leader, with their keys and defaults in seconds: flags of cert-manager and
// of Cilium's agent.
var elections = map[string]struct {
	lease, renew, retry string
	usual               [3]time.Duration
}{
	"leaderElection":  {"leaseDuration", "renewDeadline", "retryPeriod", [3]time.Duration{60, 40, 15}},
	"l2announcements": {"leaseDuration", "leaseRenewDeadline", "leaseRetryPeriod", [3]time.Duration{15, 5, 2}},
}

// leases refuses times that no leader can keep: NewLeaderElector of k8s.io/client-go.
func (p podValues) leases(path string, given map[string]any) {
	names := elections[path[strings.LastIndex(path, ".")+1:]]
	var times [3]time.Duration
	last := ""
	for i, key := range []string{names.lease, names.renew, names.retry} {
		text, _ := given[key].(string)
		duration, err := time.ParseDuration(text)
		switch {
		case given[key] == nil:
			duration = names.usual[i] * time.Second
		case err != nil:
			return // which its form says
		default:
			last = key
		}
		times[i] = duration
	}
	switch lease, renew, retry := times[0], times[1], times[2]; {
	case last == "":
	case lease <= renew:
		p.Found(KeyPath(path, last), "make the first one longer", "%s is %s, and %s is %s, which has to be shorter",
			names.lease, lease, names.renew, renew)
	case float64(renew) <= 1.2*float64(retry):
		p.Found(KeyPath(path, last), "make the first one longer", "%s is %s, and %s is %s, of which it has to be more than 1.2 times",
			names.renew, renew, names.retry, retry)
	}
}

const lowerCase = "write lower-case letters, digits and dashes, beginning and ending with a letter or a digit"

var (
	share  = regexp.MustCompile(`^(maxSurge|maxUnavailable|minAvailable)$`)
	port   = regexp.MustCompile(`(^p|P)ort$`)
	tag    = regexp.MustCompile(`^\w[\w.-]{0,127}(@sha256:[0-9a-f]{64})?$`)
	digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

	// monitored is a duration as the objects of Prometheus' operator have it, and monitor the path of one.
	monitored = regexp.MustCompile(`^(0|([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)$`)
	monitor   = regexp.MustCompile(`(?i)monitor\.(interval|scrapeTimeout)$`)
	service   = regexp.MustCompile(`(?i)service\.type$`)
	image     = regexp.MustCompile(`(?i)image\.repository$`)
	tagged    = regexp.MustCompile(`(?i)image\.tag$`)
	elected   = regexp.MustCompile(`(leaderElection\.(leaseDuration|renewDeadline|retryPeriod)|l2announcements\.lease\w+)$`) // flags of Go
	gates     = regexp.MustCompile(`^\s*(\w+\s*=\s*\w+\s*)?(,\s*(\w+\s*=\s*\w+\s*)?)*$`)
)

// named checks a number or a text whose name means the same in all charts.
func (p podValues) named(path, key string, value any) {
	number, isNumber := value.(float64)
	text, isText := value.(string)
	if isNumber {
		switch {
		case port.MatchString(key) && (number < 0 || number > 65535 || number != float64(int64(number))):
			p.Found(path, "write a number up to 65535", "%v is no port", number)
		case monitor.MatchString(path), elected.MatchString(path):
			p.Found(path, fmt.Sprintf("write %q", fmt.Sprint(number, "s")), "%v has no unit", number)
		}
	}
	if !isText || text == "" || isTemplate(text) {
		return
	}
	found := func(remedy, problem string) { p.Found(path, remedy, "%s "+problem, syntax.ShownText(text)) }
	switch {
	case (key == "priorityClassName" || key == "runtimeClassName") && len(validation.IsDNS1123Subdomain(text)) > 0:
		found(lowerCase, "is no name of an object")
	case monitor.MatchString(path) && !monitored.MatchString(text):
		found("write it as 30s or 1m30s", "is no duration that Prometheus takes")
	case service.MatchString(path):
		p.check(path, key, value, reflect.TypeFor[corev1.ServiceType]())
	case elected.MatchString(path) && !slices.Contains(kindsOf(text), duration):
		found("write it with its unit, such as 60s", "is no duration")
	case key == "featureGates" && !gates.MatchString(text):
		found("write each as NAME=true or NAME=false, with commas between them", "is no list of feature gates")
	case tagged.MatchString(path) && !tag.MatchString(text):
		found("write one, such as v1.2.3", "is no tag of an image")
	case key == "digest" && !digest.MatchString(text):
		found("write sha256: and 64 hexadecimal digits", "is no digest")
	case image.MatchString(path) && (strings.Contains(text, "://") || strings.ToLower(text) != text || strings.HasSuffix(text, "/")):
		found("write it as registry.example.com/folder/name", "is no repository of images")
	}
}
