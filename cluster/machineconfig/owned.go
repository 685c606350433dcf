package machineconfig

import (
	_ "embed"
	"slices"
	"strings"
)

// ownedText has a line for each part of the configuration that belongs to Slipway as a whole, PART = KEY, and for each to which patches may
// add what Slipway renders, + PART = KEY. Further parts belong to Slipway because it renders them.
//
//go:embed owned.txt
var ownedText string

// ownedPart is a part of the configuration. Its keys are compared without case, hyphens and underscores, because kubelet takes node_ip for
// node-ip and has the same setting as the field nodeIP.
type ownedPart struct {
	part, key string // key is that of the stack that declares the part; "" if none does
	whole     bool   // no patch may change the part, remove it or add to it
}

var owned = func() (parts []ownedPart) {
	for line := range strings.Lines(ownedText) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		part, key, _ := strings.Cut(line, " = ")
		part, adds := strings.CutPrefix(part, "+ ")
		parts = append(parts, ownedPart{part, key, !adds})
	}
	return parts
}()

const removeIt = "remove it"

// remedyFor names the key of the stack that declares a part. The longest part that holds a path decides.
func remedyFor(path []string) string {
	key, length := "", 0
	for _, row := range owned {
		if n := strings.Count(row.part, ".") + 1; n > length && holds(row.part, path) {
			key, length = row.key, n
		}
	}
	if key == "" {
		return removeIt
	}
	return "set " + key + " instead"
}

// isOwned tells whether a path is in a part that belongs to Slipway as a whole.
func isOwned(path []string) bool {
	return slices.ContainsFunc(owned, func(row ownedPart) bool { return row.whole && holds(row.part, path) })
}

// holds tells whether a path is a part, or below it.
func holds(part string, path []string) bool {
	keys := strings.Split(part, ".")
	if len(keys) > len(path) {
		return false
	}
	for i, want := range keys {
		beginning, anyEnding := strings.CutSuffix(want, "*")
		key := plainName(path[i])
		if beginning = plainName(beginning); key != beginning && !(anyEnding && strings.HasPrefix(key, beginning)) {
			return false
		}
	}
	return true
}

// plainName is a name without case, hyphens, underscores and dots.
func plainName(name string) string { return strings.ToLower(separators.Replace(name)) }

var separators = strings.NewReplacer("-", "", "_", "", ".", "")
