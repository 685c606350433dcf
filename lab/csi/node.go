package csi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/lab/ceph"
)

// NodeGetInfo implements the service Node.
func (d *Driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.Node}, nil
}

// NodeGetCapabilities implements the service Node. Of what ceph-csi can do, statistics, health and several writers are left out.
func (d *Driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	response := &csi.NodeGetCapabilitiesResponse{}
	for _, kind := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
	} {
		response.Capabilities = append(response.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: kind}},
		})
	}
	return response, nil
}

// NodeStageVolume implements the service Node: it maps the image, and mounts it below the staging path.
func (d *Driver) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	id, staging := r.GetVolumeId(), r.GetStagingTargetPath()
	switch {
	case r.GetVolumeCapability() == nil:
		return nil, status.Error(codes.InvalidArgument, "volume capability missing in request")
	case id == "":
		return nil, status.Error(codes.InvalidArgument, "volume ID missing in request")
	case staging == "":
		return nil, status.Error(codes.InvalidArgument, "staging target path missing in request")
	case len(r.GetSecrets()) == 0:
		return nil, status.Error(codes.InvalidArgument, "stage secrets cannot be nil or empty")
	}
	if _, err := os.Stat(staging); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "staging path %s does not exist on node", staging)
	}
	release, err := d.acquire(id)
	if err != nil {
		return nil, err
	}
	defer release()
	mount := filepath.Join(staging, id)
	if _, err := os.Lstat(mount); err == nil {
		return &csi.NodeStageVolumeResponse{}, nil
	}
	session, pool, image, err := d.find(ctx, id, r.GetSecrets())
	if errors.Is(err, ceph.ErrNoPool) {
		return nil, d.failure(err)
	}
	if err != nil {
		return nil, err
	}
	device, err := session.Map(ctx, pool, image, d.client(), false)
	switch {
	case errors.Is(err, ceph.ErrWatched):
		return nil, status.Errorf(codes.Internal, "rbd image %s/%s is still being used", pool, image)
	case errors.Is(err, ceph.ErrNoImage):
		return nil, d.failure(fmt.Errorf("image not found: RBD image not found"))
	case errors.Is(err, ceph.ErrKeyType):
		return nil, d.failure(fmt.Errorf("rbd: map failed with error an error (exit status 1) occurred while running rbd args: "+
			"[--id %s map %s/%s], rbd error output: rbd: failed to add secret to kernel: %w", r.GetSecrets()["userID"], pool, image, err))
	case err != nil:
		return nil, d.failure(err)
	}
	if err := os.Symlink(device, mount); err != nil {
		d.Ceph.Unmap(d.client(), device)
		return nil, d.failure(err)
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// NodeUnstageVolume implements the service Node.
func (d *Driver) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	id, staging := r.GetVolumeId(), r.GetStagingTargetPath()
	switch {
	case id == "":
		return nil, status.Error(codes.InvalidArgument, "volume ID missing in request")
	case staging == "":
		return nil, status.Error(codes.InvalidArgument, "staging target path missing in request")
	}
	release, err := d.acquire(id)
	if err != nil {
		return nil, err
	}
	defer release()
	mount := filepath.Join(staging, id)
	device, err := os.Readlink(mount)
	if os.IsNotExist(err) {
		return &csi.NodeUnstageVolumeResponse{}, nil
	}
	if err := errors.Join(err, remove(mount)); err != nil {
		return nil, d.failure(err)
	}
	d.Ceph.Unmap(d.client(), device)
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume implements the service Node: it mounts a staged volume at the target path.
func (d *Driver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	id, target := r.GetVolumeId(), r.GetTargetPath()
	switch {
	case r.GetVolumeCapability() == nil:
		return nil, status.Error(codes.InvalidArgument, "volume capability missing in request")
	case id == "":
		return nil, status.Error(codes.InvalidArgument, "volume ID missing in request")
	case target == "":
		return nil, status.Error(codes.InvalidArgument, "target path missing in request")
	case r.GetStagingTargetPath() == "":
		return nil, status.Error(codes.InvalidArgument, "staging target path missing in request")
	}
	if _, err := os.Lstat(target); err == nil {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	device, err := os.Readlink(filepath.Join(r.GetStagingTargetPath(), id))
	if err != nil {
		return nil, d.failure(fmt.Errorf("mount failed: special device %s does not exist", filepath.Join(r.GetStagingTargetPath(), id)))
	}
	if err := os.Symlink(device, target); err != nil {
		return nil, d.failure(err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume implements the service Node.
func (d *Driver) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	switch {
	case r.GetVolumeId() == "":
		return nil, status.Error(codes.InvalidArgument, "volume ID missing in request")
	case r.GetTargetPath() == "":
		return nil, status.Error(codes.InvalidArgument, "target path missing in request")
	}
	if err := remove(r.GetTargetPath()); err != nil {
		return nil, d.failure(err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeExpandVolume implements the service Node. The file system has no size of its own.
func (d *Driver) NodeExpandVolume(_ context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if r.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "volume ID must be provided")
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: r.GetCapacityRange().GetRequiredBytes()}, nil
}

// remove removes a mount. One that is gone was removed before.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}
