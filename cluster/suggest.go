package cluster

import (
	"strings"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// Suggest returns the candidate that is most similar to the given name, or "" if none is similar.
func Suggest(given string, candidates []string) string {
	return syntax.Nearest(given, candidates, len(given)/2)
}

// OneOf returns the remedy for a name that is not among the candidates.
func OneOf(given string, candidates []string) string {
	if meant := Suggest(given, candidates); meant != "" {
		return "did you mean " + meant + "?"
	}
	if len(candidates) == 0 {
		return "remove it"
	}
	return "write one of " + strings.Join(candidates, ", ")
}
