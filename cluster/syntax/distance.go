package syntax

import "strings"

// maxCompared is the length of the longest word that is compared with others letter by letter.
const maxCompared = 64

// Nearest returns the candidate that differs from a word in the fewest letters, at most that many, or "". Case makes no difference.
func Nearest(word string, candidates []string, most int) string {
	best := ""
	for _, candidate := range candidates {
		if strings.EqualFold(word, candidate) {
			return candidate
		}
		apart := max(len(word)-len(candidate), len(candidate)-len(word)) // lower bound of their distance
		if apart > most || max(len(word), len(candidate)) > maxCompared {
			continue
		}
		if d := distance(strings.ToLower(word), strings.ToLower(candidate)); d <= most {
			best, most = candidate, d-1
		}
	}
	return best
}

// distance is the number of letters to add, remove, replace or swap with their neighbour to make one word of the other.
func distance(a, b string) int {
	var before, previous []int
	current := make([]int, len(b)+1)
	for j := range current {
		current[j] = j
	}
	for i := range len(a) {
		before, previous, current = previous, current, make([]int, len(b)+1)
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
