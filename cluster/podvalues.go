package cluster

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// textMaps are names of values that charts write into objects as they are, and whose values are texts to Kubernetes.
var textMaps = regexp.MustCompile(`^nodeSelector$|([aA]nnotations|[lL]abels)$`)

// labelMaps are the textMaps that Kubernetes reads as labels.
var labelMaps = []string{"nodeSelector", "podLabels", "matchLabels", "commonLabels"}

// CheckPodValues checks the values of a chart that have one name and one form in all charts, because Kubernetes has them: resources,
// tolerations, node selectors, labels, annotations. A value of another shape is the chart's own, and is left alone, and so is a template.
func CheckPodValues(path string, values map[string]any, findings *Findings) {
	p := podValues{findings}
	for _, key := range sorted(values) {
		at := KeyPath(path, key)
		switch value := values[key].(type) {
		case map[string]any:
			switch {
			case key == "resources":
				p.resources(at, value)
			case key == "tolerations":
				p.Found(at, "write a list, each toleration after a dash", "is a mapping")
			case key == "affinity":
				p.keys(at, value, []string{"nodeAffinity", "podAffinity", "podAntiAffinity"})
			case textMaps.MatchString(key):
				p.texts(at, value, slices.Contains(labelMaps, key))
			}
			CheckPodValues(at, value, findings)
		case []any:
			if key == "nodeSelector" || key == "affinity" || key == "podAnnotations" || key == "podLabels" {
				p.Found(at, "write a mapping, without dashes", "is a list")
			}
			for i, item := range value {
				below, isMap := item.(map[string]any)
				if isMap && key == "tolerations" {
					p.toleration(ItemPath(at, i), below)
				}
				CheckPodValues(ItemPath(at, i), below, findings)
			}
		case string:
			if key == "enabled" && value == "false" {
				p.Found(at, "write it without quotes", "false is text, which charts take for true")
			}
		}
	}
}

type podValues struct{ *Findings }

// keys reports keys that are close to known ones.
func (p podValues) keys(path string, given map[string]any, known []string) {
	for _, key := range sorted(given) {
		if meant := Suggest(key, known); meant != "" && !slices.Contains(known, key) {
			p.Found(KeyPath(path, key), "did you mean "+meant+"?", "is no key that Kubernetes knows")
		}
	}
}

func (p podValues) resources(path string, given map[string]any) {
	p.keys(path, given, []string{"limits", "requests", "claims"})
	limits, _ := given["limits"].(map[string]any)
	requests, _ := given["requests"].(map[string]any)
	for _, name := range sorted(limits) {
		p.quantity(path+".limits."+name, limits[name])
	}
	for _, name := range sorted(requests) {
		request, is := p.quantity(path+".requests."+name, requests[name])
		if limit, err := resource.ParseQuantity(fmt.Sprint(limits[name])); is && err == nil && request.Cmp(limit) > 0 {
			p.Found(path+".requests."+name, "write at most that, or raise the limit", "%v is more than the limit %v", requests[name], limits[name])
		}
	}
}

// quantity checks a number or a text, and returns it if it is a quantity.
func (p podValues) quantity(path string, value any) (resource.Quantity, bool) {
	text := fmt.Sprint(value)
	switch value.(type) {
	case string, float64:
	default:
		return resource.Quantity{}, false
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil && !isTemplate(text) || err == nil && quantity.Sign() < 0 {
		p.Found(path, "write one, such as 500m of cpu or 256Mi of memory", "%s is no quantity of Kubernetes", syntax.Shown(syntax.Form{}, text))
	}
	return quantity, err == nil
}

func (p podValues) toleration(path string, given map[string]any) {
	text := func(key string) string { value, _ := given[key].(string); return value }
	p.keys(path, given, []string{"key", "operator", "value", "effect", "tolerationSeconds"})
	operator, effect := text("operator"), text("effect")
	if effects := []string{"", "NoSchedule", "PreferNoSchedule", "NoExecute"}; !slices.Contains(effects, effect) && !isTemplate(effect) {
		p.Found(path+".effect", OneOf(effect, effects[1:]), "%s is no effect of a taint", effect)
	}
	switch {
	case isTemplate(operator):
	case !slices.Contains([]string{"", "Exists", "Equal", "Lt", "Gt"}, operator):
		p.Found(path+".operator", "write Exists or Equal", "%s is no operator of a toleration", operator)
	case operator == "Exists" && text("value") != "":
		p.Found(path+".value", "remove it, or write operator: Equal", "%s is given beside operator: Exists", text("value"))
	case operator != "Exists" && given["key"] == nil:
		p.Found(path, "add the key of a taint, or operator: Exists", "has neither")
	}
}

// texts checks the values of a mapping of texts.
func (p podValues) texts(path string, given map[string]any, labels bool) {
	for _, key := range sorted(given) {
		at := KeyPath(path, key)
		switch value := given[key].(type) {
		case bool, float64:
			p.Found(at, "write it in quotes", "%v is no text, and Kubernetes takes texts only", value)
		case string:
			if labels && !isTemplate(key+value) && len(validation.IsQualifiedName(key))+len(validation.IsValidLabelValue(value)) > 0 {
				p.Found(at, "write letters, digits, dashes, dots and underscores, at most 63", "%s is no label of Kubernetes",
					syntax.Shown(syntax.Form{}, value))
			}
		}
	}
}

// isTemplate reports whether a chart may compute something else of a text.
func isTemplate(text string) bool { return strings.Contains(text, "{{") }
