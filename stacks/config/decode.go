package config

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math/big"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/secrecy"
	"github.com/slipway-platform/slipway/cluster/syntax"
)

// decoder fills the model from trees. It is strict: names must match exactly, nothing is converted, and a key that is missing, unknown or
// of the wrong kind is a problem. It continues after a problem, to find all of them.
type decoder struct {
	cluster.Findings

	example string          // of the key whose value is decoded
	given   map[string]bool // paths of the keys that were decoded
}

var (
	digits = regexp.MustCompile(`^[+-]?[0-9]+$`)

	textType   = reflect.TypeFor[encoding.TextUnmarshaler]()
	patchType  = reflect.TypeFor[cluster.Patch]()
	valuesType = reflect.TypeFor[cluster.ChartValues]()
	addrType   = reflect.TypeFor[netip.Addr]()
	prefixType = reflect.TypeFor[netip.Prefix]()
	linesType  = reflect.TypeFor[cluster.Text]()
	choiceType = reflect.TypeFor[cluster.Choice]()
)

func (d *decoder) decode(path string, tree any, into reflect.Value) {
	if into.Type() == prefixType || into.Type().Implements(choiceType) { // so that no check reads the default if the value has a problem
		into.SetZero()
	}
	switch {
	case tree == nil:
		d.Unreadable(path, "give it a value, or remove the key", "has no value")
	case into.Type() == patchType:
		d.decodePatch(path, tree, into)
	case into.Type() == valuesType:
		d.decodeValues(path, tree, into)
	case into.Type() == linesType:
		d.decodeLines(path, tree, into)
	case into.Type().Implements(choiceType):
		d.decodeChoice(path, tree, into)
	case into.Kind() == reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		withDefaults(into.Elem())
		d.decode(path, tree, into.Elem())
	case reflect.PointerTo(into.Type()).Implements(textType):
		d.decodeText(path, tree, into)
	default:
		d.decodeKind(path, tree, into)
	}
}

func (d *decoder) decodeKind(path string, tree any, into reflect.Value) {
	switch into.Kind() {
	case reflect.Struct, reflect.Map:
		o, ok := tree.(*object)
		switch {
		case !ok:
			d.wrongKind(path, tree, "a mapping", "indent its keys below it")
		case into.Kind() == reflect.Struct:
			d.decodeStruct(path, o, into)
		default:
			d.decodeMap(path, o, into)
		}
	case reflect.Slice:
		if list, ok := tree.([]item); ok {
			d.decodeSlice(path, list, into)
			return
		}
		d.wrongKind(path, tree, "a list", "write each item on its own line after a dash")
	case reflect.String:
		if text, ok := d.text(path, tree); ok {
			into.SetString(text)
		}
	case reflect.Int:
		d.decodeInt(path, tree, into)
	case reflect.Bool:
		if given, ok := tree.(bool); ok {
			into.SetBool(given)
			return
		}
		d.wrongKind(path, tree, "true or false", "write one of the two, without quotes")
	default:
		panic(fmt.Sprintf("config: the model has a %s at %s, which nothing decodes", into.Type(), path))
	}
}

// give notes that the file has a key.
func (d *decoder) give(path string) {
	if d.given == nil {
		d.given = map[string]bool{}
	}
	d.given[path] = true
}

// refuseZero reports a 0 that may not be written, of a key with a default: the model reads 0 as not given.
func (d *decoder) refuseZero(path string, tag reflect.StructTag, value reflect.Value) {
	value = reflect.Indirect(value)
	least, most, _ := strings.Cut(tag.Get("range"), "-")
	low, err := strconv.Atoi(least)
	byDefault := tag.Get("follows") != "" || tag.Get("default") != ""
	if byDefault && err == nil && low > 0 && value.Kind() == reflect.Int && value.IsZero() && !d.Unusable(path) {
		d.Unreadable(path, fmt.Sprintf("write a number from %s to %s", least, most), "0 is out of range")
	}
}

// withDefaults sets the defaults of a new section.
func withDefaults(section reflect.Value) {
	if section.Kind() == reflect.Struct && !reflect.PointerTo(section.Type()).Implements(textType) {
		cluster.SetDefaults(section.Addr().Interface())
	}
}

func (d *decoder) decodeStruct(path string, o *object, into reflect.Value) {
	meant := d.unknownKeys(path, o.keys, keysOf(into.Type()))
	for field := range cluster.Keys(into.Type()) {
		at := cluster.KeyPath(path, keyOf(field))
		if given, is := o.values[keyOf(field)]; is {
			d.give(at)
			d.example = cluster.ExampleOf(field.Tag)
			d.decode(at, given.value, into.FieldByIndex(field.Index))
			d.refuseZero(at, field.Tag, into.FieldByIndex(field.Index))
		} else if isRequired(field) {
			d.missing(at, field.Tag.Get("example"), meant[keyOf(field)])
		} else if meant[keyOf(field)] {
			d.Discard(at) // its default is not what was meant
		}
	}
}

// secretKeys are the keys of the secrets.
var secretKeys = keysOf(reflect.TypeFor[cluster.Secrets]())

// unknownKeys reports keys that the model does not have. It returns the known names that were probably meant.
func (d *decoder) unknownKeys(path string, keys, names []string) map[string]bool {
	meant := map[string]bool{}
	for _, key := range slices.Sorted(slices.Values(keys)) {
		if !slices.Contains(names, key) {
			remedy, near := cluster.OneOf(key, names), cluster.Suggest(key, names)
			switch {
			case slices.Contains(keys, near):
				remedy = "remove it, or move its value to " + near
			case belongsTo(path, key) != "" && syntax.Nearest(key, names, 1) == "":
				remedy = "write it as " + belongsTo(path, key)
			case secrecy.Mentioned(key) && near == "":
				last := len(secretKeys) - 1
				remedy = "revoke what it holds and remove it: the secrets are " + strings.Join(secretKeys[:last], ", ") + " and " +
					secretKeys[last] + ", see docs/configuration.md"
			}
			meant[near] = true
			d.Add(cluster.KeyPath(path, key), remedy, "is not a key")
		}
	}
	return meant
}

func (d *decoder) decodeMap(path string, o *object, into reflect.Value) {
	into.Set(reflect.MakeMapWithSize(into.Type(), len(o.keys)))
	folded := map[string]string{}
	for _, key := range o.keys {
		at := cluster.EntryPath(path, key)
		if other, taken := folded[strings.ToLower(key)]; taken {
			d.Unreadable(at, "keep one", "differs from %q in case only", syntax.ShownPath(other))
			continue
		}
		folded[strings.ToLower(key)] = key
		value := reflect.New(into.Type().Elem()).Elem()
		// The value of a label or of a kernel parameter may be empty, so only its kind is checked.
		if text, ok := o.values[key].value.(string); ok && value.Kind() == reflect.String {
			value.SetString(text)
		} else {
			d.decode(at, o.values[key].value, value)
		}
		into.SetMapIndex(reflect.ValueOf(key), value)
	}
}

func (d *decoder) decodeSlice(path string, list []item, into reflect.Value) {
	into.Set(reflect.MakeSlice(into.Type(), len(list), len(list)))
	for i, item := range list {
		withDefaults(into.Index(i))
		d.decode(cluster.ItemPath(path, i), item.value, into.Index(i))
	}
}

// decodeInt decodes a whole number. It accepts 1e+06 for 1000000: in JSON they are the same number, and the engine may pass either.
func (d *decoder) decodeInt(path string, tree any, into reflect.Value) {
	given, ok := tree.(json.Number)
	if !ok {
		remedy := "write one"
		if text, _ := tree.(string); digits.MatchString(text) {
			remedy = "write it without quotes"
		}
		d.wrongKind(path, tree, "a whole number", remedy)
		return
	}
	exact, ok := new(big.Rat).SetString(given.String())
	if !ok || !exact.IsInt() || !exact.Num().IsInt64() || into.OverflowInt(exact.Num().Int64()) {
		d.Unreadable(path, "write one", "%s is not a whole number", given)
		return
	}
	into.SetInt(exact.Num().Int64())
}

func (d *decoder) decodeText(path string, tree any, into reflect.Value) {
	if number, ok := tree.(json.Number); ok {
		tree = number.String() // the problem with the form is more useful than "must be text"
	}
	text, ok := d.text(path, tree)
	if !ok {
		return
	}
	err := into.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	switch {
	case err == nil:
	case into.Type() == addrType:
		d.Unreadable(path, "write one, such as "+d.example, "%s is not an IP address", shown(text))
	case into.Type() == prefixType:
		d.Unreadable(path, "write address and length, such as "+d.example, "%s is not a network", shown(text))
	default:
		problem, remedy, _ := strings.Cut(err.Error(), "; ")
		d.Unreadable(path, remedy, "%s %s", shown(text), problem)
	}
}

func (d *decoder) decodeChoice(path string, tree any, into reflect.Value) {
	switch tree.(type) {
	case bool, json.Number:
		tree = fmt.Sprint(tree) // the list of allowed values is more useful than "must be text"
	}
	text, ok := d.text(path, tree)
	if !ok {
		return
	}
	allowed := into.Interface().(cluster.Choice).Choices()
	if !slices.Contains(allowed, text) {
		d.Unreadable(path, cluster.MeantOr("write "+oneOf(allowed), text, allowed), "%s is not known", shown(text))
		return
	}
	into.SetString(text)
}

func (d *decoder) decodePatch(path string, tree any, into reflect.Value) {
	if list, ok := tree.([]item); ok && len(list) > 0 && holdsOperation(list[0].value) {
		d.Unreadable(path, "write the part of the machine configuration that the patch sets, as a strategic merge patch does",
			"is a JSON patch (RFC 6902), which Talos applies to no configuration of several documents")
		return
	}
	compact, ok := d.freeMapping(path, tree, "dash", "write the part of the machine configuration that the patch sets")
	if ok {
		into.SetBytes(compact)
	}
}

// decodeValues decodes values of a chart. It refuses values that look like secrets, which would be readable in the file and in the cluster.
func (d *decoder) decodeValues(path string, tree any, into reflect.Value) {
	compact, ok := d.freeMapping(path, tree, "key", "write the values under the chart's own keys")
	secrets := secrecy.InJSON(compact)
	for _, key := range secrets {
		d.Unreadable(cluster.KeyPath(path, key), "name a Secret in the cluster instead, with the chart's key for it", "looks like a secret")
	}
	switch {
	case len(secrets) > 0:
		d.Discard(path)
	case ok:
		into.SetBytes(compact)
	}
}

// freeMapping returns a mapping that no model describes, as JSON, or false if the mapping has a problem. above is what stands above the
// mapping: a key, or the dash of a list.
func (d *decoder) freeMapping(path string, tree any, above, remedy string) (compact []byte, ok bool) {
	if _, isText := tree.(string); isText { // of which any part may be a secret
		d.Unreadable(path, "write it as YAML below the "+above+", without | and quotes", "is text and must be a mapping with at least one key")
		return nil, false
	}
	o, is := tree.(*object)
	if is && len(o.keys) == 0 {
		d.Unreadable(path, "give it a key, or remove it", "is an empty mapping")
		return nil, false
	}
	if !is {
		d.wrongKind(path, tree, "a mapping with at least one key", remedy)
		return nil, false
	}
	compact, err := json.Marshal(tree)
	if err != nil {
		d.Unreadable(path, "write YAML that JSON can express", "cannot be passed on: %v", err)
	}
	return compact, err == nil
}

// decodeLines decodes text unchanged, with the line break at its end.
func (d *decoder) decodeLines(path string, tree any, into reflect.Value) {
	text, ok := tree.(string)
	switch {
	case !ok:
		d.wrongKind(path, tree, "text", "write it as a block, after a |")
	case strings.TrimSpace(text) == "":
		d.Unreadable(path, "give it a value, or remove the key", "is empty")
	default:
		into.SetString(text)
	}
}

// holdsOperation reports whether a tree is an operation of a JSON patch.
func holdsOperation(tree any) bool {
	o, ok := tree.(*object)
	return ok && o.get("op") != nil && o.get("path") != nil
}

// text returns the value if it is text and not empty. An empty value is always a problem.
func (d *decoder) text(path string, tree any) (string, bool) {
	text, ok := tree.(string)
	switch {
	case !ok:
		remedy := "put it in quotes"
		if _, isSwitch := tree.(bool); isSwitch && d.example != "" { // of a key that switches nothing
			remedy = "write a text, such as " + d.example
		}
		d.wrongKind(path, tree, "text", remedy)
	case strings.TrimSpace(text) == "":
		d.Unreadable(path, "give it a value, or remove the key", "is empty")
	case strings.TrimSpace(text) != text:
		d.Unreadable(path, "remove it", "%s has white space around it", shown(text))
	default:
		return text, true
	}
	return "", false
}

func (d *decoder) wrongKind(path string, tree any, want, remedy string) {
	switch tree.(type) {
	case *object, []item:
		d.Unreadable(path, "see docs/configuration.md for its form", "is %s and must be %s", kind(tree), want)
	default:
		d.Unreadable(path, remedy, "%s is %s and must be %s", shown(tree), kind(tree), want)
	}
}

// shown returns a scalar as a message may show it. The value may be a secret, whatever its key is for.
func shown(scalar any) string {
	text, ok := scalar.(string)
	switch {
	case !ok:
		text = fmt.Sprint(scalar)
	case strings.Contains(strings.TrimSpace(text), "\n"):
		return hidden // may be a whole section
	}
	return syntax.ShownText(text)
}

// hidden stands for a value of which nothing may be shown.
const hidden = "the value"

// shownAt returns a scalar at a path of the file as a message may show it. It shows nothing of a value whose key is a secret, or is
// named like one.
func shownAt(path, scalar string) string {
	if isSecret(path) || secrecy.Mentioned(path) {
		return hidden
	}
	return shown(scalar)
}

// shownTag returns the tag of a value, or of a key below it, for a message: to YAML, a password that begins with ! is a tag.
func shownTag(path, tag string) string {
	if shownAt(path, tag) == hidden {
		return "!…"
	}
	return tag
}

// isSecret reports whether a path of the file is that of a secret key, or is below it.
func isSecret(path string) bool {
	steps := steps(underConfig(path))
	return len(steps) > 0 && slices.Contains(secretKeys, steps[0])
}

// missing reports a missing required key, unless a misspelling of it is reported. A section has no example.
func (d *decoder) missing(path, example string, misspelt bool) {
	if misspelt {
		d.Discard(path)
		return
	}
	remedy := "add it, see docs/configuration.md for its form"
	if example != "" {
		remedy = "add it, such as " + example
	}
	d.Unreadable(path, remedy, "is missing")
}

// keysOf returns the names of a section's keys in the file.
func keysOf(section reflect.Type) (keys []string) {
	for field := range cluster.Keys(section) {
		keys = append(keys, keyOf(field))
	}
	return keys
}

// keyOf returns the name of a field in the file.
func keyOf(field reflect.StructField) string { return field.Tag.Get("json") }

// isRequired reports whether a field must be in the file.
func isRequired(field reflect.StructField) bool { return field.Tag.Get("config") == "required" }

// oneOf lists words of which one is meant: a, b or c.
func oneOf(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
