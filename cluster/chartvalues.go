package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// ChartValues are the user's own values of a Helm chart, under the chart's own keys. They are merged into Slipway's last, and must not
// set what Slipway sets. They are stored as compact JSON; empty means none.
type ChartValues json.RawMessage

// String returns the values as JSON.
func (v ChartValues) String() string { return string(v) }

// MarshalJSON returns the values unchanged; null if there are none.
func (v ChartValues) MarshalJSON() ([]byte, error) {
	if len(v) == 0 {
		return []byte("null"), nil
	}
	return v, nil
}

// Tree returns the values as a tree; nil if there are none.
func (v ChartValues) Tree() (map[string]any, error) {
	var tree map[string]any
	if len(v) == 0 {
		return nil, nil
	}
	return tree, json.Unmarshal(v, &tree)
}

// ValueAt returns the value at a dotted path of a tree; nil if there is none.
func ValueAt(tree map[string]any, path string) any {
	var value any = tree
	for key := range strings.SplitSeq(path, ".") {
		below, _ := value.(map[string]any)
		value = below[key]
	}
	return value
}

// SetValue sets the value at a path of a tree, of any type. It makes the maps on the way that are missing.
func SetValue(tree map[string]any, value any, path ...string) {
	last := len(path) - 1
	for _, key := range path[:last] {
		below, isMap := tree[key].(map[string]any)
		if !isMap {
			below = map[string]any{}
			tree[key] = below
		}
		tree = below
	}
	tree[path[last]] = value
}

// MergedInto adds the user's values to own, the values that Slipway sets, as JSON writes them. It refuses a value that both set.
func (v ChartValues) MergedInto(own any) (map[string]any, error) {
	tree, twice, err := v.merged(own)
	if err == nil && len(twice) > 0 {
		err = fmt.Errorf("%s: is set by Slipway; remove it", twice[0])
	}
	if err != nil {
		return nil, err
	}
	return tree, nil
}

// Conflicts returns the paths of the values that Slipway sets, too. A list is one value.
func (v ChartValues) Conflicts(own any) []string {
	_, twice, _ := v.merged(own)
	return twice
}

// merged returns both in one tree, and the paths of the values that both set.
func (v ChartValues) merged(own any) (tree map[string]any, twice []string, err error) {
	text, err := json.Marshal(own)
	if err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, nil, err
	}
	given, err := v.Tree()
	if err != nil {
		return nil, nil, err
	}
	if tree == nil {
		tree = map[string]any{}
	}
	return tree, mergeInto(tree, given, ""), nil
}

// mergeInto adds values to a tree, and returns the paths of those that the tree has already. It does not change what the tree has.
func mergeInto(tree, given map[string]any, path string) []string {
	var twice []string
	for _, key := range slices.Sorted(maps.Keys(given)) {
		at := KeyPath(path, key)
		own, both := tree[key]
		below, isMap := own.(map[string]any)
		more, moreIsMap := given[key].(map[string]any)
		switch {
		case !both:
			tree[key] = given[key]
		case isMap && moreIsMap:
			twice = append(twice, mergeInto(below, more, at)...)
		default:
			twice = append(twice, at)
		}
	}
	return twice
}

// Needed is a value of a chart that the gate, Flux or the workloads rely on.
type Needed struct {
	Path string
	Want any    // the only value; 1 is a number of at least 1, or a list with an item; a pattern is that of a text, or of each in a list
	Why  string // what any other value does; it follows the value
}

// CheckNeeded adds a problem for each value that switches off what others rely on.
func CheckNeeded(path string, given map[string]any, needed []Needed, findings *Findings) {
	for _, one := range needed {
		value := ValueAt(given, one.Path)
		list, isList := value.([]any)
		if form, isForm := one.Want.(*regexp.Regexp); isForm {
			for _, item := range append(slices.Clone(list), value) {
				if text, _ := item.(string); text != "" && !isTemplate(text) && !form.MatchString(text) {
					findings.Found(KeyPath(path, one.Path), "remove it", "%s %s", syntax.ShownText(text), one.Why)
				}
			}
			continue
		}
		_, isMap := value.(map[string]any)
		number, isNumber := value.(float64)
		if text, isText := value.(string); isText && one.Want == 1 { // most charts take it, and the schemas of the others say so
			var err error
			number, err = strconv.ParseFloat(text, 64)
			isNumber = err == nil
		}
		switch {
		case isMap: // of another kind, which the check of the keys says
		case value == nil, value == one.Want, one.Want == 1 && isNumber && number >= 1, one.Want == 1 && isList && len(list) > 0:
		case isList:
			findings.Found(KeyPath(path, one.Path), "remove it", "an empty list %s", one.Why)
		default:
			findings.Found(KeyPath(path, one.Path), "remove it", "%s %s", syntax.ShownText(fmt.Sprint(value)), one.Why)
		}
	}
}

// elsewhere is what another namespace than that of the release does.
const elsewhere = "would move objects out of the namespace that Slipway makes, where the gate and Flux look for them"

// values checks the user's values of the services' charts: also if a service is off, they set nothing that Slipway sets. They have
// Kubernetes' form where charts pass them on, and switch off nothing that others rely on. Cilium's are checked where they are rendered.
func (c clusterCheck) values() {
	services := c.afterNetwork(c.allServices())
	slices.SortStableFunc(services, func(a, b Service) int { return strings.Compare(a.Key, b.Key) })
	for _, service := range services {
		path, chart := service.Key+".values", service.chartName()
		for _, key := range service.UserValues.Conflicts(service.Values) {
			c.Found(KeyPath(path, key), "remove it", OwnedValue)
		}
		if given, err := service.UserValues.Tree(); err == nil {
			before := c.Len()
			CheckChartKeys(path, chart, service.Version, given, c.Findings)
			if c.Len() == before { // the chart says more
				own, _ := ChartValues(nil).MergedInto(service.Values)
				CheckPodValues(path, chart, service.Version, own, given, c.Findings)
			}
			CheckNeeded(path, given, service.Needed, c.Findings)
		}
	}
}

// OwnedValue is what is wrong with a value that Slipway sets, too.
const OwnedValue = "is a value of the chart that Slipway sets"
