package csi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/lab/ceph"
)

// mebibyte is the unit to which ceph-csi rounds sizes up.
const mebibyte = 1 << 20

// defaultSize is that of a volume without a size.
const defaultSize = 1 << 30

// imagePrefix is the first part of an image's name.
const imagePrefix = "csi-vol-"

// ControllerGetCapabilities implements the service Controller. Of what ceph-csi can do, snapshots and clones are left out.
func (d *Driver) ControllerGetCapabilities(
	context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, kind := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: kind}},
		})
	}
	return response, nil
}

// CreateVolume implements the service Controller.
func (d *Driver) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if err := validateCreate(r); err != nil {
		return nil, err
	}
	release, err := d.acquire(r.GetName())
	if err != nil {
		return nil, err
	}
	defer release()
	parameters := r.GetParameters()
	cluster, pool := parameters["clusterID"], parameters["pool"]
	session, err := d.connect(ctx, cluster, r.GetSecrets())
	if err != nil {
		return nil, err
	}
	bytes := roundUp(cmp.Or(r.GetCapacityRange().GetRequiredBytes(), defaultSize))
	prefix := cmp.Or(parameters["volumeNamePrefix"], imagePrefix)
	image, id, err := session.CreateImage(ctx, pool, r.GetName(), prefix, bytes)
	switch {
	case errors.Is(err, ceph.ErrNoPool):
		return nil, d.failure(fmt.Errorf("pool not found: pool (%s) not found in Ceph cluster", pool))
	case errors.Is(err, ceph.ErrDiffers):
		return nil, status.Errorf(codes.AlreadyExists, "volume with the same name (%s) but with different size already exists", r.GetName())
	case err != nil:
		return nil, d.failure(err)
	}
	volume := map[string]string{"imageName": image, "journalPool": pool}
	for key, value := range parameters {
		if !strings.HasPrefix(key, "csi.storage.k8s.io/") {
			volume[key] = value
		}
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: volumeID(cluster, id, strings.TrimPrefix(image, prefix)), CapacityBytes: bytes, VolumeContext: volume,
	}}, nil
}

// validateCreate checks a request as ceph-csi does.
func validateCreate(r *csi.CreateVolumeRequest) error {
	parameters := r.GetParameters()
	for _, check := range []struct {
		wrong bool
		text  string
	}{
		{r.GetName() == "", "volume Name cannot be empty"},
		{len(r.GetVolumeCapabilities()) == 0, "volume Capabilities cannot be empty"},
		{parameters["clusterID"] == "", "empty cluster ID to provision volume from"},
		{parameters["pool"] == "", "missing or empty pool name to provision volume from"},
	} {
		if check.wrong {
			return status.Error(codes.InvalidArgument, check.text)
		}
	}
	for _, capability := range r.GetVolumeCapabilities() {
		if capability.GetBlock() != nil {
			return status.Error(codes.Unimplemented, "the lab does not model raw block volumes")
		}
		if capability.GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER {
			return status.Error(codes.InvalidArgument, "multi node access modes are only supported on rbd `block` type volumes")
		}
	}
	if r.GetVolumeContentSource() != nil {
		return status.Error(codes.Unimplemented, "the lab does not model snapshots and clones")
	}
	return nil
}

// DeleteVolume implements the service Controller. A volume that does not exist was deleted before.
func (d *Driver) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	id := r.GetVolumeId()
	if id == "" {
		return nil, status.Error(codes.InvalidArgument, "empty volume ID in request")
	}
	release, err := d.acquire(id)
	if err != nil {
		return nil, err
	}
	defer release()
	session, pool, image, err := d.find(ctx, id, r.GetSecrets())
	if errors.Is(err, ceph.ErrNoPool) {
		return &csi.DeleteVolumeResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	switch err := session.DeleteImage(ctx, pool, image); {
	case err == nil, errors.Is(err, ceph.ErrNoImage), errors.Is(err, ceph.ErrNoPool):
		return &csi.DeleteVolumeResponse{}, nil
	case errors.Is(err, ceph.ErrWatched):
		return nil, status.Errorf(codes.Internal, "rbd %s is still being used", image)
	default:
		return nil, d.failure(err)
	}
}

// ControllerExpandVolume implements the service Controller.
func (d *Driver) ControllerExpandVolume(ctx context.Context, r *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse,
	error) {
	if r.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "volume ID cannot be empty")
	}
	session, pool, image, err := d.find(ctx, r.GetVolumeId(), r.GetSecrets())
	if err != nil {
		return nil, err
	}
	bytes := roundUp(r.GetCapacityRange().GetRequiredBytes())
	switch err := session.Resize(ctx, pool, image, bytes); {
	case errors.Is(err, ceph.ErrNoImage):
		return nil, status.Errorf(codes.NotFound, "volume ID %s not found", r.GetVolumeId())
	case err != nil:
		return nil, d.failure(err)
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: bytes, NodeExpansionRequired: true}, nil
}

// find connects to the cluster of a volume, and returns its pool and its image.
func (d *Driver) find(ctx context.Context, id string, secrets map[string]string) (s *ceph.Session, pool, image string, err error) {
	cluster, number, object, err := parseID(id)
	if err != nil {
		return nil, "", "", status.Error(codes.InvalidArgument, err.Error())
	}
	if s, err = d.connect(ctx, cluster, secrets); err != nil {
		return nil, "", "", err
	}
	pool, err = s.PoolName(number)
	return s, pool, imagePrefix + object, err
}

// volumeID is the id of a volume in ceph-csi's form: version, length of the cluster's id, that id, the pool's number, and the image's id.
func volumeID(cluster string, pool int, object string) string {
	return fmt.Sprintf("0001-%04x-%s-%016x-%s", len(cluster), cluster, pool, object)
}

// parseID reads a volume's id.
func parseID(id string) (cluster string, pool int, object string, err error) {
	wrong := fmt.Errorf("error validating volume ID (%s): invalid CSI identifier", id)
	const head, tail = len("0001-0000-"), len("-0000000000000000-")
	if len(id) < head || !strings.HasPrefix(id, "0001-") {
		return "", 0, "", wrong
	}
	length, err := strconv.ParseUint(id[5:9], 16, 16)
	if err != nil || len(id) < head+int(length)+tail {
		return "", 0, "", wrong
	}
	cluster, id = id[head:head+int(length)], id[head+int(length)+1:]
	number, err := strconv.ParseInt(id[:16], 16, 32)
	if err != nil {
		return "", 0, "", wrong
	}
	return cluster, int(number), id[17:], nil
}

// roundUp rounds a size up, as ceph-csi does: to whole gibibytes from one on, otherwise to mebibytes.
func roundUp(bytes int64) int64 {
	unit := int64(mebibyte)
	if bytes > defaultSize {
		unit = defaultSize
	}
	return (bytes + unit - 1) / unit * unit
}
