package machineconfig

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/slipway-platform/slipway/cluster"
)

// comparison compares a node's configuration after all patches with the one without the user's patches.
type comparison struct {
	cluster  model
	node     cluster.Machine
	rendered map[string]any // what Slipway renders itself
	base     map[string]any // the configuration without the user's patches
	after    map[string]any // the configuration after all patches
	found    []fault
}

// differences returns what the patches did and may not.
func (c *comparison) differences() []fault {
	c.walk(nil, false, c.rendered, c.base, c.after)
	c.checkAdditions()
	c.checkForms()
	return c.found
}

// walk compares one part. It compares mappings key by key, so that each difference is reported at its own path. whole tells that the part
// belongs to Slipway, additions included.
func (c *comparison) walk(path []string, whole bool, rendered, base, after any) {
	if same(base, after) {
		return
	}
	whole = whole || isOwned(path) || len(path) == 1 && rendered != nil && isRenderedWhole(path[0])
	_, isMapping := after.(map[string]any)
	_, wasMapping := base.(map[string]any)
	switch {
	case isMapping && (wasMapping || !whole):
		c.walkKeys(path, whole, rendered, base, after)
	case wasMapping && same(after, nil) && !whole:
		c.walkRemoved(path, rendered, base)
	case whole, rendered != nil && !keeps(base, after):
		c.refuse(path, rendered, base, after)
	}
}

func (c *comparison) walkKeys(path []string, whole bool, rendered, base, after any) {
	keys := map[string]bool{}
	for _, tree := range []any{base, after} {
		mapping, _ := tree.(map[string]any)
		for key := range mapping {
			keys[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		c.walk(append(slices.Clone(path), key), whole, at(rendered, key), at(base, key), at(after, key))
	}
}

// walkRemoved reports a removed mapping once, instead of each of its values.
func (c *comparison) walkRemoved(path []string, rendered, base any) {
	earlier := len(c.found)
	c.walkKeys(path, false, rendered, base, nil)
	if len(c.found) > earlier+1 {
		c.found = c.found[:earlier]
		c.refuse(path, rendered, base, nil)
	}
}

// refuse reports a part that belongs to Slipway, with its value without patches, if Slipway sets it.
func (c *comparison) refuse(path []string, rendered, base, after any) {
	verb := "is changed"
	switch {
	case same(after, nil):
		verb = "is removed"
	case same(base, nil):
		verb = "is added"
	}
	remedy := remedyFor(path)
	reason := "Slipway relies on it as Talos generates it"
	switch {
	case rendered != nil, remedy != removeIt:
		reason = "Slipway sets it" + toValue(path, base)
	case same(base, nil):
		reason = "Slipway relies on a configuration without it"
	}
	c.add(path, verb+", but "+reason, remedy)
}

// toValue says which value a part has, if it is short and no secret.
func toValue(path []string, value any) string {
	const longest = 60
	values, isList := value.([]any)
	if !isList {
		values = []any{value}
	}
	var texts []string
	for _, value := range values {
		switch shown := hidden("/"+strings.Join(path, "/"), alone(value), false).(type) {
		case nil, Secret, map[string]any, []any:
			return ""
		default:
			texts = append(texts, fmt.Sprint(shown))
		}
	}
	text := strings.Join(texts, ", ")
	if len(text) > longest || strings.Contains(text, "\n") {
		return ""
	}
	return " to " + text
}

// isRenderedWhole tells whether a document belongs to Slipway as a whole if Slipway renders it. Of Talos's own volumes, patches may set
// the sizes.
func isRenderedWhole(document string) bool {
	return isDocument(document) && !strings.HasPrefix(document, "VolumeConfig ")
}

// isDocument tells whether a key at the top is a document. The parts of the oldest document begin in lower case.
func isDocument(key string) bool { return unicode.IsUpper(rune(key[0])) }

// keeps tells whether a list has all items of another one, in their order. Other values must be the same.
func keeps(base, after any) bool {
	rest, wasList := base.([]any)
	if !wasList {
		return same(base, after)
	}
	_, complete := further(rest, after)
	return complete
}

// further returns the items of a list that are not in base. complete tells whether all items of base are in the list, in their order.
func further(base []any, list any) (items []any, complete bool) {
	all, _ := list.([]any)
	for _, item := range all {
		if len(base) > 0 && same(base[0], item) {
			base = base[1:]
			continue
		}
		items = append(items, item)
	}
	return items, len(base) == 0
}

// same compares two values. Null, an empty mapping and an empty list are all the same as nothing.
func same(a, b any) bool { return reflect.DeepEqual(substance(a), substance(b)) }

// substance removes nulls, empty mappings and empty lists from a value.
func substance(value any) any {
	switch value := value.(type) {
	case map[string]any:
		tree := map[string]any{}
		for key, child := range value {
			if child = substance(child); child != nil {
				tree[key] = child
			}
		}
		if len(tree) == 0 {
			return nil
		}
		return tree
	case []any:
		if len(value) == 0 {
			return nil
		}
		list := make([]any, len(value))
		for i, child := range value {
			list[i] = substance(child)
		}
		return list
	}
	return value
}

// normalised returns a tree of documents in the form in which it is compared. Kernel parameters get the names with dots: the kernel
// takes net/core/somaxconn for net.core.somaxconn. Each document has a value, because one with nothing but a name counts, too.
func normalised(tree map[string]any) map[string]any {
	for key, doc := range tree {
		if doc, ok := doc.(map[string]any); ok && isDocument(key) {
			doc["(document)"] = true
		}
	}
	sysctls, _ := at(tree["machine"], "sysctls").(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(sysctls)) {
		name := strings.ReplaceAll(key, "/", ".")
		if name == key {
			continue
		}
		if other, twice := sysctls[name]; twice {
			sysctls[name] = []any{other, sysctls[key]} // no longer what it was alone
		} else {
			sysctls[name] = sysctls[key]
		}
		delete(sysctls, key)
	}
	return tree
}
