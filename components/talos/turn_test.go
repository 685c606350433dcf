package talos

import (
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/talos/turn"
	"github.com/slipway-platform/slipway/tests/mocks"
)

func TestTalosCluster_AppliesToControlPlanesOneAfterTheOther(t *testing.T) {
	r := up(t)
	applies := map[int]mocks.Registration{}
	for i, name := range []string{"infra-cp-1", "infra-cp-2", "infra-cp-3"} {
		applies[i] = r.Resource(t, "infra-"+name+"-apply")
	}
	for i, one := range applies {
		for j, other := range applies {
			assert.Equal(t, i > j, i != j && r.After(one, other), "%s after %s", one.Name, other.Name)
		}
	}
	for _, vm := range r.OfType(typeVM) {
		for _, apply := range applies {
			assert.False(t, r.After(vm, apply), "machines are created in parallel")
		}
	}
}

func TestTalosCluster_HasNodesAwaitTheirTurnBeforeAChange(t *testing.T) {
	r := up(t)
	bound := 0
	for _, reg := range r.Resources() {
		update := reg.RPC.GetHooks().GetBeforeUpdate()
		if reg.Type == typeVM || reg.Type == typeStash || reg.Name == "infra-retire" {
			continue
		}
		if reg.Type != typeApply {
			assert.Empty(t, update, reg.Name)
			continue
		}
		require.Len(t, update, 1, reg.Name)
		assert.Empty(t, reg.BeforeCreate, "a machine in maintenance mode is no part of the cluster")
		bound++
	}
	assert.Equal(t, len(machines(t)), bound)
	for _, hook := range r.Hooks() {
		if strings.HasSuffix(hook.Name, "-turn") {
			assert.False(t, hook.OnDryRun, "%s would send requests in a preview", hook.Name)
		}
	}
}

func TestTalosCluster_ASingleNodeOfARoleDoesNotWait(t *testing.T) {
	r := up(t, func(c *cluster.Cluster) {
		c.NodePools[0].Nodes, c.NodePools[1].Nodes = c.NodePools[0].Nodes[:1], c.NodePools[1].Nodes[:1]
	})
	for _, hook := range r.Hooks() {
		assert.NotContains(t, hook.Name, "-turn")
	}
}

func TestCredentials_AreThoseOfTheResource(t *testing.T) {
	secret := resource.MakeSecret
	pair := resource.PropertyMap{
		"caCertificate":     resource.NewProperty("ca"),
		"clientCertificate": secret(resource.NewProperty("crt")),
		"clientKey":         resource.NewProperty(resource.Output{Element: secret(resource.NewProperty("key")), Known: true, Secret: true}),
	}
	want := turn.Credentials{CA: "ca", Certificate: "crt", Key: "key"}
	assert.Equal(t, want, credentials(resource.PropertyMap{"clientConfiguration": resource.NewProperty(pair)}))
	assert.Equal(t, want, credentials(resource.PropertyMap{"clientConfiguration": secret(resource.NewProperty(pair))}))
	assert.Empty(t, credentials(resource.PropertyMap{}))
}
