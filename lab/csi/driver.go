// Package csi simulates the RBD driver of ceph-csi on the simulated Ceph of package ceph: a gRPC server with the services Identity,
// Controller and Node of the Container Storage Interface. The real csi-provisioner and the simulated kubelets are its clients.
//
// Errors have ceph-csi's codes and texts. A mounted volume is a link to the folder with the volume's files. Not modelled: file systems and
// their sizes, raw block volumes, snapshots, clones, encryption, topology, read-only mounts, statistics and health of volumes.
package csi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/slipway-platform/slipway/lab/ceph"
)

// Driver is a run of the driver in one container: the provisioner's, or a node's.
type Driver struct {
	Name    string // such as rook-ceph.rbd.csi.ceph.com
	Version string
	Cluster string // the Kubernetes cluster in which it runs
	Node    string // the node, whose name is its id; the driver has a node's services unless Controller is set
	// Controller says that the driver serves the provisioner's pod.
	Controller bool
	Ceph       *ceph.World
	// Config returns the addresses of the monitors of a cluster id, and its RADOS namespace, from the configuration that the container mounts.
	Config func(ctx context.Context, clusterID string) (monitors []string, namespace string, err error)

	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer

	mu   sync.Mutex
	busy map[string]bool // volumes with an operation
}

// client is the name under which the driver's node maps images. Nodes of several clusters may have the same name.
func (d *Driver) client() string { return d.Cluster + "/" + d.Node }

// NodeDown tells Ceph that the driver's node was switched off: nothing is mapped there any more.
func (d *Driver) NodeDown() { d.Ceph.Forget(d.client()) }

// Socket returns a path for the socket of a pod, which is the same each time. The path of a socket has at most 107 bytes, which a pod's
// folder may have already.
func Socket(podUID string) string {
	sum := sha256.Sum256([]byte(podUID))
	return filepath.Join(os.TempDir(), fmt.Sprintf("csi-%d-%x", os.Getpid(), sum[:6]), "csi.sock")
}

// Serve serves the driver on a socket until ctx ends. The socket's folder is made, and removed at the end.
func (d *Driver) Serve(ctx context.Context, socket string) error {
	dir := filepath.Dir(socket)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, d)
	if d.Controller {
		csi.RegisterControllerServer(server, d)
	} else {
		csi.RegisterNodeServer(server, d)
	}
	go func() { _ = server.Serve(listener) }()
	go func() {
		<-ctx.Done()
		server.Stop()
		_ = os.RemoveAll(dir)
	}()
	return nil
}

// GetPluginInfo implements the service Identity.
func (d *Driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.Name, VendorVersion: d.Version}, nil
}

// Probe implements the service Identity.
func (d *Driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

// GetPluginCapabilities implements the service Identity.
func (d *Driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	response := &csi.GetPluginCapabilitiesResponse{}
	if d.Controller {
		response.Capabilities = append(response.Capabilities, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{
			Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE},
		}})
	}
	response.Capabilities = append(response.Capabilities, &csi.PluginCapability{Type: &csi.PluginCapability_VolumeExpansion_{
		VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_ONLINE},
	}})
	return response, nil
}

// acquire reserves the volumes for an operation, as ceph-csi does: another one must wait.
func (d *Driver) acquire(volume string) (release func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy[volume] {
		return nil, status.Errorf(codes.Aborted, operationExists, volume)
	}
	if d.busy == nil {
		d.busy = map[string]bool{}
	}
	d.busy[volume] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.busy, volume)
	}, nil
}

// operationExists is ceph-csi's error of a volume with another operation.
const operationExists = "an operation with the given Volume ID %s already exists"

// connect connects to the cluster with the id, with the user of the request's secrets.
func (d *Driver) connect(ctx context.Context, clusterID string, secrets map[string]string) (*ceph.Session, error) {
	user, key := secrets["userID"], secrets["userKey"]
	switch {
	case len(secrets) == 0:
		return nil, status.Error(codes.InvalidArgument, "provided secret is empty")
	case user == "":
		return nil, status.Error(codes.InvalidArgument, "missing ID field 'userID' in secrets")
	case key == "":
		return nil, status.Error(codes.InvalidArgument, "missing key field 'userKey' in secrets")
	}
	monitors, namespace, err := d.Config(ctx, clusterID)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "failed to fetch monitor list using clusterID (%s): %v", clusterID, err)
	}
	session, err := d.Ceph.Connect(ctx, monitors, "client."+user, key)
	if err != nil {
		return nil, d.failure(fmt.Errorf("failed to get connection: connecting failed: %w", err))
	}
	return session.In(namespace), nil
}

// failure is the error of a call that Ceph did not answer as wanted. Once the caller has given up, gRPC answers for itself.
func (d *Driver) failure(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.Internal, err.Error())
}
