package csi

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/lab/ceph"
)

const monitor = "10.25.11.21:3300"

// fixture is a provisioner's driver, and those of two nodes, on a Ceph cluster with one monitor.
type fixture struct {
	cluster    *ceph.Cluster
	ceph       *ceph.World
	secrets    map[string]string
	controller csi.ControllerClient
	nodes      map[string]csi.NodeClient
	dir        string
}

func start(t *testing.T) *fixture {
	f := &fixture{ceph: &ceph.World{Dir: t.TempDir()}, nodes: map[string]csi.NodeClient{}, dir: t.TempDir()}
	c := f.ceph.Create(ceph.ParseVersion("v19.2.7"))
	c.SetMembers([]string{"a"})
	t.Cleanup(c.StartMonitor("a", monitor))
	stop, err := c.StartOSD(c.CreateOSD("w1", "w1"), "w1")
	require.NoError(t, err)
	t.Cleanup(stop)
	c.SetPool("block", 1)
	f.cluster = c
	f.secrets = map[string]string{"userID": "csi", "userKey": c.SetUser("client.csi",
		map[string]string{"mon": "profile rbd", "osd": "profile rbd"}, ceph.AES)}
	f.controller = csi.NewControllerClient(f.serve(t, "provisioner", true))
	for _, node := range []string{"w1", "w2"} {
		f.nodes[node] = csi.NewNodeClient(f.serve(t, node, false))
	}
	return f
}

func (f *fixture) serve(t *testing.T, node string, controller bool) *grpc.ClientConn {
	d := &Driver{Name: "rook-ceph.rbd.csi.ceph.com", Version: "v3.17.0", Cluster: "infra", Node: node, Controller: controller, Ceph: f.ceph,
		Config: func(_ context.Context, id string) ([]string, string, error) {
			namespace, known := map[string]string{"rook-ceph": "", "apps": "apps"}[id]
			if !known {
				return nil, "", os.ErrNotExist
			}
			return []string{monitor}, namespace, nil
		}}
	socket := Socket(t.Name() + node)
	require.NoError(t, d.Serve(t.Context(), socket))
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

var mounted = &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}

func (f *fixture) request(name string) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{Name: name, VolumeCapabilities: []*csi.VolumeCapability{mounted}, Secrets: f.secrets,
		CapacityRange: &csi.CapacityRange{RequiredBytes: 1<<30 + 1}, Parameters: map[string]string{"clusterID": "rook-ceph", "pool": "block"}}
}

// code checks a call's code and the text of its error.
func code(t *testing.T, err error, want codes.Code, text string) {
	t.Helper()
	assert.Equal(t, want, status.Code(err), err)
	assert.Contains(t, status.Convert(err).Message(), text)
}

func TestCreateVolume_IsIdempotentAndRoundsTheSizeUp(t *testing.T) {
	f := start(t)
	first, err := f.controller.CreateVolume(t.Context(), f.request("pvc-1"))
	require.NoError(t, err)
	assert.Regexp(t, `^0001-0009-rook-ceph-0000000000000001-[0-9a-f-]{36}$`, first.Volume.VolumeId)
	assert.EqualValues(t, 2<<30, first.Volume.CapacityBytes)
	again, err := f.controller.CreateVolume(t.Context(), f.request("pvc-1"))
	require.NoError(t, err)
	assert.Equal(t, first.Volume.VolumeId, again.Volume.VolumeId)
	larger := f.request("pvc-1")
	larger.CapacityRange.RequiredBytes = 5 << 30
	_, err = f.controller.CreateVolume(t.Context(), larger)
	code(t, err, codes.AlreadyExists, "different size")
	for range 2 {
		_, err = f.controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: first.Volume.VolumeId, Secrets: f.secrets})
		require.NoError(t, err, "a volume that does not exist was deleted before")
	}
}

func TestCreateVolume_SaysWhatIsWrong(t *testing.T) {
	f := start(t)
	for name, one := range map[string]struct {
		change func(*csi.CreateVolumeRequest)
		code   codes.Code
		text   string
	}{
		"no name": {func(r *csi.CreateVolumeRequest) { r.Name = "" }, codes.InvalidArgument, "volume Name cannot be empty"},
		"no capability": {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities = nil }, codes.InvalidArgument,
			"volume Capabilities cannot be empty"},
		"no cluster": {func(r *csi.CreateVolumeRequest) { delete(r.Parameters, "clusterID") }, codes.InvalidArgument, "empty cluster ID"},
		"no pool": {func(r *csi.CreateVolumeRequest) { delete(r.Parameters, "pool") }, codes.InvalidArgument,
			"missing or empty pool name"},
		"other cluster": {func(r *csi.CreateVolumeRequest) { r.Parameters["clusterID"] = "other" }, codes.InvalidArgument,
			"failed to fetch monitor list"},
		"other pool": {func(r *csi.CreateVolumeRequest) { r.Parameters["pool"] = "other" }, codes.Internal, "pool not found"},
		"no secret":  {func(r *csi.CreateVolumeRequest) { r.Secrets = nil }, codes.InvalidArgument, "provided secret is empty"},
		"no key": {func(r *csi.CreateVolumeRequest) { r.Secrets = map[string]string{"userID": "csi"} }, codes.InvalidArgument,
			"missing key field 'userKey'"},
		"a wrong key": {func(r *csi.CreateVolumeRequest) { r.Secrets = map[string]string{"userID": "csi", "userKey": "x"} }, codes.Internal,
			"ret=-13, Permission denied"},
		"several nodes": {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities = []*csi.VolumeCapability{shared()} }, codes.InvalidArgument,
			"multi node"},
		"a deadline hit": {func(r *csi.CreateVolumeRequest) { f.ceph.Find(f.fsid(t)).SetMembers([]string{"a", "b"}) }, codes.DeadlineExceeded,
			""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			r := f.request("pvc-1")
			r.Parameters = map[string]string{"clusterID": "rook-ceph", "pool": "block"}
			one.change(r)
			_, err := f.controller.CreateVolume(ctx, r)
			code(t, err, one.code, one.text)
			f.ceph.Find(f.fsid(t)).SetMembers([]string{"a"})
		})
	}
}

func (f *fixture) fsid(t *testing.T) string {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if s, err := f.ceph.Connect(ctx, []string{monitor}, "client.csi", f.secrets["userKey"]); err == nil {
		f.secrets["fsid"] = s.FSID()
	}
	return f.secrets["fsid"]
}

func shared() *csi.VolumeCapability {
	return &csi.VolumeCapability{AccessType: mounted.AccessType,
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER}}
}

func TestNode_WhatOneNodeWritesTheNextOneReads(t *testing.T) {
	f := start(t)
	made, err := f.controller.CreateVolume(t.Context(), f.request("pvc-1"))
	require.NoError(t, err)
	id := made.Volume.VolumeId
	staging := filepath.Join(f.dir, "staging")
	_, err = f.nodes["w1"].NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: staging,
		VolumeCapability: mounted, Secrets: f.secrets})
	code(t, err, codes.InvalidArgument, "does not exist on node")
	require.NoError(t, os.Mkdir(staging, 0o700))
	target := filepath.Join(f.dir, "target")
	publish := &csi.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: staging, TargetPath: target, VolumeCapability: mounted}
	_, err = f.nodes["w1"].NodePublishVolume(t.Context(), publish)
	code(t, err, codes.Internal, "does not exist")

	stage := &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: staging, VolumeCapability: mounted, Secrets: f.secrets}
	for range 2 {
		_, err = f.nodes["w1"].NodeStageVolume(t.Context(), stage)
		require.NoError(t, err)
		_, err = f.nodes["w1"].NodePublishVolume(t.Context(), publish)
		require.NoError(t, err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(target, "word"), []byte("slipway"), 0o600))
	other := filepath.Join(f.dir, "other")
	require.NoError(t, os.Mkdir(other, 0o700))
	elsewhere := &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: other, VolumeCapability: mounted, Secrets: f.secrets}
	_, err = f.nodes["w2"].NodeStageVolume(t.Context(), elsewhere)
	code(t, err, codes.Internal, "is still being used")
	_, err = f.controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id, Secrets: f.secrets})
	code(t, err, codes.Internal, "is still being used")

	for range 2 {
		_, err = f.nodes["w1"].NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target})
		require.NoError(t, err)
		_, err = f.nodes["w1"].NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging})
		require.NoError(t, err)
	}
	_, err = f.nodes["w2"].NodeStageVolume(t.Context(), elsewhere)
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(other, id, "word"))
	require.NoError(t, err)
	assert.Equal(t, "slipway", string(content))
}

func TestCreateVolume_OfAConsumerOfItsOwnIsInItsNamespace(t *testing.T) {
	f := start(t)
	shared, err := f.controller.CreateVolume(t.Context(), f.request("pvc-1"))
	require.NoError(t, err)
	f.secrets = map[string]string{"userID": "apps", "userKey": f.cluster.SetUser("client.apps",
		map[string]string{"mon": "profile rbd", "osd": "profile rbd pool=block namespace=apps"}, ceph.AES)}
	_, err = f.controller.CreateVolume(t.Context(), f.request("pvc-1"))
	require.ErrorContains(t, err, ceph.ErrCaps.Error(), "its user may not use the pool without the namespace")
	r := f.request("pvc-1")
	r.Parameters["clusterID"] = "apps"
	_, err = f.controller.CreateVolume(t.Context(), r)
	require.ErrorContains(t, err, ceph.ErrNoSpace.Error())
	require.True(t, f.cluster.AddNamespace("block", "apps"))
	own, err := f.controller.CreateVolume(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, 2, f.cluster.Images(), "the same name is that of another volume there")
	_, err = f.controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: shared.Volume.VolumeId, Secrets: f.secrets})
	require.ErrorContains(t, err, ceph.ErrCaps.Error())
	require.Equal(t, 1, f.cluster.RemoveNamespace("block", "apps"), "it has a volume")
	_, err = f.controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: own.Volume.VolumeId, Secrets: f.secrets})
	require.NoError(t, err)
	require.Zero(t, f.cluster.RemoveNamespace("block", "apps"))
	require.Equal(t, 1, f.cluster.Images())
	f.cluster.RemoveUser("client.apps")
	_, err = f.controller.CreateVolume(t.Context(), r)
	require.ErrorContains(t, err, ceph.ErrDenied.Error(), "it was shut out")
}

// A volume stays where it was made, and its node mounts it with the keys that the Secret has now. ceph-csi takes the namespace from the
// configuration of the cluster id in the volume's id, and reads the image's name there (generateVolumeFromVolumeID in
// internal/rbd/rbd_util.go).
func TestNodeStage_AVolumeThatExistsIsLostToTheUserOfAnotherNamespace(t *testing.T) {
	f := start(t)
	volume, err := f.controller.CreateVolume(t.Context(), f.request("pvc-1"))
	require.NoError(t, err)
	require.True(t, f.cluster.AddNamespace("block", "apps"))
	former, own := f.secrets, map[string]string{"userID": "apps", "userKey": f.cluster.SetUser("client.apps",
		map[string]string{"mon": "profile rbd", "osd": "profile rbd pool=block namespace=apps"}, ceph.AES)}
	stage := func(secrets map[string]string) error {
		_, err := f.nodes["w1"].NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: volume.Volume.VolumeId,
			StagingTargetPath: f.dir, VolumeCapability: mounted, Secrets: secrets})
		return err
	}
	code(t, stage(own), codes.Internal, ceph.ErrCaps.Error())
	require.NoError(t, stage(former), "with the former user, it is there again")
}
