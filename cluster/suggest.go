package cluster

import (
	"strings"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// maxSuggested is the length of the longest name that is compared with others letter by letter.
const maxSuggested = 64

// Suggest returns the candidate that is most similar to the given name, or "" if none is similar.
func Suggest(given string, candidates []string) string {
	best, bestDistance := "", len(given)/2+1
	lower := strings.ToLower(given)
	for _, candidate := range candidates {
		if strings.EqualFold(given, candidate) {
			return candidate
		}
		apart := max(len(given)-len(candidate), len(candidate)-len(given)) // lower bound of their distance
		if apart >= bestDistance || max(len(given), len(candidate)) > maxSuggested {
			continue
		}
		if d := syntax.Distance(lower, strings.ToLower(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
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
