package graph

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health/mesh"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/stacks"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const meshGate = "mesh-probe"

// inMesh returns a recorder for a stack of a mesh, after changes of the stack files, old and new texts in turn. All have the same CA.
func inMesh(t *testing.T, changes ...string) *mocks.Recorder {
	t.Helper()
	file := fixtures.Write(t, "mesh", "infra")
	peer := filepath.Join(filepath.Dir(file), "Pulumi.other.yaml")
	require.NoError(t, os.WriteFile(peer, []byte(fixtures.Peer()), 0o600))
	for i := 0; i < len(changes); i += 2 {
		found := false
		for _, one := range []string{file, peer} {
			text, err := os.ReadFile(one)
			require.NoError(t, err)
			found = found || strings.Contains(string(text), changes[i])
			require.NoError(t, os.WriteFile(one, []byte(strings.ReplaceAll(string(text), changes[i], changes[i+1])), 0o600))
		}
		require.True(t, found, changes[i])
	}
	t.Chdir(filepath.Dir(file))
	return newRecorderOf(t, file, "infra")
}

// meshCA is the CA of all meshes: the graph has a checksum of its certificate, and must be the same at each run.
var meshCA = clusters.Authority(func(*x509.Certificate) {})

// meshSpec returns the spec on the mesh gate's standard input.
func meshSpec(t *testing.T, rec *mocks.Recorder) *mesh.Spec {
	t.Helper()
	gate := rec.Resource(t, meshGate)
	require.True(t, gate.SecretInput("stdin"), "it holds the kubeconfig")
	spec := new(mesh.Spec)
	require.NoError(t, probe.Read(strings.NewReader(gate.Input("stdin").(string)), spec))
	return spec
}

func TestMesh_WithoutPeersThereIsNoGate(t *testing.T) {
	rec := newRecorderOf(t, fixtures.Write(t, "minimal", "infra"), "infra")
	require.NoError(t, rec.Run(stacks.Deploy))
	for _, name := range rec.Names() {
		assert.NotContains(t, name, "mesh-probe")
	}
}

func TestMesh_TheGateComesAfterTheHandoverAndCilium(t *testing.T) {
	rec := inMesh(t)
	require.NoError(t, rec.Run(stacks.Deploy))
	last := rec.Resource(t, meshGate)
	for _, earlier := range []string{handover, ciliumRelease, gate} {
		assert.Contains(t, last.Dependencies, rec.Resource(t, earlier).URN, "a direct edge, not only through other resources")
	}
	assert.Equal(t, rec.Resource(t, kubernetes).URN, last.RPC.GetDeletedWith())
	assert.Equal(t, probe.Program+" mesh", last.Input("create"))
	assert.Contains(t, last.AdditionalSecretOutputs, "stdin")
}

func TestMesh_TheGateKnowsBothClusters(t *testing.T) {
	rec := inMesh(t)
	require.NoError(t, rec.Run(stacks.Deploy))
	spec := meshSpec(t, rec)
	assert.Contains(t, spec.Kubeconfig, keyMaterial)
	assert.Equal(t, "10.25.11.100", spec.Address.String())
	assert.Equal(t, []string{"home-1"}, spec.Nodes)
	assert.Equal(t, []mesh.Peer{{Name: "other", ID: 2, Nodes: 1, Address: netip.MustParseAddr("10.25.12.100")}}, spec.Peers)
	assert.False(t, spec.NoPool)
	certificate, _, _ := strings.Cut(meshCA, "-----BEGIN PRIVATE")
	assert.Equal(t, strings.TrimSpace(certificate), strings.TrimSpace(spec.CA))
	text, err := json.Marshal(rec.Resource(t, meshGate).Input("triggers"))
	require.NoError(t, err)
	assert.NotContains(t, string(text), "CERTIFICATE")
	assert.NotContains(t, rec.Resource(t, meshGate).Input("stdin"), "PRIVATE KEY", "the CA's key is not for the probe")
}

func TestMesh_TheGateRunsAgainWhenPeersOrCiliumsValuesChange(t *testing.T) {
	registered := func(changes ...string) (stdin, triggers any) {
		rec := inMesh(t, changes...)
		require.NoError(t, rec.Run(stacks.Deploy))
		gate := rec.Resource(t, meshGate)
		return gate.Input("stdin"), gate.Input("triggers")
	}
	stdin, triggers := registered()
	sameStdin, sameTriggers := registered()
	assert.Equal(t, stdin, sameStdin)
	assert.Equal(t, triggers, sameTriggers)
	otherStdin, otherTriggers := registered("10.25.12.100", "10.25.12.110")
	assert.NotEqual(t, stdin, otherStdin, "the peer has another address")
	assert.NotEqual(t, triggers, otherTriggers, "which is among Cilium's values, too")
}

// Nothing assigns the address without GitOps, and the gate does not wait for it.
func TestMesh_WithoutGitOpsTheGateComesAfterTheHealthGateAndKnowsIt(t *testing.T) {
	rec := inMesh(t)
	rec.Config["slipway:gitops"] = `{"enabled":false}`
	delete(rec.Secrets, "slipway:gitPassword")
	require.NoError(t, rec.Run(stacks.Deploy))
	assert.True(t, meshSpec(t, rec).NoPool)
	assert.Contains(t, rec.Resource(t, meshGate).Dependencies, rec.Resource(t, gate).URN)
}

func TestMesh_AFailedHandoverRegistersNoMeshGate(t *testing.T) {
	rec := inMesh(t)
	rec.OnResource = func(reg mocks.Registration) (resource.PropertyMap, error) {
		if reg.Name == handover {
			return nil, errors.New("no revision")
		}
		return answer(reg)
	}
	require.ErrorContains(t, rec.Run(stacks.Deploy), "no revision")
	assert.Empty(t, rec.Find(func(reg mocks.Registration) bool { return reg.Name == meshGate }))
}

func TestMesh_APreviewRegistersTheSameResources(t *testing.T) {
	preview, run := inMesh(t), inMesh(t)
	preview.DryRun = true
	require.NoError(t, preview.Run(stacks.Deploy))
	require.NoError(t, run.Run(stacks.Deploy))
	assert.Equal(t, run.Names(), preview.Names())
}
