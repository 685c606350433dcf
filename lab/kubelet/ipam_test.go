package kubelet

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIPAM_GivesOutEveryAddressOnceAndNoneTwice(t *testing.T) {
	m := newIPAM(netip.MustParsePrefix("10.244.3.0/28"))
	seen := map[string]bool{}
	for {
		a, ok := m.take()
		if !ok {
			break
		}
		require.False(t, seen[a.String()])
		seen[a.String()] = true
	}
	require.Len(t, seen, 5) // .10 to .14
	m.free(m.prefix.Addr().Next().Next().Next().Next().Next().Next().Next().Next().Next().Next().Next().Next())
	a, ok := m.take()
	require.True(t, ok)
	require.Equal(t, "10.244.3.12", a.String())
}
