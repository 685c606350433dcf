package cluster

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// forms checks every key by itself, by its tags.
type forms struct{ *Findings }

func checkForms(c *Cluster, findings *Findings) {
	forms{findings}.section("", reflect.ValueOf(c).Elem())
}

func (f forms) section(path string, section reflect.Value) {
	for field := range Keys(section.Type()) {
		f.value(KeyPath(path, field.Tag.Get("json")), field.Tag, section.FieldByIndex(field.Index))
	}
}

// value checks a value by the tags of its key. A value with a wrong form becomes zero.
func (f forms) value(path string, tag reflect.StructTag, value reflect.Value) {
	if f.Unusable(path) {
		return
	}
	before := f.Len()
	switch at := value.Interface().(type) {
	case Secret:
		f.text(path, tag, at.Reveal())
	case Quantity:
		f.quantity(path, tag, at)
	case Duration:
		f.duration(path, tag, at)
	case netip.Addr:
		if at.IsValid() {
			f.text(path, tag, at.String())
		}
	case netip.Prefix:
		f.prefix(path, tag, at)
	case Patch, ChartValues, Text, MAC:
	default:
		f.kind(path, tag, value)
	}
	if f.Len() > before && holdsOneValue(value.Type()) && value.CanSet() {
		value.SetZero()
	}
}

// holdsOneValue reports whether a type has neither keys nor items. Keys and items are checked one by one.
func holdsOneValue(of reflect.Type) bool {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return !isSection(of) && of.Kind() != reflect.Slice && of.Kind() != reflect.Map
}

func (f forms) kind(path string, tag reflect.StructTag, value reflect.Value) {
	switch value.Kind() {
	case reflect.Struct:
		f.section(path, value)
	case reflect.Pointer:
		if !value.IsNil() {
			f.value(path, tag, value.Elem())
		}
	case reflect.String:
		f.text(path, tag, value.String())
	case reflect.Int:
		f.number(path, tag, int(value.Int()))
	case reflect.Slice:
		f.list(path, tag, value)
	case reflect.Map:
		f.mapping(path, tag, value)
	}
}

// ExampleOf returns a value of a key for a remedy: the tag example, of a list its first item; "" without example, or for a mapping.
func ExampleOf(tag reflect.StructTag) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(tag.Get("example"), "["), ",")
	if strings.HasPrefix(first, "{") {
		return ""
	}
	return strings.Trim(strings.TrimSuffix(first, "]"), `"`)
}

// text checks a text, unless it is empty: then its key is missing, or is reported already.
func (f forms) text(path string, tag reflect.StructTag, value string) {
	if value != "" {
		f.written(path, tag, value)
	}
}

// written checks a text that is in the file, even if it is empty. The form decides whether it may be.
func (f forms) written(path string, tag reflect.StructTag, value string) {
	form := tag.Get("form")
	if form == "" {
		return
	}
	known, ok := syntax.Lookup(form)
	if !ok {
		panic(fmt.Sprintf("cluster: %s has the form %q, which package syntax does not know", path, form))
	}
	known.Example = cmp.Or(ExampleOf(tag), known.Example)
	switch fault := known.Check(value); {
	case fault == nil:
	case value == "":
		f.Unreadable(path, fault.Remedy, "%s", fault.Problem)
	default:
		f.Unreadable(path, fault.Remedy, "%s %s", syntax.Shown(known, value), fault.Problem)
	}
}

// wellFormed checks a text by a form. Its error is a problem and a remedy, separated by a semicolon.
func wellFormed(form string, text []byte) error {
	known, _ := syntax.Lookup(form)
	if fault := known.Check(string(text)); fault != nil {
		return fmt.Errorf("%s; %s", fault.Problem, fault.Remedy)
	}
	return nil
}

// limits returns the two ends of a range as written in the tag; "" means no limit.
func limits(tag reflect.StructTag, name string) (least, most string) {
	least, most, _ = strings.Cut(tag.Get(name), "-")
	return least, most
}

// number checks an integer. Zero is checked like any other number, unless the key has a default that is set later: the decoder refuses a
// zero that was written.
func (f forms) number(path string, tag reflect.StructTag, value int) {
	least, most := limits(tag, "range")
	if least == "" || value == 0 && tag.Get("follows") != "" {
		return
	}
	low, _ := strconv.Atoi(least)
	high, _ := strconv.Atoi(most)
	if value < low || value > high {
		f.Unreadable(path, fmt.Sprintf("write a number from %d to %d", low, high), "%d is out of range", value)
	}
}

// quantity checks the smallest size, from the range. The form checks the largest size.
func (f forms) quantity(path string, tag reflect.StructTag, value Quantity) {
	if value == 0 {
		return // missing, which is reported already
	}
	before := f.Len()
	f.text(path, tag, value.String())
	var low Quantity
	least, _ := limits(tag, "range")
	if err := low.UnmarshalText([]byte(least)); err != nil {
		panic(fmt.Sprintf("cluster: the range of %s does not begin with a size: %v", path, err))
	}
	if f.Len() == before && value < low {
		f.Unreadable(path, "write at least "+low.String(), "%s is too little", value)
	}
}

// duration checks the shortest duration, from the range. The form checks the longest duration, when the text is read.
func (f forms) duration(path string, tag reflect.StructTag, value Duration) {
	least, _ := limits(tag, "range")
	low, err := time.ParseDuration(least)
	if err != nil {
		panic(fmt.Sprintf("cluster: the range of %s does not begin with a duration: %v", path, err))
	}
	if value.Duration < low {
		f.Unreadable(path, "write at least "+least, "%s is too short", value)
	}
}

func (f forms) prefix(path string, tag reflect.StructTag, network netip.Prefix) {
	if !network.IsValid() {
		return
	}
	before := f.Len()
	f.text(path, tag, network.String())
	least, most := limits(tag, "bits")
	low, _ := strconv.Atoi(least)
	high, _ := strconv.Atoi(most)
	if bits := network.Bits(); f.Len() == before && (bits < low || bits > high) {
		f.Unreadable(path, fmt.Sprintf("write a length from /%d to /%d", low, high), "%s has a size that cannot be used", network)
	}
}

func (f forms) list(path string, tag reflect.StructTag, list reflect.Value) {
	least, most := limits(tag, "items")
	if low, _ := strconv.Atoi(least); low > 0 && list.Len() == 0 && !list.IsNil() { // what a shorter list lacks, its own check says
		remedy := "declare one, or remove the key"
		if tag.Get("config") == "required" {
			remedy = "declare one"
		}
		f.Unreadable(path, remedy, "is empty")
		return
	}
	if high, err := strconv.Atoi(most); err == nil && list.Len() > high {
		f.Found(path, fmt.Sprintf("declare at most %d", high), "has %d items, which are too many", list.Len())
	}
	first := map[any]int{}
	for i := range list.Len() {
		item, at := list.Index(i), ItemPath(path, i)
		f.value(at, tag, item)
		if !item.Comparable() || item.Kind() == reflect.Struct && isSection(item.Type()) || item.IsZero() {
			continue
		}
		key := item.Interface()
		if item.Kind() == reflect.String {
			key = lowered(item.String())
		}
		switch other, twice := first[key]; {
		case !twice:
			first[key] = i
		case item.Interface() == list.Index(other).Interface():
			f.Found(at, "remove one", "%v is the same as %s[%d]", item.Interface(), path, other)
		default:
			f.Found(at, "keep one", "differs from %s[%d] in case only", path, other)
		}
	}
}

// lowered returns a text in lower case, except the path of a URL: to hosts and DNS case makes no difference.
func lowered(text string) string {
	scheme, rest, isURL := strings.Cut(text, "://")
	if !isURL {
		return strings.ToLower(text)
	}
	host, _, _ := strings.Cut(rest, "/")
	return strings.ToLower(scheme+"://"+host) + rest[len(host):]
}

func (f forms) mapping(path string, tag reflect.StructTag, mapping reflect.Value) {
	values := map[string]reflect.Value{}
	for key, value := range mapping.Seq2() {
		values[key.String()] = value
	}
	for _, key := range sorted(values) {
		at := EntryPath(path, key)
		if known, ok := syntax.Lookup(tag.Get("keys")); ok {
			if fault := known.Check(key); fault != nil {
				f.Unreadable(at, fault.Remedy, "%s", fault.Problem)
				mapping.SetMapIndex(reflect.ValueOf(key), reflect.Value{})
				continue
			}
		}
		if values[key].Kind() == reflect.Slice {
			f.list(at, tag, values[key])
			continue
		}
		f.written(at, tag, values[key].String())
		if f.Unusable(at) {
			mapping.SetMapIndex(reflect.ValueOf(key), reflect.Value{})
		}
	}
}
