package cluster

import (
	"fmt"
	"strings"
)

// KeyPath returns the path of a key below a path; "" is the path of the whole.
func KeyPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// ItemPath returns the path of a list's item.
func ItemPath(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// EntryPath returns the path of a mapping's entry, whose key may contain dots.
func EntryPath(path, key string) string { return fmt.Sprintf("%s[%q]", path, key) }

// Within tells whether a path is another one, or below it: a key, an item or an entry. Every path is within "".
func Within(path, above string) bool {
	below, found := strings.CutPrefix(path, above)
	return above == "" || found && (below == "" || strings.ContainsAny(below[:1], ".["))
}
