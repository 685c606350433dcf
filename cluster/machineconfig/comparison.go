package machineconfig

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/slipway-platform/slipway/cluster"
)

// difference is one part that a patch set although it may not.
type difference struct {
	part string
	refusal
}

// comparison compares a configuration after a patch with the one before all patches.
type comparison struct {
	cluster  model
	node     cluster.Machine
	rendered map[string]any // what Slipway renders itself, as documents does
	base     map[string]any // the whole configuration without the user's patches
	found    []difference
}

// compare returns what a patch changed and may not. before and after are the configuration before and after the patch. A part that
// is as in base is no difference: only the patch that changed it is to blame.
func (c *comparison) compare(before, after map[string]any) []difference {
	c.found = nil
	c.walk(nil, c.base, before, after)
	return c.found
}

func (c *comparison) walk(path []string, base, before, after any) {
	if same(base, after) || same(before, after) {
		return
	}
	if same(after, nil) {
		after = nil
	}
	allowed, covered := allowanceFor(path)
	if covered && allowed.wholeDocument() && c.renders(path[:1]) {
		covered = false // a document that Slipway makes is Slipway's, unless an allowance names a part of it
	}
	if _, mapping := after.(map[string]any); mapping && c.descends(path, allowed, covered, base) {
		c.walkMapping(path, base, before, after)
		return
	}
	if after == nil && !same(base, nil) {
		c.walkRemoved(path, base, before)
		return
	}
	if !covered || allowed.defaults && c.renders(path) {
		c.refuse(path, verb(base, after))
		return
	}
	switch {
	case same(base, nil):
		c.added(path, allowed, before, after)
	case allowed.defaults:
	default:
		c.grown(path, allowed, base, before, after)
	}
}

// descends tells whether the keys of a mapping are compared one by one. A mapping as a whole is judged where a check wants to see
// the whole, and where nothing below can be allowed.
func (c *comparison) descends(path []string, allowed allowance, covered bool, base any) bool {
	switch {
	case len(path) == 0:
		return true
	case covered && allowed.check != nil && same(base, nil):
		return false
	case covered:
		return true
	}
	return !same(base, nil) || mayHoldAllowed(path)
}

func (c *comparison) walkMapping(path []string, base, before, after any) {
	keys := map[string]bool{}
	for _, tree := range []any{base, after} {
		if tree, ok := tree.(map[string]any); ok {
			for key := range tree {
				keys[key] = true
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if len(path) == 1 && key == present {
			continue
		}
		c.walk(append(slices.Clone(path), key), at(base, key), at(before, key), at(after, key))
	}
}

// walkRemoved reports a removed part once, instead of each of its values.
func (c *comparison) walkRemoved(path []string, base, before any) {
	tree, mapping := base.(map[string]any)
	if !mapping {
		if allowed, covered := allowanceFor(path); !covered || !allowed.defaults || c.renders(path) {
			c.refuse(path, "is removed")
		}
		return
	}
	found := c.found
	c.found = nil
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		c.walk(append(slices.Clone(path), key), tree[key], at(before, key), nil)
	}
	removed := c.found
	c.found = found
	switch len(removed) {
	case 0:
	case 1:
		c.found = append(c.found, removed...)
	default:
		c.refuse(path, "is removed")
	}
}

// added checks a value where there was none. The items of a list are checked one by one. What was refused before the patch already
// is not refused again.
func (c *comparison) added(path []string, allowed allowance, before, value any) {
	if allowed.check == nil {
		return
	}
	earlier, _ := before.([]any)
	items, list := value.([]any)
	if !list {
		items, earlier = []any{value}, []any{before}
	}
	known := map[refusal]bool{}
	for _, item := range earlier {
		if item != nil {
			known[allowed.check(c, path, item)] = true
		}
	}
	for _, item := range items {
		if refused := allowed.check(c, path, item); refused.problem != "" && !known[refused] {
			c.refuseWith(path, refused)
			known[refused] = true
		}
	}
}

// grown accepts a list that has further items, and nothing else.
func (c *comparison) grown(path []string, allowed allowance, base, before, after any) {
	earlier, complete := further(base, before)
	items, stillComplete := further(base, after)
	if !stillComplete {
		if complete {
			c.refuse(path, "is changed")
		}
		return
	}
	c.added(path, allowed, earlier, items)
}

// further returns the items of a list that are not in base. complete tells whether all items of base are in the list, in their order.
func further(base, list any) (items []any, complete bool) {
	rest, ok := base.([]any)
	if !ok {
		return nil, same(base, list)
	}
	all, ok := list.([]any)
	if !ok {
		return nil, false
	}
	for _, item := range all {
		if len(rest) > 0 && same(rest[0], item) {
			rest = rest[1:]
			continue
		}
		items = append(items, item)
	}
	return items, len(rest) == 0
}

// verb says what became of a part.
func verb(base, after any) string {
	switch {
	case same(after, nil):
		return "is removed"
	case same(base, nil):
		return "is added"
	}
	return "is changed"
}

// refuse reports a part with the usual reason and remedy.
func (c *comparison) refuse(path []string, verb string) {
	reason := ", but Slipway relies on it as Talos generates it"
	switch {
	case c.renders(path), remedyFor(path) != removeIt:
		reason = ", but Slipway sets it"
	case verb == "is added":
		reason = ", but Slipway relies on a configuration without it"
	}
	c.refuseWith(path, refusal{problem: verb + reason, remedy: remedyFor(path)})
}

func (c *comparison) refuseWith(path []string, refused refusal) {
	if refused.remedy == "" {
		refused.remedy = remedyFor(path)
	}
	c.found = append(c.found, difference{part: strings.Join(path, "."), refusal: refused})
}

// renders tells whether Slipway itself renders the part, or something in it.
func (c *comparison) renders(path []string) bool {
	var tree any = c.rendered
	for _, key := range path {
		if tree = at(tree, key); tree == nil {
			return false
		}
	}
	return true
}

// same compares two values. Null, an empty mapping and an empty list are all the same as nothing.
func same(a, b any) bool {
	return reflect.DeepEqual(substance(a), substance(b))
}

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

// present is the key of a value that normalised adds to each document: one that has nothing but a name counts, too.
const present = "(document)"

// normalised returns a tree of documents in the form in which it is compared. Kernel parameters get the names with dots: the kernel
// takes net/core/somaxconn for net.core.somaxconn.
func normalised(tree map[string]any) map[string]any {
	for key, doc := range tree {
		if doc, ok := doc.(map[string]any); ok && unicode.IsUpper(rune(key[0])) {
			doc[present] = true
		}
	}
	machine, _ := tree["machine"].(map[string]any)
	sysctls, _ := machine["sysctls"].(map[string]any)
	if len(sysctls) == 0 {
		return tree
	}
	parameters := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(sysctls)) {
		name := strings.ReplaceAll(key, "/", ".")
		if other, twice := parameters[name]; twice {
			parameters[name] = []any{other, sysctls[key]} // no longer what it was alone
		} else {
			parameters[name] = sysctls[key]
		}
	}
	machine["sysctls"] = parameters
	return tree
}
