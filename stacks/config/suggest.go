package config

import "strings"

// maxSuggested is the length of the longest name that is compared with others letter by letter.
const maxSuggested = 64

// suggest returns the candidate that was most likely meant, or "" if none is near.
func suggest(given string, candidates []string) string {
	best, bestDistance := "", len(given)/2+1
	lower := strings.ToLower(given)
	for _, candidate := range candidates {
		if strings.EqualFold(given, candidate) {
			return candidate
		}
		apart := max(len(given)-len(candidate), len(candidate)-len(given)) // their distance is no less
		if apart >= bestDistance || max(len(given), len(candidate)) > maxSuggested {
			continue
		}
		if d := distance(lower, strings.ToLower(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// oneOf is the remedy for a name that is not among the candidates.
func oneOf(given string, candidates []string) string {
	if meant := suggest(given, candidates); meant != "" {
		return "did you mean " + meant + "?"
	}
	if len(candidates) == 0 {
		return "remove it"
	}
	return "write one of " + strings.Join(candidates, ", ")
}

// distance is the number of letters to add, remove, replace or swap with their neighbour to make one word of the other.
func distance(a, b string) int {
	rows := make([]int, 3*(len(b)+1))
	before, previous, current := rows[:len(b)+1], rows[len(b)+1:2*(len(b)+1)], rows[2*(len(b)+1):]
	for j := range current {
		current[j] = j
	}
	for i := range len(a) {
		before, previous, current = previous, current, before
		current[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			current[j+1] = min(previous[j+1]+1, current[j]+1, previous[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				current[j+1] = min(current[j+1], before[j-1]+1)
			}
		}
	}
	return current[len(b)]
}
