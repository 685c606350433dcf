package machineconfig

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// valueType is a type of a flag, or of a field of KubeletConfiguration.
type valueType struct {
	form   string                  // what to write
	parses func(value string) bool // nil: any text
}

// valueTypes are the known types: the names are those of pflag and of Kubernetes' own flags; list and map are those of fields. Of another
// type, only the component knows the form.
var valueTypes = map[string]valueType{
	"bool":     {"true or false", parsed(func(f *pflag.FlagSet) { f.Bool(anyFlag, false, "") })},
	"duration": {"a duration with its unit, such as 5m", parsed(func(f *pflag.FlagSet) { f.Duration(anyFlag, 0, "") })},
	"float32":  {"a number, such as 0.5", parsed(func(f *pflag.FlagSet) { f.Float32(anyFlag, 0, "") })},
	"float64":  {"a number, such as 0.5", parsed(func(f *pflag.FlagSet) { f.Float64(anyFlag, 0, "") })},
	"int":      {"a whole number", parsed(func(f *pflag.FlagSet) { f.Int(anyFlag, 0, "") })},
	"int32":    {"a whole number", parsed(func(f *pflag.FlagSet) { f.Int32(anyFlag, 0, "") })},
	"int64":    {"a whole number", parsed(func(f *pflag.FlagSet) { f.Int64(anyFlag, 0, "") })},
	"ip":       {"an IP address", parsed(func(f *pflag.FlagSet) { f.IP(anyFlag, nil, "") })},
	"list":     {"a list", nil},
	"map":      {"a mapping", nil},
	"string":   {"a text", nil},
	"uint":     {"a whole number of at least 0", parsed(func(f *pflag.FlagSet) { f.Uint(anyFlag, 0, "") })},
	"uint32":   {"a whole number of at least 0", parsed(func(f *pflag.FlagSet) { f.Uint32(anyFlag, 0, "") })},
	"uint64":   {"a whole number of at least 0", parsed(func(f *pflag.FlagSet) { f.Uint64(anyFlag, 0, "") })},

	"mapStringBool": {"NAME=true or NAME=false, several with commas between them", func(value string) bool {
		return isPairs(value, "=", func(value string) bool {
			_, err := strconv.ParseBool(strings.TrimSpace(value))
			return err == nil
		})
	}},
	"MapStringString": {"NAME=VALUE, several with commas between them", func(value string) bool {
		return isPairs(value, "=", func(string) bool { return true })
	}},
	"LangleSeparatedMapStringString": {"NAME<VALUE, several with commas between them", func(value string) bool {
		return isPairs(value, "<", func(string) bool { return true })
	}},
}

const anyFlag = "flag"

// parsed returns a function that tells whether a flag, as the components define theirs, parses a value.
func parsed(define func(*pflag.FlagSet)) func(value string) bool {
	return func(value string) bool {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		define(flags)
		return flags.Set(anyFlag, value) == nil
	}
}

// ofValues is a type of the table, with what the component takes of it: int32[0,100], or string{none,static}.
type ofValues struct {
	valueType
	known  bool
	limits string   // 0,100 or 0, without an upper one; "" if it takes all numbers
	words  []string // none if it takes all texts
	list   bool     // of words, with commas between them
}

func readType(text string) ofValues {
	plain, words, _ := strings.Cut(strings.TrimSuffix(text, "}"), "{")
	plain, limits, _ := strings.Cut(strings.TrimSuffix(plain, "]"), "[")
	kind, known := valueTypes[plain]
	return ofValues{
		kind, known, limits, strings.FieldsFunc(words, func(r rune) bool { return r == ',' }), plain == "stringSlice",
	}
}

// mostNamed is the number of words that a message names.
const mostNamed = 8

// toWrite says what to write for a type.
func toWrite(text string) string {
	kind := readType(text)
	switch least, most, _ := strings.Cut(kind.limits, ","); {
	case len(kind.words) > mostNamed:
		return "write names that it knows, such as " + strings.Join(kind.words[:3], ", ")
	case kind.list && len(kind.words) > 0:
		return "write some of " + strings.Join(kind.words, ", ")
	case len(kind.words) > 0:
		return "write " + strings.Join(kind.words, " or ")
	case kind.limits == "":
		return "write " + kind.form
	case most == "":
		return "write " + kind.form + " of at least " + least
	default:
		return "write " + kind.form + " from " + least + " to " + most
	}
}

// isWithin tells whether a number is within limits such as 0,100, of which the upper one may be missing.
func isWithin(limits, value string) bool {
	least, most, _ := strings.Cut(limits, ",")
	number, _ := strconv.ParseInt(value, 0, 64)
	lower, _ := strconv.ParseInt(least, 10, 64)
	upper, err := strconv.ParseInt(most, 10, 64)
	return number >= lower && (err != nil || number <= upper)
}

// isOfType tells whether a component can parse the value of a flag, and takes it. Values of unknown types are taken for right.
func isOfType(text, value string) bool {
	kind := readType(text)
	if len(kind.words) > 0 {
		words := []string{value}
		if kind.list {
			words = strings.Split(value, ",")
		}
		return !slices.ContainsFunc(words, func(word string) bool { return word != "" && !slices.Contains(kind.words, word) })
	}
	return kind.parses == nil || kind.parses(value) && (kind.limits == "" || isWithin(kind.limits, value))
}

// isPairs tells whether a text is a list as Kubernetes' flags of maps take it: pairs with a sign between name and value, separated by
// commas. Some may be empty.
func isPairs(list, sign string, is func(value string) bool) bool {
	for pair := range strings.SplitSeq(list, ",") {
		if _, value, both := strings.Cut(pair, sign); pair != "" && (!both || !is(value)) {
			return false
		}
	}
	return true
}

// isOfField tells whether KubeletConfiguration can have a value in a field of a type. Talos converts the values by their types, and keeps
// the kubelet as it is when one does not fit.
func isOfField(kind string, value any) bool {
	text, isText := value.(string)
	_, isList := value.([]any)
	_, isMap := value.(map[string]any)
	plain, _, _ := strings.Cut(kind, "{")
	switch {
	case value == nil || !readType(kind).known:
		return true
	case kind == "list":
		return isList
	case kind == "map":
		return isMap
	case plain == "string":
		return isText && isOfType(kind, text)
	case kind == "duration":
		_, err := time.ParseDuration(text)
		return isText && err == nil
	}
	_, isSwitch := value.(bool)
	if isSwitch || kind == "bool" {
		return isSwitch && kind == "bool"
	}
	return !isText && !isList && !isMap && isOfType(kind, plainOf(value))
}

// plainOf returns a number as text.
func plainOf(value any) string {
	switch value := value.(type) {
	case int:
		return strconv.Itoa(value)
	case int64:
		return strconv.FormatInt(value, 10)
	case uint64:
		return strconv.FormatUint(value, 10)
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
	return ""
}
