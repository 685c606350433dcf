package graph

import (
	"errors"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health/storage"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/stacks"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const storageGate = "storage-probe"

// withClass returns a recorder for infra with a StorageClass that a gate verifies.
func withClass(t *testing.T) *mocks.Recorder {
	t.Helper()
	rec := newRecorder(t, "infra")
	rec.Config["slipway:storage"] = `{"role":"provider","vault":"storage","classes":["ceph-block"],` +
		`"drivers":["rook-ceph.cephfs.csi.ceph.com"]}`
	return rec
}

func TestStorage_WithoutClassesAndDriversThereIsNoGate(t *testing.T) {
	rec := withClass(t)
	rec.Config["slipway:storage"] = `{"role":"provider","vault":"storage"}`
	require.NoError(t, rec.Run(stacks.Deploy))
	assert.Empty(t, rec.Find(func(reg mocks.Registration) bool { return reg.Name == storageGate }))
}

func TestStorage_TheGateComesAfterTheHandoverAndKnowsWhatIsDeclared(t *testing.T) {
	rec := withClass(t)
	require.NoError(t, rec.Run(stacks.Deploy))
	last := rec.Resource(t, storageGate)
	for _, earlier := range []string{handover, gate} {
		assert.Contains(t, last.Dependencies, rec.Resource(t, earlier).URN, "a direct edge, not only through other resources")
	}
	assert.Equal(t, rec.Resource(t, kubernetes).URN, last.RPC.GetDeletedWith())
	assert.Equal(t, probe.Program+" storage", last.Input("create"))
	assert.Contains(t, last.AdditionalSecretOutputs, "stdin")

	spec := new(storage.Spec)
	require.NoError(t, probe.Read(strings.NewReader(last.Input("stdin").(string)), spec))
	assert.Contains(t, spec.Kubeconfig, keyMaterial)
	assert.Equal(t, []string{"ceph-block"}, spec.Classes)
	assert.Equal(t, []string{"rook-ceph.cephfs.csi.ceph.com"}, spec.Drivers)
	assert.Equal(t, []string{"infra-worker-1", "infra-worker-2"}, spec.Nodes, "the nodes that take ordinary pods")
}

func TestStorage_AFailedHandoverRegistersNoStorageGate(t *testing.T) {
	rec := withClass(t)
	rec.OnResource = func(reg mocks.Registration) (resource.PropertyMap, error) {
		if reg.Name == handover {
			return nil, errors.New("no revision")
		}
		return answer(reg)
	}
	require.ErrorContains(t, rec.Run(stacks.Deploy), "no revision")
	assert.Empty(t, rec.Find(func(reg mocks.Registration) bool { return reg.Name == storageGate }))
}
