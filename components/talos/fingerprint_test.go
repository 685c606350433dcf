package talos

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"
	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/machines"
)

func TestFingerprint_NeedsTheClustersKey(t *testing.T) {
	of := func(key string, texts ...string) string {
		args := machine.MachineSecretsArgs{Cluster: machine.ClusterArgs{Id: pulumi.String("id"), Secret: pulumi.String(key)}}
		c := &TalosCluster{secrets: args.ToMachineSecretsOutput()}
		made := make(chan string, 1)
		c.Fingerprint(texts...).ApplyT(func(text string) string {
			made <- text
			return text
		})
		return <-made
	}
	first := of("key", "user", "hunter2")
	assert.Regexp(t, `^[0-9a-f]{16}$`, first)
	assert.Equal(t, first, of("key", "user", "hunter2"))
	for _, other := range []string{of("key", "user", "hunter3"), of("other", "user", "hunter2"), of("key", "userhunter2"), of("key")} {
		assert.NotEqual(t, first, other)
	}
}

// Without another sum, a node that does not come back from a change is forgotten by the next run.
func TestSumOf_DiffersWithAllThatTheMachineIsMadeOf(t *testing.T) {
	of := func(m machines.Machine, configuration string) string {
		made := make(chan string, 1)
		sumOf(m, pulumi.String(configuration).ToStringOutput()).ApplyT(func(text string) string {
			made <- text
			return text
		})
		return <-made
	}
	node := func(name string) (node cluster.Machine) {
		node.Name = name
		return node
	}
	first := of(machines.Machine{Node: node("infra-cp-1")}, "a")
	assert.Equal(t, first, of(machines.Machine{Node: node("infra-cp-1")}, "a"))
	assert.NotEqual(t, first, of(machines.Machine{Node: node("infra-cp-2")}, "a"))
	assert.NotEqual(t, first, of(machines.Machine{Node: node("infra-cp-1")}, "b"))
	assert.NotEqual(t, first, of(machines.Machine{Node: node("infra-cp-1"), Hardware: "virtio-scsi-pci"}, "a"))
}
