// Package cosi holds the COSI resources of a simulated Talos node and serves them to clients.
package cosi

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/resource/protobuf"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	cosiserver "github.com/cosi-project/runtime/pkg/state/protobuf/server"
	"github.com/cosi-project/runtime/pkg/state/registry"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	clusterres "github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/resources/secrets"
	timeres "github.com/siderolabs/talos/pkg/machinery/resources/time"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/lab/talos/rbac"
)

// Resources are the COSI resources of a node, which `talosctl get` reads.
type Resources struct {
	ctx   context.Context
	state state.State
	mu    sync.Mutex // one writer at a time
}

// modelled are the resource types that clients may read. A type that nothing publishes has an empty list.
var modelled = []meta.ResourceWithRD{
	&block.Disk{}, &block.SystemDisk{}, &block.VolumeStatus{}, &block.VolumeMountStatus{}, &block.MountStatus{}, &block.DiscoveredVolume{},
	&clusterres.Affiliate{}, &clusterres.Identity{}, &clusterres.Info{}, &clusterres.Member{},
	&config.MachineConfig{}, &config.MachineType{}, &etcd.Member{}, &etcd.PKIStatus{}, &hardware.SystemInformation{},
	&k8s.APIServerConfig{}, &k8s.ControllerManagerConfig{}, &k8s.SchedulerConfig{}, &k8s.BootstrapManifestsConfig{}, &k8s.KubeletSpec{},
	&k8s.Manifest{}, &k8s.NodeIP{}, &k8s.Nodename{}, &k8s.NodeStatus{}, &k8s.StaticPod{}, &k8s.StaticPodStatus{},
	&network.AddressStatus{}, &network.HostnameStatus{}, &network.LinkStatus{}, &network.NodeAddress{},
	&network.ResolverStatus{}, &network.RouteStatus{}, &network.Status{},
	&runtime.Diagnostic{}, &runtime.ExtensionStatus{}, &runtime.KernelParamSpec{}, &runtime.KernelParamStatus{}, &runtime.MachineStatus{},
	&runtime.MountStatus{}, &runtime.PlatformMetadata{},
	&runtime.BootedEntry{}, &runtime.SecurityState{}, &runtime.Version{},
	&secrets.Etcd{}, &secrets.EtcdRoot{}, &secrets.KubernetesRoot{}, &secrets.OSRoot{},
	&timeres.Status{}, &v1alpha1.Service{},
}

// New returns an empty state with the modelled resource types. It can be changed until ctx ends.
func New(ctx context.Context) *Resources {
	r := &Resources{ctx: ctx, state: state.WrapCore(namespaced.NewState(inmem.Build))}
	spaces := registry.NewNamespaceRegistry(r.state)
	types := registry.NewResourceRegistry(r.state)
	err := spaces.RegisterDefault(ctx)
	if err == nil {
		err = types.RegisterDefault(ctx)
	}
	for _, ns := range []resource.Namespace{
		v1alpha1.NamespaceName, clusterres.NamespaceName, clusterres.RawNamespaceName, config.NamespaceName, etcd.NamespaceName,
		hardware.NamespaceName, k8s.NamespaceName, k8s.ControlPlaneNamespaceName, network.NamespaceName, network.ConfigNamespaceName,
		secrets.NamespaceName,
	} {
		if err == nil {
			err = spaces.Register(ctx, ns, ns)
		}
	}
	for _, t := range modelled {
		if err == nil {
			err = types.Register(ctx, t)
		}
	}
	if err != nil && ctx.Err() == nil {
		// The state is new and in memory, so only an error in the lists above causes this.
		panic(fmt.Sprintf("talos: resource registry: %v", err))
	}
	return r
}

// State returns the state itself.
func (r *Resources) State() state.State { return r.state }

// Server serves the state under Talos's access policy: read only, known types, secrets for admins only.
func (r *Resources) Server() *cosiserver.State {
	return cosiserver.NewState(state.Filter(r.state, r.access))
}

func (r *Resources) access(ctx context.Context, access state.Access) error {
	if !access.Verb.Readonly() {
		return status.Error(codes.PermissionDenied, "write access is not allowed")
	}
	rd, err := safe.StateGet[*meta.ResourceDefinition](ctx, r.state,
		resource.NewMetadata(meta.NamespaceName, meta.ResourceDefinitionType, strings.ToLower(access.ResourceType), resource.VersionUndefined))
	if state.IsNotFoundError(err) {
		return status.Errorf(codes.PermissionDenied, "resource type %q is not supported", access.ResourceType)
	}
	if err != nil {
		return err
	}
	if rd.TypedSpec().Sensitivity == meta.Sensitive && !rbac.Roles(ctx).Includes(role.Admin) {
		return rbac.ErrNotAuthorized
	}
	_, err = r.state.Get(ctx, resource.NewMetadata(meta.NamespaceName, meta.NamespaceType, access.ResourceNamespace,
		resource.VersionUndefined))
	if state.IsNotFoundError(err) {
		return status.Errorf(codes.PermissionDenied, "namespace %q is not supported", access.ResourceNamespace)
	}
	return err
}

// Put creates or replaces a resource. It does not write an equal one, so that watches see changes only.
func (r *Resources) Put(res resource.Resource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	current, err := r.state.Get(r.ctx, res.Metadata())
	switch {
	case state.IsNotFoundError(err):
		_ = r.state.Create(r.ctx, res) // fails only when the boot ends
	case err == nil && !sameSpec(current, res):
		res.Metadata().SetVersion(current.Metadata().Version())
		_ = r.state.Update(r.ctx, res)
	}
}

// sameSpec tells whether the specifications of two resources have the same protobuf form, which is what clients see.
func sameSpec(a, b resource.Resource) bool {
	if reflect.DeepEqual(a.Spec(), b.Spec()) {
		return true // the protobuf form of a map differs each time
	}
	pa, errA := protobuf.FromResource(a)
	pb, errB := protobuf.FromResource(b)
	if errA != nil || errB != nil {
		return false
	}
	ma, errA := pa.Marshal()
	mb, errB := pb.Marshal()
	return errA == nil && errB == nil && bytes.Equal(ma.GetSpec().GetProtoSpec(), mb.GetSpec().GetProtoSpec())
}

// Remove removes a resource, if there is one.
func (r *Resources) Remove(p resource.Pointer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.state.Destroy(r.ctx, p) // an error means that there is none
}

// Changes tells whether Put would write the resource.
func (r *Resources) Changes(res resource.Resource) bool {
	current, err := r.state.Get(r.ctx, res.Metadata())
	return err != nil || !sameSpec(current, res)
}
