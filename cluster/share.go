package cluster

import (
	"strconv"
	"strings"
)

// Share is a number of things, or a part of all of them in percent, as Kubernetes writes it: 2 or 10%.
type Share string

// UnmarshalText reads the form described at Share. Its error is a problem and a remedy, separated by a semicolon.
func (s *Share) UnmarshalText(text []byte) error {
	if err := wellFormed("share", text); err != nil {
		return err
	}
	*s = Share(text)
	return nil
}

// Of returns how many of all things the share is: a part is rounded down, and is one at least. It is 0 for a share that is none.
func (s Share) Of(all int) int {
	digits, isPart := strings.CutSuffix(string(s), "%")
	number, err := strconv.Atoi(digits)
	switch {
	case err != nil || number < 1:
		return 0
	case isPart:
		return max(all*number/100, 1)
	}
	return number
}
