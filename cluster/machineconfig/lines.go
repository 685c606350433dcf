package machineconfig

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
)

// Lines writes what Effective returns as text. Each value has a line with its whole path, such as
//
//	machine.sysctls.vm.max_map_count = 262144
//
// so that the lines of a difference can be read without context. A Secret is "[secret]" in the text; secrets has its value by
// its path.
func Lines(tree map[string]any) (text string, secrets map[string]string) {
	var lines strings.Builder
	secrets = map[string]string{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		shown := ""
		switch value := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				walk(cluster.KeyPath(path, key), value[key])
			}
			if len(value) > 0 {
				return
			}
			shown = "{}"
		case []any:
			for i, child := range value {
				walk(cluster.ItemPath(path, i), child)
			}
			if len(value) > 0 {
				return
			}
			shown = "[]"
		case Secret:
			shown, secrets[path] = "[secret]", string(value)
		case string:
			if shown = value; value == "" || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' }) {
				shown = strconv.Quote(value)
			}
		default:
			shown = fmt.Sprint(value)
		}
		fmt.Fprintf(&lines, "%s = %s\n", path, shown)
	}
	walk("", tree)
	return lines.String(), secrets
}
