package cilium

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestReadPool_LeavesOutTheFirstAndLastAddressOnRequest(t *testing.T) {
	p := pool(t, "{allowFirstLastIPs: 'No', blocks: [{cidr: 10.25.11.0/24}]}")
	assert.Equal(t, []addressRange{{ips("10.25.11.1")[0], ips("10.25.11.254")[0]}}, p.ranges)
	assert.Equal(t, ips("fd00::ff")[0], lastOf(netip.MustParsePrefix("fd00::/120")))
}

func TestSettleConflicts_ClosesTheNewerOfTwoPoolsThatOverlap(t *testing.T) {
	named := func(name string, age time.Duration, spec string) addressPool {
		p := pool(t, spec)
		p.name, p.created = name, time.Unix(1e9, 0).Add(-age)
		return p
	}
	pools := []addressPool{
		named("a", time.Minute, "{blocks: [{cidr: 10.25.11.96/28}]}"),
		named("apart", time.Minute, "{blocks: [{cidr: 10.25.11.112/28}]}"),
		named("first", time.Hour, "{blocks: [{start: 10.25.11.100, stop: 10.25.11.101}]}"),
		named("itself", time.Hour, "{blocks: [{cidr: 10.25.12.0/24}, {start: 10.25.12.7}]}"),
		named("beside it", time.Second, "{blocks: [{cidr: 10.25.12.0/28}]}"),
		named("v6", time.Second, "{blocks: [{cidr: 'fd00::/64'}]}"),
	}
	settleConflicts(pools)
	var closed []string
	for _, p := range pools {
		if p.conflicts {
			closed = append(closed, p.name)
		}
	}
	assert.Equal(t, []string{"itself", "a"}, closed, "first, and what overlaps only a closed one, is open")

	kept, wants := balanced("kept", "", "10.25.11.105"), balanced("wants", "10.25.11.110")
	assigned := assign(list{kept, wants}, pools)
	assert.Equal(t, ips("10.25.11.105"), assigned["kept"].ips, "what a Service has, it keeps")
	assert.Equal(t, "no_pool", assigned["wants"].reason)
}
