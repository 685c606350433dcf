package machineconfig

import (
	"crypto/tls"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/net"
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

	"Level":     {"a whole number", parsed(func(f *pflag.FlagSet) { f.Int32(anyFlag, 0, "") })},
	"portRange": {"two ports, such as 30000-32767", func(value string) bool { _, err := net.ParsePortRange(value); return err == nil }},

	"mapStringBool": {"NAME=true or NAME=false" + several, everyPair("=", func(_, value string) bool { return isBoolean(value) })},

	"MapStringString":                {"NAME=VALUE" + several, everyPair("=", func(string, string) bool { return true })},
	"LangleSeparatedMapStringString": {"NAME<VALUE" + several, everyPair("<", func(string, string) bool { return true })},

	// Of flagTypes.
	"apis":    {"api/all=true, or GROUP/VERSION=false, such as apps/v1=false" + several, isRuntimeConfig},
	"ciphers": {"names such as TLS_AES_128_GCM_SHA256" + several, isCipherList},
	"chance":  {"a number from 0 to 0.02", isFrom(0, 0.02)},
	"compaction": {"a number of hours, or of revisions, or a duration, such as 30m", func(value string) bool {
		return isFrom(0, math.MaxInt32)(value) || lasts(0, math.MaxInt64)(value)
	}},
	"level": {"debug, info, warn, error, panic or fatal", func(value string) bool {
		return isOneOf("debug", "info", "warn", "error", "dpanic", "panic", "fatal")(strings.ToLower(value))
	}},
	"lifetime": {"a duration of at least 1h", func(value string) bool { return lasts(0, 0)(value) || lasts(time.Hour, math.MaxInt64)(value) }},
	"origins":  {"a regular expression of each whole host, such as //app\\.example\\.com(:|$)" + several, isOriginList},
	"periods": {"SIGNAL=DURATION, such as memory.available=1m" + several, everyPair("=", func(name, value string) bool {
		return slices.Contains(signals, name) && lasts(0, math.MaxInt64)(value)
	})},
	"reclaims": {"SIGNAL=AMOUNT, such as memory.available=1Gi" + several, everyPair("=", isSignal)},
	"reserved": {"RESOURCE=AMOUNT, such as memory=1Gi" + several, everyPair("=", func(name, value string) bool {
		return slices.Contains(reservable, name) && isQuantity(value)
	})},
	"sizes": {"RESOURCE#NUMBER, such as pods#1000" + several, everyPair("#", func(_, value string) bool {
		return matches(`^[0-9]+$`)(value)
	})},
	"thresholds": {"SIGNAL<AMOUNT, such as memory.available<500Mi" + several, everyPair("<", isSignal)},
	"wait":       {"a duration of at least 0s, such as 30s", lasts(0, math.MaxInt64)},
	"urls":       {"http://ADDRESS:PORT, such as http://0.0.0.0:2381" + several, isBindURLs},
}

// flagTypes are the types of flags of which the component takes less than the types of the tables say, by what it checks when it starts:
// k8s.io/apiserver, pkg/server/options and pkg/server/resourceconfig; k8s.io/kubernetes, pkg/controlplane/apiserver/options,
// cmd/kubelet/app and pkg/kubelet/eviction; etcd, server/embed.
var flagTypes = map[string]string{
	"auto-compaction-retention":            "compaction",
	"cipher-suites":                        "ciphers",
	"cors-allowed-origins":                 "origins",
	"endpoint-reconciler-type":             "string{lease,master-count,none}",
	"eviction-hard":                        "thresholds",
	"eviction-minimum-reclaim":             "reclaims",
	"eviction-soft":                        "thresholds",
	"eviction-soft-grace-period":           "periods",
	"feature-gates":                        "mapStringBool",
	"goaway-chance":                        "chance",
	"kube-reserved":                        "reserved",
	"listen-metrics-urls":                  "urls",
	"livez-grace-period":                   "wait",
	"log-level":                            "level",
	"max-mutating-requests-inflight":       "int[0,]",
	"max-requests-inflight":                "int[0,]",
	"min-request-timeout":                  "int[0,]",
	"oidc-signing-algs":                    "stringSlice{ES256,ES384,ES512,PS256,PS384,PS512,RS256,RS384,RS512}",
	"request-timeout":                      "wait",
	"runtime-config":                       "apis",
	"service-account-max-token-expiration": "lifetime",
	"shutdown-delay-duration":              "wait",
	"storage-backend":                      "string{etcd3}",
	"storage-initialization-timeout":       "wait",
	"system-reserved":                      "reserved",
	"watch-cache-sizes":                    "sizes",
}

// isOriginList tells whether each item is an expression that begins and ends with the host: validateCorsAllowedOriginList. Of a list with
// quotes, which keep commas together, it does not know the items.
func isOriginList(list string) bool {
	if strings.Contains(list, `"`) {
		return true
	}
	for item := range strings.SplitSeq(list, ",") {
		_, err := regexp.Compile(item)
		begins := strings.Contains(item, "^") || strings.Contains(item, "//")
		if err != nil || !begins || !strings.ContainsAny(item, "$:") {
			return false
		}
	}
	return true
}

// isCipherList tells whether etcd knows each name of a list: client/pkg/tlsutil.
func isCipherList(list string) bool {
	known := []string{"", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"}
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		known = append(known, suite.Name)
	}
	return !slices.ContainsFunc(strings.Split(list, ","), func(name string) bool { return !slices.Contains(known, name) })
}

const several = ", several with commas between them"

func isBoolean(value string) bool {
	_, err := strconv.ParseBool(strings.TrimSpace(value))
	return err == nil
}

func isSignal(name, value string) bool { return slices.Contains(signals, name) && isThreshold(value) }

// isBindURLs tells whether etcd can listen at each URL of a list: at an address, and not at a name.
func isBindURLs(list string) bool {
	for item := range strings.SplitSeq(list, ",") {
		address, err := url.Parse(strings.TrimSpace(item))
		switch {
		case err != nil:
			return false
		case isOneOf("unix", "unixs")(address.Scheme):
		case !isOneOf("http", "https")(address.Scheme), address.Path != "", address.Port() == "",
			address.Hostname() != "localhost" && !isAddress(address.Hostname()):
			return false
		}
	}
	return true
}

// isRuntimeConfig tells whether a list switches APIs, each by its group, version and perhaps resource, or all of a kind.
func isRuntimeConfig(list string) bool {
	for item := range strings.SplitSeq(list, ",") {
		key, value, _ := strings.Cut(item, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch parts := strings.Split(key, "/"); {
		case item == "":
		case slices.Contains([]string{"api/all", "api/alpha", "api/beta", "api/ga"}, key):
			if value != "true" && (value != "false" || list == "api/all=false") {
				return false
			}
		case len(parts) != 2 && len(parts) != 3, value != "" && !isBoolean(value):
			return false
		}
	}
	return true
}

// lasts returns a function that tells whether a text is a duration within two others.
func lasts(least, most time.Duration) func(string) bool {
	return func(value string) bool {
		duration, err := time.ParseDuration(value)
		return err == nil && duration >= least && duration <= most
	}
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

// everyPair returns a function that tells whether a text is a list as Kubernetes' flags of maps take it: pairs with a sign between name and
// value, separated by commas. Some may be empty.
func everyPair(sign string, is func(name, value string) bool) func(list string) bool {
	return func(list string) bool {
		for pair := range strings.SplitSeq(list, ",") {
			name, value, both := strings.Cut(pair, sign)
			if pair != "" && (!both || !is(strings.TrimSpace(name), strings.TrimSpace(value))) {
				return false
			}
		}
		return true
	}
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
	_, isBool := value.(bool)
	if isBool || kind == "bool" {
		return isBool && kind == "bool"
	}
	return !isText && !isList && !isMap && isOfType(kind, plainOf(value))
}

// plainOf returns a number as text.
func plainOf(value any) string {
	switch value := value.(type) {
	case int, int64, uint64:
		return fmt.Sprint(value)
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
	return ""
}
