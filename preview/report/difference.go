package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
)

// Change is a value that differs.
type Change struct {
	Path   string `json:"path"`
	Before string `json:"before"` // "" if there was none
	After  string `json:"after"`  // "" if there is none
}

// changes compares two mappings, sorted by path.
func changes(before, after map[string]string) []Change {
	var found []Change
	for _, path := range union(before, after) {
		if before[path] != after[path] {
			found = append(found, Change{path, before[path], after[path]})
		}
	}
	return found
}

// union returns the keys of both mappings, sorted, each once.
func union[V any](a, b map[string]V) []string {
	keys := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	slices.SortFunc(keys, natural)
	return slices.Compact(keys)
}

// natural compares texts so that item 2 comes before item 10.
func natural(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x == 0 || y == 0 {
			if a[0] != b[0] {
				return strings.Compare(a, b)
			}
			a, b = a[1:], b[1:]
			continue
		}
		if n, m := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0"); n != m {
			if len(n) != len(m) {
				return len(n) - len(m)
			}
			return strings.Compare(n, m)
		}
		a, b = a[x:], b[y:]
	}
	return len(a) - len(b)
}

// digits returns the number of digits that a text begins with.
func digits(text string) int {
	return len(text) - len(strings.TrimLeft(text, "0123456789"))
}

// Lines writes a tree of maps, lists and scalars as lines PATH = VALUE, in the order of the keys. Each line of a text with several has the
// path before it, so a difference shows single lines.
func Lines(tree any) []string {
	var lines []string
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			if len(value) == 0 {
				lines = append(lines, path+" = {}")
			}
			for _, key := range slices.SortedFunc(maps.Keys(value), natural) {
				walk(below(path, key), value[key])
			}
		case []any:
			if len(value) == 0 {
				lines = append(lines, path+" = []")
			}
			for i, item := range value {
				walk(cluster.ItemPath(path, i), item)
			}
		case string:
			if text := strings.TrimSuffix(value, "\n"); strings.Contains(text, "\n") {
				for line := range strings.SplitSeq(text, "\n") {
					lines = append(lines, path+" | "+line)
				}
				return
			}
			lines = append(lines, path+" = "+shown(value))
		case nil:
			lines = append(lines, path+" = null")
		case float64:
			lines = append(lines, path+" = "+strconv.FormatFloat(value, 'f', -1, 64))
		default:
			lines = append(lines, fmt.Sprintf("%s = %v", path, value))
		}
	}
	walk("", tree)
	return lines
}

// below returns the path of a key in the mapping at a path.
func below(path, key string) string {
	if strings.ContainsAny(key, ".[]\" ") {
		return cluster.EntryPath(path, key)
	}
	return cluster.KeyPath(path, key)
}

// shown writes a text with visible end and control characters.
func shown(text string) string {
	if text == "" || text != strings.TrimSpace(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
		return strconv.Quote(text)
	}
	return text
}

// plain returns a value as JSON would give it back, so that values of both sides have the same types.
func plain(value any) any {
	var tree any
	text, err := json.Marshal(value)
	if err != nil || json.Unmarshal(text, &tree) != nil {
		return value
	}
	return tree
}

// maxCells bounds the table of the longest common subsequence. Beyond it, lines are compared as sets.
const maxCells = 4_000_000

// differ returns the lines that are removed ("- …") and added ("+ …"), in their order; none if both are equal.
func differ(before, after []string) []string {
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		before, after = before[1:], after[1:]
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	if len(before)*len(after) > maxCells {
		return differAsSets(before, after)
	}
	// common[i][j] is the length of the longest common subsequence of before[i:] and after[j:].
	common := make([][]int, len(before)+1)
	for i := range common {
		common[i] = make([]int, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			if before[i] == after[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var lines []string
	for i, j := 0, 0; i < len(before) || j < len(after); {
		switch {
		case i < len(before) && j < len(after) && before[i] == after[j]:
			i, j = i+1, j+1
		case j == len(after) || i < len(before) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, "- "+before[i])
			i++
		default:
			lines = append(lines, "+ "+after[j])
			j++
		}
	}
	return lines
}

func differAsSets(before, after []string) []string {
	return append(without(before, after, "- "), without(after, before, "+ ")...)
}

// without returns the lines that the others lack, each after a mark.
func without(lines, others []string, mark string) []string {
	count := map[string]int{}
	for _, line := range others {
		count[line]++
	}
	var found []string
	for _, line := range lines {
		if count[line]--; count[line] < 0 {
			found = append(found, mark+line)
		}
	}
	return found
}

// linesOf splits a text into its lines.
func linesOf(text string) []string {
	if text = strings.TrimSuffix(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
