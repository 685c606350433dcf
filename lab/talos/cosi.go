package talos

import (
	"bytes"
	"context"
	"fmt"
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
)

// resources is a node's COSI state: what `talosctl get` reads.
type resources struct {
	ctx   context.Context
	state state.State
	mu    sync.Mutex // one writer at a time
}

// modelled are the resource types that clients may ask for; those that nothing publishes are empty lists.
var modelled = []meta.ResourceWithRD{
	&block.Disk{}, &block.SystemDisk{}, &block.VolumeStatus{}, &block.VolumeMountStatus{}, &block.DiscoveredVolume{},
	&clusterres.Affiliate{}, &clusterres.Identity{}, &clusterres.Info{}, &clusterres.Member{},
	&config.MachineConfig{}, &config.MachineType{}, &etcd.Member{}, &hardware.SystemInformation{},
	&k8s.ControllerManagerConfig{}, &k8s.KubeletSpec{}, &k8s.NodeIP{}, &k8s.Nodename{}, &k8s.NodeStatus{}, &k8s.StaticPodStatus{},
	&network.AddressStatus{}, &network.HostnameStatus{}, &network.LinkStatus{}, &network.NodeAddress{},
	&network.ResolverStatus{}, &network.RouteStatus{}, &network.Status{},
	&runtime.Diagnostic{}, &runtime.ExtensionStatus{}, &runtime.MachineStatus{}, &runtime.PlatformMetadata{},
	&runtime.SecurityState{}, &runtime.Version{},
	&secrets.KubernetesRoot{}, &secrets.OSRoot{},
	&timeres.Status{}, &v1alpha1.Service{},
}

func newResources(ctx context.Context) *resources {
	r := &resources{ctx: ctx, state: state.WrapCore(namespaced.NewState(inmem.Build))}
	spaces := registry.NewNamespaceRegistry(r.state)
	types := registry.NewResourceRegistry(r.state)
	err := spaces.RegisterDefault(ctx)
	if err == nil {
		err = types.RegisterDefault(ctx)
	}
	for _, ns := range []resource.Namespace{
		v1alpha1.NamespaceName, clusterres.NamespaceName, clusterres.RawNamespaceName, config.NamespaceName, etcd.NamespaceName,
		hardware.NamespaceName, k8s.NamespaceName, k8s.ControlPlaneNamespaceName, network.NamespaceName, network.ConfigNamespaceName, secrets.NamespaceName,
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
		// The state is new and in memory: only an error in the lists above can get here.
		panic(fmt.Sprintf("talos: resource registry: %v", err))
	}
	return r
}

// server gives clients the state as Talos's access policy does: read only, known types, secrets for admins.
func (r *resources) server() *cosiserver.State {
	return cosiserver.NewState(state.Filter(r.state, r.access))
}

func (r *resources) access(ctx context.Context, access state.Access) error {
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
	if rd.TypedSpec().Sensitivity == meta.Sensitive && !rolesOf(ctx).Includes(role.Admin) {
		return errNotAuthorized
	}
	_, err = r.state.Get(ctx, resource.NewMetadata(meta.NamespaceName, meta.NamespaceType, access.ResourceNamespace, resource.VersionUndefined))
	if state.IsNotFoundError(err) {
		return status.Errorf(codes.PermissionDenied, "namespace %q is not supported", access.ResourceNamespace)
	}
	return err
}

// put creates or replaces a resource; one that is equal is left alone, so that watches see changes only.
func (r *resources) put(res resource.Resource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	current, err := r.state.Get(r.ctx, res.Metadata())
	switch {
	case state.IsNotFoundError(err):
		_ = r.state.Create(r.ctx, res) // it can only fail when the boot ends
	case err == nil && !sameSpec(current, res):
		res.Metadata().SetVersion(current.Metadata().Version())
		_ = r.state.Update(r.ctx, res)
	}
}

// sameSpec compares what clients see of two resources, which is their specification's protobuf form.
func sameSpec(a, b resource.Resource) bool {
	pa, errA := protobuf.FromResource(a)
	pb, errB := protobuf.FromResource(b)
	if errA != nil || errB != nil {
		return false
	}
	ma, errA := pa.Marshal()
	mb, errB := pb.Marshal()
	return errA == nil && errB == nil && bytes.Equal(ma.GetSpec().GetProtoSpec(), mb.GetSpec().GetProtoSpec())
}

func (r *resources) remove(p resource.Pointer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.state.Destroy(r.ctx, p) // what is not there needs no removal
}

// changes tells whether put would change something.
func (r *resources) changes(res resource.Resource) bool {
	current, err := r.state.Get(r.ctx, res.Metadata())
	return err != nil || !sameSpec(current, res)
}
