package talos

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/mocks"
)

// An import, or a state that was edited, may have any text.
func TestTalosCluster_AppliesNoConfigurationIfOneHasACAThatTalosCannotRead(t *testing.T) {
	r := answers(&mocks.Recorder{})
	others := r.OnCall
	r.OnCall = func(call pulumi.MockCallArgs) (resource.PropertyMap, error) {
		if call.Token != callConfiguration {
			return others(call)
		}
		text := "version: v1alpha1\nmachine: {type: worker, token: abcdef.0123456789abcdef}\n"
		if call.Args["machineType"].StringValue() == "controlplane" {
			text = "version: v1alpha1\nmachine: {type: controlplane, ca: {crt: S0VZLU1BVEVSSUFM, key: S0VZLU1BVEVSSUFM}}\n"
		}
		return resource.NewPropertyMapFromMap(map[string]any{"machineConfiguration": text}), nil
	}
	err := r.Run(program(arguments(t), nil))
	require.ErrorContains(t, err, "the machine configuration of infra-cp-1 is not applied, nor is any other: "+
		"machine.ca: has a certificate that cannot be read; ")
	assert.NotContains(t, err.Error(), keyMaterial)
	assert.Empty(t, r.OfType(typeApply))
}
