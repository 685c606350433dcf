package healthtest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDiffering_ShowsNewLinesAndThoseThatAreGone(t *testing.T) {
	const base = "gate of infra\n  passed   etcd has its members (3 of 3)\n  passed   Cilium runs\n  passed   nodes are Ready (5 of 5)\n"
	assert.Empty(t, Differing(base, base))
	assert.Equal(t, "-   passed   Cilium runs\n  failed   etcd has its members (2 of 3)\nfailed: infra-cp-1\n",
		Differing(base, "gate of infra\n  failed   etcd has its members (2 of 3)\n  passed   nodes are Ready (5 of 5)\nfailed: infra-cp-1\n"))
}
