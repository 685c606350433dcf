package talos

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"
	"github.com/stretchr/testify/assert"
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
