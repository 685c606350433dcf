package talos

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"filippo.io/age"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/bootstrap"
	"github.com/slipway-platform/slipway/internal/nodes/snapshot"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/fakes/snapshottest"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// bootstrapSpec returns the spec of the bootstrap step.
func bootstrapSpec(t *testing.T, r *mocks.Recorder) (spec bootstrap.Spec) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(r.Resource(t, "infra-bootstrap").Input("stdin").(string)), &spec))
	return spec
}

func TestTalosCluster_TellsALaterBootstrapThatTheClusterExisted(t *testing.T) {
	boot := up(t).Resource(t, "infra-bootstrap")
	assert.Equal(t, probe.Program+" bootstrap", boot.Input("create"))
	assert.Equal(t, probe.Program+" bootstrap --existed", boot.Input("update"))
	assert.Empty(t, boot.RPC.GetReplaceWith(), "a replacement would run as on a new cluster")
	assert.Nil(t, boot.Input("triggers"), "a changed trigger replaces the command")
}

// withUUIDs answers as the provider does, which makes a UUID for each VM that it creates.
func withUUIDs(recorder *mocks.Recorder) *mocks.Recorder {
	other := recorder.OnResource
	recorder.OnResource = func(r mocks.Registration) (resource.PropertyMap, error) {
		if r.Type == typeVM {
			return resource.NewPropertyMapFromMap(map[string]any{"smbios": map[string]any{"family": "Slipway", "uuid": "uuid of " + r.Name}}), nil
		}
		return other(r)
	}
	return recorder
}

func TestTalosCluster_TellsAVMFromItsPredecessorByItsUUID(t *testing.T) {
	recorder := withUUIDs(answers(&mocks.Recorder{}))
	require.NoError(t, recorder.Run(program(arguments(t), nil)))
	assert.Equal(t, []string{"uuid of infra-infra-cp-1-vm", "uuid of infra-infra-cp-2-vm", "uuid of infra-infra-cp-3-vm"},
		bootstrapSpec(t, recorder).Machines)
	for _, node := range allMachines(t) {
		vm, apply := recorder.Resource(t, "infra-"+node.Name+"-vm"), recorder.Resource(t, "infra-"+node.Name+"-apply")
		assert.Equal(t, "Slipway", vm.Input("smbios.family"))
		assert.Contains(t, vm.IgnoreChanges, "smbios", "the provider cannot change it")
		assert.Equal(t, []string{vm.URN}, apply.RPC.GetReplaceWith())
		assert.Contains(t, apply.RPC.GetReplacementTrigger().String(), "uuid of "+vm.Name,
			"a VM that a refresh has removed is created, not replaced")
	}
}

func TestTalosCluster_KnowsNoUUIDOfAnOlderVM(t *testing.T) {
	assert.Equal(t, []string{"", "", ""}, bootstrapSpec(t, up(t)).Machines)
}

func TestTalosCluster_GivesTheDeclaredSnapshotToTheBootstrap(t *testing.T) {
	assert.Equal(t, bootstrap.Recovery{Folder: "snapshots"}, bootstrapSpec(t, up(t)).Recovery)

	t.Setenv("XDG_STATE_HOME", t.TempDir())
	folder, err := snapshot.Folder("snapshots")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(folder, 0o700))
	_, err = snapshot.Save(bytes.NewReader(snapshottest.New(t, snapshottest.Node("infra-cp-2"))), filepath.Join(folder, "infra.db"), nil)
	require.NoError(t, err)
	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	recovery := bootstrapSpec(t, up(t, func(c *cluster.Cluster) {
		c.Lifecycle.Snapshots.RecoverFrom = "infra.db"
		c.SnapshotIdentity = cluster.NewSecret(identity.String())
	})).Recovery
	assert.Equal(t, bootstrap.Recovery{
		Folder: "snapshots", From: "infra.db", Identity: identity.String(), Key: keyMaterial,
		Nodes: []string{"infra-cp-1", "infra-cp-2", "infra-cp-3", "infra-worker-1", "infra-worker-2"},
	}, recovery)

	recovery = bootstrapSpec(t, up(t, func(c *cluster.Cluster) { c.Lifecycle.Snapshots.RecoverFrom = cluster.RecoverNothing })).Recovery
	assert.Equal(t, bootstrap.Recovery{Folder: "snapshots", From: "none"}, recovery)
}

func TestTalosCluster_RefusesASnapshotThatCannotBeRestoredBeforeItRegistersAnything(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	path := filepath.Join(t.TempDir(), "apps.db")
	_, err := snapshot.Save(bytes.NewReader(snapshottest.New(t, snapshottest.Node("apps-cp-1"))), path, nil)
	require.NoError(t, err)
	for from, want := range map[string]string{
		path:         "apps.db cannot be restored: it is of another cluster: its nodes are apps-cp-1; declare a snapshot that can be restored",
		"missing.db": "no such file or directory; put the file there, or remove the key",
	} {
		recorder := answers(&mocks.Recorder{})
		err := recorder.Run(program(arguments(t, func(c *cluster.Cluster) { c.Lifecycle.Snapshots.RecoverFrom = from }), nil))
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "lifecycle.snapshots.recoverFrom: ")
		assert.Empty(t, recorder.OfType(typeSecrets))
	}
}
