package cluster

import (
	"fmt"
	"maps"
	"slices"
)

// Text is text of several lines. The line break at its end, which YAML's block style adds, is part of it.
type Text string

// texts are values as plain text.
func texts[T ~string](values ...T) []string {
	list := make([]string, len(values))
	for i, value := range values {
		list[i] = string(value)
	}
	return list
}

// sorted returns a mapping's keys in order, so that problems are in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// entry is the path of a mapping's entry, whose key may have dots in it.
func entry(path, key string) string { return fmt.Sprintf("%s[%q]", path, key) }

// fill sets a value that is still zero.
func fill[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}
