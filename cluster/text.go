package cluster

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/siderolabs/gen/xslices"
	"gopkg.in/yaml.v3"
)

// Text is text of several lines. It includes the line break at its end, which YAML's block style adds.
type Text string

// Checksum returns a part of the SHA-256 of a text, by which a change of the text is seen. A short secret can be guessed from it.
func Checksum(text string) string {
	sum := sha256.Sum256([]byte(text))
	short := hex.EncodeToString(sum[:8])
	if !isText(short) { // digits alone, or with one e: as a setting in a manifest, it would be a number
		return "a" + short[1:]
	}
	return short
}

// isText reports whether YAML reads a word without quotes as text: 1.10 is a number, 2026-11-30 a date, and true a boolean.
func isText(word string) bool {
	var document yaml.Node
	err := yaml.Unmarshal([]byte(word), &document)
	return err == nil && len(document.Content) == 1 && document.Content[0].ShortTag() == "!!str"
}

// texts returns values as plain text.
func texts[T ~string](values ...T) []string {
	return xslices.Map(values, func(value T) string { return string(value) })
}

// sorted returns a mapping's keys in order, so that the order of problems is stable.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// fill sets a value if it is zero.
func fill[T comparable](value *T, fallback T) {
	*value = cmp.Or(*value, fallback)
}
