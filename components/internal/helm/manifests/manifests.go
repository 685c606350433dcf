// Package manifests compares what two owners of a Helm release would install. It imports no Pulumi.
package manifests

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Masked is the beginning of what stands for a secret value; the rest tells different secrets from each other.
const Masked = "slipway:secret:"

// Chart is a chart with its values, in which secrets are masked.
type Chart struct {
	Chart, Version string
	Repository     string // "" with an oci:// chart
	Values         map[string]any
}

// longest is the longest value that is shown.
const longest = 80

// DifferentValues returns a line for each difference of chart, version, repository and values: path, old value, new value.
func DifferentValues(before, after Chart) []string {
	var lines []string
	for _, one := range []struct{ name, was, is string }{
		{"chart", before.Chart, after.Chart}, {"version", before.Version, after.Version}, {"repository", before.Repository, after.Repository},
	} {
		if strings.TrimSuffix(one.was, "/") != strings.TrimSuffix(one.is, "/") {
			lines = append(lines, fmt.Sprintf("%s: %s → %s", one.name, shown(one.was), shown(one.is)))
		}
	}
	return append(lines, differences("values", before.Values, after.Values)...)
}

// DifferentObjects returns a line for each object that only one side has, and for each difference of the others.
func DifferentObjects(before, after []map[string]any) []string {
	was, is := byName(before), byName(after)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, both := is[name]; !both {
			lines = append(lines, name+": is not there any more")
			continue
		}
		lines = append(lines, differences(name, was[name], is[name])...)
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, both := was[name]; !both {
			lines = append(lines, name+": is new")
		}
	}
	return lines
}

func byName(objects []map[string]any) map[string]map[string]any {
	named := map[string]map[string]any{}
	for _, object := range objects {
		metadata, _ := object["metadata"].(map[string]any)
		namespace, _ := metadata["namespace"].(string)
		named[fmt.Sprintf("%v %s/%v", object["kind"], namespace, metadata["name"])] = object
	}
	return named
}

// differences returns the leaves that differ. A list is one value.
func differences(path string, was, is any) []string {
	before, isMap := was.(map[string]any)
	after, both := is.(map[string]any)
	if isMap && both || isMap && is == nil || both && was == nil {
		var lines []string
		for _, key := range slices.Sorted(maps.Keys(merged(before, after))) {
			lines = append(lines, differences(path+"."+key, before[key], after[key])...)
		}
		return lines
	}
	if same(was, is) {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s → %s", path, shown(was), shown(is))}
}

func merged(one, other map[string]any) map[string]any {
	all := maps.Clone(one)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, other)
	return all
}

// same reports whether two values are the same in JSON.
func same(one, other any) bool {
	if reflect.DeepEqual(one, other) {
		return true
	}
	first, err := json.Marshal(one)
	second, errSecond := json.Marshal(other)
	return err == nil && errSecond == nil && string(first) == string(second)
}

// shown returns a value for a message, and nothing of a secret.
func shown(value any) string {
	if value == nil || value == "" {
		return "nothing"
	}
	text := fmt.Sprint(value)
	var encoded strings.Builder
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false) // values have < and > in them
	if encoder.Encode(value) == nil {
		text = strings.TrimSpace(encoded.String())
	}
	if strings.Contains(text, Masked) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(Masked))[:16]) {
		return "(secret)"
	}
	if chars := []rune(text); len(chars) > longest {
		return string(chars[:longest]) + "…"
	}
	return text
}
