package graph

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/stacks"
	"github.com/slipway-platform/slipway/stacks/contract"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const callStackOutputs = "pulumi:pulumi:readStackOutputs"

// errUnknownStack is the engine's answer for a stack that does not exist.
var errUnknownStack = errors.New("invocation of " + callStackOutputs + ` returned an error: unknown stack "organization/slipway/other"`)

// besideOther runs the program for a stack whose peer other has outputs; nil means that other does not exist.
func besideOther(t *testing.T, outputs map[string]any) (*mocks.Recorder, error) {
	t.Helper()
	file := fixtures.Write(t, "mesh", "infra")
	t.Chdir(filepath.Dir(file))
	rec := newRecorderOf(t, file, "infra")
	rec.OnCall = otherAnswers(outputs)
	return rec, rec.Run(stacks.Deploy)
}

// otherAnswers answers calls like answerCall, and for the stack other with its outputs.
func otherAnswers(outputs map[string]any) func(pulumi.MockCallArgs) (resource.PropertyMap, error) {
	return func(call pulumi.MockCallArgs) (resource.PropertyMap, error) {
		name := call.Args["name"]
		if call.Token != callStackOutputs || !strings.HasSuffix(name.StringValue(), "/other") || outputs == nil {
			return answerCall(call)
		}
		return resource.NewPropertyMapFromMap(map[string]any{"name": name.StringValue(), "outputs": outputs}), nil
	}
}

// otherRuns returns the outputs of other after changes.
func otherRuns(t *testing.T, changes map[string]any) map[string]any {
	t.Helper()
	text := strings.Replace(fixtures.Peer(), "peers: [home, infra]", "peers: []", 1) // which would need the files of its peers
	outputs := contract.Declared(clusters.Parse(t, "Pulumi.other.yaml", text))
	outputs[contract.Kubeconfig] = &resource.Secret{Element: resource.NewProperty(keyMaterial)}
	maps.Copy(outputs, changes)
	return outputs
}

func TestPeers_ThatDoNotExistOrRunAsDeclaredLetTheChainGoOn(t *testing.T) {
	for name, outputs := range map[string]map[string]any{
		"does not exist": nil, "destroyed": {}, "runs": otherRuns(t, nil),
		"older version": otherRuns(t, map[string]any{
			"contractVersion": contract.Version - 1, "clusterName": nil,
		}),
		"no version":                      otherRuns(t, map[string]any{"contractVersion": nil}),
		"will change":                     otherRuns(t, map[string]any{"clusterName": "old"}),
		"without the storage of its file": otherRuns(t, map[string]any{"storageRole": "none"}),
		"was brought up before there were these outputs": otherRuns(t, map[string]any{
			"nodeAddresses": nil, "macs": nil, "vmIds": nil, "domain": nil,
			"proxmoxCluster": nil, "proxmoxEndpoint": nil,
		}),
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
		"a newer version": {otherRuns(t, map[string]any{"contractVersion": contract.Version + 1, "clusterId": nil}),
			fmt.Sprintf("mesh.peers[0]: other was brought up with outputs of version %d, and this program has version %d; update this checkout",
				contract.Version+1, contract.Version)},
		"an older version and the same id": {otherRuns(t, map[string]any{
			"contractVersion": contract.Version - 1, "clusterId": 1, "meshIp": "none"}),
			"cluster.id: 1 is cluster.id of other as it runs; pick"},
		"the same id":      {otherRuns(t, map[string]any{"clusterId": 1}), "cluster.id: 1 is cluster.id of other as it runs; pick"},
		"the same name":    {otherRuns(t, map[string]any{"clusterName": "home"}), "cluster.name: home is cluster.name of other as"},
		"the same pods":    {otherRuns(t, map[string]any{"podCidr": "10.244.0.0/15"}), "network.podCIDR: 10.244.0.0/16 overlaps"},
		"the same VM":      {otherRuns(t, map[string]any{"vmIds": "101"}), "vmId: 101 is vmId of machine other-1 of other as it runs"},
		"the same MAC":     {otherRuns(t, map[string]any{"macs": "BC:24:11:00:01:11"}), "is mac of machine other-1 of other as it runs"},
		"the same machine": {otherRuns(t, map[string]any{"nodes": "home-1"}), "home-1 is name of machine home-1 of other as it runs"},
		"the same address": {otherRuns(t, map[string]any{"nodeAddresses": "10.25.11.11"}), "is address of machine other-1 of other"},
		"the same mesh":    {otherRuns(t, map[string]any{"meshIp": "10.25.11.100"}), "network.loadBalancers.mesh: 10.25.11.100 is"},
		"lost storage": {otherRuns(t, map[string]any{"storageRole": "consumer", "storageProvider": "infra"}),
			"storage.role: none, and other as it runs consumes the storage of this cluster; write provider"},
		"lists that differ": {otherRuns(t, map[string]any{"vmIds": "1,2"}), "other has the output vmIds with 2 items for 1 machines"},
		"no address":        {otherRuns(t, map[string]any{"meshIp": "none"}), "other has the output meshIp"},
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

// Two gateways would answer for the same names, and two external-dns would write the same records.
func TestPeers_TheDomainBehindTheGatewayIsComparedAsItRuns(t *testing.T) {
	const url = "    url: https://git.home.arpa/platform/slipway.git\n"
	file := fixtures.Write(t, fixtures.Minimal, "infra")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), url)
	text = []byte(strings.Replace(string(text), url, url+"    settings: {DOMAIN: Home.Example.com}\n", 1))
	require.NoError(t, os.WriteFile(file, text, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file), "Pulumi.other.yaml"), nil, 0o600))
	t.Chdir(filepath.Dir(file))
	rec := newRecorderOf(t, file, "infra")
	rec.OnCall = otherAnswers(otherRuns(t, map[string]any{"domain": "home.example.com"}))
	assert.ErrorContains(t, rec.Run(stacks.Deploy),
		"gitops.settings.DOMAIN: home.example.com is gitops.settings.DOMAIN of other as it runs; pick another")
}

// A stack that this one does not name may have its machines on the same Proxmox, too.
func TestPeers_OtherStacksOfTheCheckoutAreCompared(t *testing.T) {
	file := fixtures.Write(t, fixtures.Minimal, "infra")
	for _, stack := range []string{"other", "never-up"} {
		path := filepath.Join(filepath.Dir(file), "Pulumi."+stack+".yaml")
		require.NoError(t, os.WriteFile(path, []byte("half: written"), 0o600), "only what runs is compared")
	}
	t.Chdir(filepath.Dir(file))
	rec := newRecorderOf(t, file, "infra")
	rec.OnCall = otherAnswers(otherRuns(t, map[string]any{"clusterId": 1, "podCidr": "10.244.0.0/16"}))
	assert.ErrorContains(t, rec.Run(stacks.Deploy), "cluster.id: 1 is cluster.id of other as it runs; pick another"+
		"; if other has given it up in its file, run its `pulumi up` first\n"+
		"network.podCIDR: 10.244.0.0/16 overlaps network.podCIDR 10.244.0.0/16 of other as it runs; pick a disjoint range"+
		"; if other has given it up in its file, run its `pulumi up` first")

	// Values that cannot be read are not known to collide.
	for name, outputs := range map[string]map[string]any{
		"a newer version": {"contractVersion": contract.Version + 1, "clusterId": 1},
		"no address":      otherRuns(t, map[string]any{"meshIp": "none", "podCidr": nil}),
	} {
		rec = newRecorderOf(t, file, "infra")
		rec.OnCall = otherAnswers(outputs)
		require.NoError(t, rec.Run(stacks.Deploy), name)
		assert.NotEmpty(t, rec.OfType(typeVM), name)
	}
	rec = newRecorderOf(t, file, "infra")
	rec.OnCall = otherAnswers(otherRuns(t, map[string]any{"meshIp": "none", "clusterId": 1}))
	err := rec.Run(stacks.Deploy)
	require.ErrorContains(t, err, "cluster.id: 1 is cluster.id of other as it runs; pick another")
	assert.NotContains(t, err.Error(), "meshIp")
}
