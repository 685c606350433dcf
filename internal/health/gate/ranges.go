package gate

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Ranges are the CIDRs of an object.
type Ranges struct {
	Name  string
	CIDRs []string
}

// rangesDiffer compares ranges in use with declared ones. It returns nil if they are equal.
func rangesDiffer(what string, used, declared []string) []string {
	if slices.EqualFunc(used, declared, sameRange) {
		return nil
	}
	return []string{fmt.Sprintf("%s %s instead of the declared %s", what, rangeNames(used), strings.Join(declared, ", "))}
}

func sameRange(a, b string) bool {
	x, errX := netip.ParsePrefix(a)
	y, errY := netip.ParsePrefix(b)
	return errX == nil && errY == nil && x.Masked() == y.Masked()
}

func rangeNames(cidrs []string) string { return cmp.Or(strings.Join(cidrs, ", "), "no range") }
