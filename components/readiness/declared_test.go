package readiness_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/readiness"
	"github.com/slipway-platform/slipway/tests/clusters"
)

func TestDeclared_ChangesWithTheMachinesAndNotWithTheHostsOfNewOnes(t *testing.T) {
	of := func(change func(*cluster.NodePool)) any {
		c := clusters.Infra(t)
		change(&c.NodePools[0])
		return readiness.Declared(c, c.Machines(), nil).Verifies["machines"]
	}
	before := of(func(*cluster.NodePool) {})
	assert.Equal(t, before, of(func(p *cluster.NodePool) { p.Hosts = []string{"pve1"} }))
	assert.NotEqual(t, before, of(func(p *cluster.NodePool) { p.Nodes[0].Host = "pve9" }))
}

func TestDeclared_OnlyAChecksumOfSecretPatchesIsAnInput(t *testing.T) {
	c := clusters.Infra(t)
	assert.Empty(t, readiness.Declared(c, c.Machines(), nil).Secrets)
	c.TalosSecretPatches = cluster.NewSecret("PATCH-MARKER")
	inputs := readiness.Declared(c, c.Machines(), nil).Secrets
	assert.Len(t, inputs, 1)
	assert.NotContains(t, inputs["secretPatches"], "PATCH-MARKER")
}
