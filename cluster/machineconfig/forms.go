package machineconfig

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// talosForm is the form of a value that Talos takes as text, and of which only the machine finds out that it is wrong.
type talosForm struct {
	part   string // below machine or cluster; * is any key, and [] each item of a list
	takes  func(value string) bool
	says   string // what a value of another form is
	remedy string
}

var talosForms = []talosForm{
	{"machine.files[].op", isOneOf("create", "append", "overwrite"), "is no operation that Talos knows", "write create, append or overwrite"},
	{"machine.files[].path", matches(`^/`), "is no whole path", "begin it with a /"},
	{"machine.kernel.modules[].name", matches(`^[\w-]+$`), "is no name of a kernel module", "write the name alone; parameters have a key of their own"},
	{"machine.logging.destinations[].endpoint", isTarget, "is no address with a port", "write it as tcp://10.0.0.5:6051 or udp://10.0.0.5:6051"},
	{"machine.network.extraHostEntries[].aliases[]", isHost, "is no host name", "write a host name, such as git.example.com"},
	{"machine.network.extraHostEntries[].ip", isAddress, "is no IP address", "write one, such as 10.0.0.5"},
	{"machine.registries.mirrors.*.endpoints[]", isURL, "is no URL", "write it as https://mirror.example.com"},
	{"machine.sysctls.*", matches(`.`), "is empty", "write a value, or remove the key"},
	{"cluster.extraManifests[]", matches(`^https?://[^/\s]+/\S+$`), "is no URL from which Talos can fetch", "write one that begins with https://"},
}

func matches(pattern string) func(string) bool { return regexp.MustCompile(pattern).MatchString }

func isOneOf(words ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(words, value) }
}

func isAddress(value string) bool { _, err := netip.ParseAddr(value); return err == nil }
func isHost(value string) bool    { return hasForm("ntp-server", value) }
func isURL(value string) bool     { return hasForm("http-url", value) }

// isTarget tells whether a text is the URL of a receiver of logs.
func isTarget(value string) bool {
	scheme, address, _ := strings.Cut(value, "://")
	return isOneOf("tcp", "udp")(scheme) && hasForm("http-url", "http://"+address) && matches(`^[^/]*:[0-9]+/?$`)(address)
}

func hasForm(name, value string) bool {
	form, known := syntax.Lookup(name)
	return known && form.Check(value) == nil
}

// checkForms refuses values of another form. Slipway's own have it.
func (c *comparison) checkForms() {
	for _, form := range talosForms {
		eachAt(c.after, form.part, nil, func(path []string, value any) {
			text := fmt.Sprint(value)
			if !form.takes(text) {
				c.add(path, form.says, form.remedy)
			}
		})
	}
	files, _ := at(c.after["machine"], "files").([]any)
	for i, file := range files {
		where, _ := at(file, "path").(string)
		below := strings.HasPrefix(where, "/var/") || strings.HasPrefix(where, "/etc/kubernetes/manifests/") || where == criPart
		if at(file, "op") == "create" && strings.HasPrefix(where, "/") && !below {
			c.add([]string{"machine", fmt.Sprintf("files[%d]", i), "path"}, "is outside of /var, where Talos creates no file", "write one below /var")
		}
	}
}

// criPart is the file outside of /var into which Talos puts what a user writes.
const criPart = "/etc/cri/conf.d/20-customization.part"

// eachAt calls visit for each value of a part, with its path.
func eachAt(tree any, part string, path []string, visit func(path []string, value any)) {
	key, rest, more := strings.Cut(part, ".")
	key, isList := strings.CutSuffix(key, "[]")
	keys := []string{key}
	if key == "*" {
		mapping, _ := tree.(map[string]any)
		keys = slices.Sorted(maps.Keys(mapping))
	}
	for _, key := range keys {
		values := []any{at(tree, key)}
		if isList {
			values, _ = values[0].([]any)
		}
		for i, value := range values {
			there := append(slices.Clone(path), key)
			if isList {
				there[len(path)] = fmt.Sprintf("%s[%d]", key, i)
			}
			switch {
			case value == nil:
			case more:
				eachAt(value, rest, there, visit)
			default:
				visit(there, value)
			}
		}
	}
}
