package graph

import (
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/stacks"
	"github.com/slipway-platform/slipway/stacks/config"
	"github.com/slipway-platform/slipway/stacks/config/fixtures"
	"github.com/slipway-platform/slipway/stacks/contract"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const callStackOutputs = "pulumi:pulumi:readStackOutputs"

// errUnknownStack is the engine's answer for a stack that does not exist.
var errUnknownStack = errors.New(`invocation of pulumi:pulumi:readStackOutputs returned an error: unknown stack "organization/slipway/other"`)

// besideOther runs the program for a stack whose peer other has outputs; nil means that other does not exist.
func besideOther(t *testing.T, outputs map[string]any) (*mocks.Recorder, error) {
	t.Helper()
	file := fixtures.Write(t, "mesh", "infra")
	t.Chdir(filepath.Dir(file))
	rec := newRecorderOf(t, file, "infra")
	rec.OnCall = func(call pulumi.MockCallArgs) (resource.PropertyMap, error) {
		if call.Token != callStackOutputs || outputs == nil {
			return answerCall(call)
		}
		return resource.NewPropertyMapFromMap(map[string]any{"name": call.Args["name"].StringValue(), "outputs": outputs}), nil
	}
	return rec, rec.Run(stacks.Deploy)
}

// otherRuns returns the outputs of other after changes.
func otherRuns(t *testing.T, changes map[string]any) map[string]any {
	t.Helper()
	text, _, _ := strings.Cut(fixtures.Peer(), "  slipway:mesh:") // which would need the files of its peers
	stack, err := config.LoadText("Pulumi.other.yaml", []byte(text))
	require.NoError(t, err)
	outputs := contract.Declared(stack)
	outputs[contract.Kubeconfig] = &resource.Secret{Element: resource.NewProperty(keyMaterial)}
	maps.Copy(outputs, changes)
	return outputs
}

func TestPeers_ThatDoNotExistOrRunAsDeclaredLetTheChainGoOn(t *testing.T) {
	for name, outputs := range map[string]map[string]any{
		"does not exist": nil, "destroyed": {}, "runs": otherRuns(t, nil), "will change": otherRuns(t, map[string]any{contract.ClusterName: "old"}),
	} {
		t.Run(name, func(t *testing.T) {
			rec, err := besideOther(t, outputs)
			require.NoError(t, err)
			assert.NotEmpty(t, rec.OfType(typeVM))
		})
	}
}

func TestPeers_ThatCollideAsTheyRunStopBeforeAnythingIsRegistered(t *testing.T) {
	for name, test := range map[string]struct {
		outputs map[string]any
		says    string
	}{
		"another version": {otherRuns(t, map[string]any{contract.ContractVersion: 2}),
			`mesh.peers[0]: other was brought up with outputs of version "2", and this program reads version 1`},
		"without a version": {otherRuns(t, map[string]any{contract.ContractVersion: nil}), `outputs of version ""`},
		"the same id":       {otherRuns(t, map[string]any{contract.ClusterID: 1}), "cluster.id: 1 is cluster.id of other; pick another (as other runs)"},
		"the same name":     {otherRuns(t, map[string]any{contract.ClusterName: "home"}), "cluster.name: home is cluster.name of other"},
		"the same pods":     {otherRuns(t, map[string]any{contract.PodCIDR: "10.244.0.0/15"}), "network.podCIDR: 10.244.0.0/16 overlaps"},
		"no address":        {otherRuns(t, map[string]any{contract.MeshIP: "none"}), "other has the output meshIp"},
	} {
		t.Run(name, func(t *testing.T) {
			rec, err := besideOther(t, test.outputs)
			require.ErrorContains(t, err, test.says)
			assert.NotContains(t, err.Error(), keyMaterial)
			for _, reg := range rec.Resources() {
				assert.Equal(t, "pulumi:pulumi:Stack", reg.Type, reg.Name)
			}
		})
	}
}
