package secrecy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// InJSON returns the dotted paths of the values in a JSON document that look like secrets, by their text or by the name of their key,
// sorted. It serves values of charts, in which keys that end in secret or key name Secrets, labels and taints.
func InJSON(document []byte) []string {
	var tree any
	if json.Unmarshal(document, &tree) != nil {
		return nil
	}
	var paths []string
	var visit func(path, key string, value any)
	visit = func(path, key string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for below, child := range value {
				if path != "" {
					below = path + "." + below
				}
				visit(below, below[strings.LastIndex(below, ".")+1:], child)
			}
		case []any:
			for i, child := range value {
				visit(fmt.Sprintf("%s[%d]", path, i), key, child)
			}
		case string:
			if value != "" && (holder.MatchString(key) || Like(value)) {
				paths = append(paths, path)
			}
		}
	}
	visit("", "", tree)
	slices.Sort(paths)
	return paths
}
