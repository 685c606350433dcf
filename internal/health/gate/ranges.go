package gate

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/siderolabs/gen/xslices"
)

// Ranges are the CIDRs of an object.
type Ranges struct {
	Name  string
	CIDRs []netip.Prefix
}

// rangesDiffer compares ranges in use with declared ones. It returns nil if they are equal.
func rangesDiffer(what string, used, declared []netip.Prefix) []string {
	if slices.Equal(used, declared) {
		return nil
	}
	return []string{fmt.Sprintf("%s %s instead of the declared %s", what, rangeNames(used), listed(declared))}
}

func rangeNames(cidrs []netip.Prefix) string { return cmp.Or(listed(cidrs), "no range") }

// listed returns addresses or ranges in one text.
func listed[T fmt.Stringer](values []T) string {
	return strings.Join(xslices.Map(values, T.String), ", ")
}
