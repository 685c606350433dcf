package machineconfig

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// valueForms say what to write for a type of a flag or of a field of KubeletConfiguration. The names are those of pflag and of Kubernetes'
// own flags; list and map are those of fields. Of a type that is not here, only the component knows the form.
var valueForms = map[string]string{
	"bool":            "true or false",
	"duration":        "a duration with its unit, such as 5m",
	"float32":         "a number, such as 0.5",
	"float64":         "a number, such as 0.5",
	"int":             "a whole number",
	"int32":           "a whole number",
	"int64":           "a whole number",
	"ip":              "an IP address",
	"list":            "a list",
	"map":             "a mapping",
	"mapStringBool":   "NAME=true or NAME=false, several with commas between them",
	"MapStringString": "NAME=VALUE, several with commas between them",

	"LangleSeparatedMapStringString": "NAME<VALUE, several with commas between them",
	"string":                         "a text",
	"uint":                           "a whole number of at least 0",
	"uint32":                         "a whole number of at least 0",
	"uint64":                         "a whole number of at least 0",
}

// toWrite says what to write for a type, such as int32[0,100].
func toWrite(kind string) string {
	kind, limits, _ := strings.Cut(kind, "[")
	form := "write " + valueForms[kind]
	switch least, most, _ := strings.Cut(strings.TrimSuffix(limits, "]"), ","); {
	case limits == "":
		return form
	case most == "":
		return form + " of at least " + least
	default:
		return form + " from " + least + " to " + most
	}
}

// isWithin tells whether a number is within limits such as 0,100], of which the upper one may be missing.
func isWithin(limits, value string) bool {
	least, most, _ := strings.Cut(strings.TrimSuffix(limits, "]"), ",")
	number, _ := strconv.ParseInt(value, 0, 64)
	lower, _ := strconv.ParseInt(least, 10, 64)
	upper, err := strconv.ParseInt(most, 10, 64)
	return number >= lower && (err != nil || number <= upper)
}

// isOfType tells whether a component can parse the value of a flag, and takes it. Values of unknown types are taken for right.
func isOfType(kind, value string) bool {
	if kind, limits, has := strings.Cut(kind, "["); has && kind != "" {
		return isOfType(kind, value) && isWithin(limits, value)
	}
	const name = "flag"
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	switch kind {
	case "bool":
		flags.Bool(name, false, "")
	case "duration":
		flags.Duration(name, 0, "")
	case "float32":
		flags.Float32(name, 0, "")
	case "float64":
		flags.Float64(name, 0, "")
	case "int":
		flags.Int(name, 0, "")
	case "int32":
		flags.Int32(name, 0, "")
	case "int64":
		flags.Int64(name, 0, "")
	case "ip":
		flags.IP(name, nil, "")
	case "mapStringBool":
		return isPairs(value, "=", func(value string) bool { return isOfType("bool", strings.TrimSpace(value)) })
	case "MapStringString":
		return isPairs(value, "=", func(string) bool { return true })
	case "LangleSeparatedMapStringString":
		return isPairs(value, "<", func(string) bool { return true })
	case "uint":
		flags.Uint(name, 0, "")
	case "uint32":
		flags.Uint32(name, 0, "")
	case "uint64":
		flags.Uint64(name, 0, "")
	default:
		return true
	}
	return flags.Set(name, value) == nil
}

// isPairs tells whether a text is a list as Kubernetes' flags of maps take it: pairs with a sign between name and value, separated by commas,
// of which some may be empty.
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
	plain, _, _ := strings.Cut(kind, "[")
	switch _, known := valueForms[plain]; {
	case value == nil || !known:
		return true
	case kind == "list":
		return isList
	case kind == "map":
		return isMap
	case kind == "string":
		return isText
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
