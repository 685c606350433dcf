package cluster

import (
	"strings"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// Suggest returns the candidate that is most similar to the given name, or "" if none is similar.
func Suggest(given string, candidates []string) string {
	return syntax.Nearest(given, candidates, len(given)/2)
}

// MeantOr returns the remedy for a name that is not among the candidates: the most similar one, or what else to do.
func MeantOr(otherwise, given string, candidates []string) string {
	if meant := Suggest(given, candidates); meant != "" {
		return "did you mean " + meant + "?"
	}
	return otherwise
}

// OneOf is MeantOr, which otherwise lists the candidates.
func OneOf(given string, candidates []string) string {
	if len(candidates) == 0 {
		return "remove it"
	}
	return MeantOr("write one of "+strings.Join(candidates, ", "), given, candidates)
}
