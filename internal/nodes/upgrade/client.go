package upgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/gen/xslices"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/live"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/nodes/versions"
)

// clients implements machines.
type clients struct{ *live.Cluster }

func dial(ctx context.Context, spec *Spec, options ...grpc.DialOption) (clients, error) {
	cluster, err := live.Open(ctx, spec.Talosconfig, spec.Nodes, options...)
	return clients{cluster}, err
}

// Look implements machines.
func (c clients) Look(ctx context.Context, node turn.Node) (answer, error) {
	if configured, err := c.Configured(ctx, node); err != nil || !configured {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, talosapi.CallTimeout)
	defer cancel()
	seen, err := look(ctx, c.Talos(node))
	seen.running.Node = node
	if err == nil {
		seen.running.Next, _ = c.Next(ctx, node) // who installs asks again
	}
	if err == nil && seen.stage != runtime.MachineStageRunning.String() {
		if machine, err := c.Machine(ctx, node); err == nil {
			seen.waits = machine.StageProblem()
		}
	}
	return seen, talosapi.Message(err)
}

func look(ctx context.Context, talos *client.Client) (answer, error) {
	seen := answer{configured: true}
	version, err := talos.Version(ctx)
	if err != nil {
		return seen, err
	}
	for _, message := range version.GetMessages() {
		seen.running.Talos = message.GetVersion().GetTag()
	}
	status, err := safe.StateGetByID[*runtime.MachineStatus](ctx, talos.COSI, runtime.MachineStatusID)
	if err != nil {
		return seen, err
	}
	seen.stage = status.TypedSpec().Stage.String()
	if seen.running.Schematic, err = schematic(ctx, talos); err != nil {
		return seen, err
	}
	current, err := safe.StateGetByID[*config.MachineConfig](ctx, talos.COSI, config.ActiveID)
	if err != nil {
		return seen, err
	}
	seen.running.Configuration, seen.running.Images = current.Provider(), images(current.Provider().RawV1Alpha1())
	return seen, nil
}

// schematic returns the id of the schematic that a machine was installed with. An image factory adds it to each image as an extension.
func schematic(ctx context.Context, talos *client.Client) (string, error) {
	extensions, err := safe.StateListAll[*runtime.ExtensionStatus](ctx, talos.COSI)
	if err != nil {
		return "", err
	}
	for extension := range extensions.All() {
		if metadata := extension.TypedSpec().Metadata; metadata.Name == "schematic" {
			return metadata.Version, nil
		}
	}
	return "", nil
}

// images returns the images of Kubernetes that a machine configuration names, or that Talos takes without.
func images(current *v1alpha1.Config) map[versions.Component]string {
	found := map[versions.Component]string{}
	if current == nil || current.MachineConfig == nil {
		return found
	}
	found[versions.Kubelet] = cmp.Or(current.MachineConfig.MachineKubelet, &v1alpha1.KubeletConfig{}).Image()
	if current.Machine().Type().IsControlPlane() && current.ClusterConfig != nil {
		found[versions.APIServer] = cmp.Or(current.ClusterConfig.APIServerConfig, &v1alpha1.APIServerConfig{}).Image()
		found[versions.ControllerManager] = cmp.Or(current.ClusterConfig.ControllerManagerConfig, &v1alpha1.ControllerManagerConfig{}).Image()
		found[versions.Scheduler] = cmp.Or(current.ClusterConfig.SchedulerConfig, &v1alpha1.SchedulerConfig{}).Image()
	}
	return found
}

// Booted implements machines.
func (c clients) Booted(ctx context.Context, node turn.Node) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stat, err := c.Talos(node).MachineClient.SystemStat(ctx, &emptypb.Empty{})
	if err != nil {
		return time.Time{}, talosapi.Message(err)
	}
	for _, message := range stat.GetMessages() {
		return time.Unix(int64(message.GetBootTime()), 0), nil //nolint:gosec // seconds since 1970
	}
	return time.Time{}, errors.New("no answer")
}

// Pull implements machines.
func (c clients) Pull(ctx context.Context, node turn.Node, component versions.Component, image string) error {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	namespace := common.ContainerdNamespace_NS_CRI
	if component == versions.Kubelet { // a service of Talos, no pod
		namespace = common.ContainerdNamespace_NS_SYSTEM
	}
	return talosapi.Message(c.Talos(node).ImagePull(ctx, namespace, image)) //nolint:staticcheck // Talos before 1.13 has no other call
}

// SetImage implements machines.
func (c clients) SetImage(ctx context.Context, node turn.Node, component versions.Component, image string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return talosapi.Message(live.ChangeConfiguration(ctx, c.Talos(node), machine.ApplyConfigurationRequest_NO_REBOOT,
		func(in *v1alpha1.Config) error { return setImage(in, component, image) }))
}

func setImage(in *v1alpha1.Config, component versions.Component, image string) error {
	if in.MachineConfig == nil || in.ClusterConfig == nil {
		return errors.New("no machine configuration")
	}
	switch component {
	case versions.Kubelet:
		in.MachineConfig.MachineKubelet = cmp.Or(in.MachineConfig.MachineKubelet, &v1alpha1.KubeletConfig{})
		in.MachineConfig.MachineKubelet.KubeletImage = image
	case versions.APIServer:
		in.ClusterConfig.APIServerConfig = cmp.Or(in.ClusterConfig.APIServerConfig, &v1alpha1.APIServerConfig{})
		in.ClusterConfig.APIServerConfig.ContainerImage = image
	case versions.ControllerManager:
		in.ClusterConfig.ControllerManagerConfig = cmp.Or(in.ClusterConfig.ControllerManagerConfig, &v1alpha1.ControllerManagerConfig{})
		in.ClusterConfig.ControllerManagerConfig.ContainerImage = image
	case versions.Scheduler:
		in.ClusterConfig.SchedulerConfig = cmp.Or(in.ClusterConfig.SchedulerConfig, &v1alpha1.SchedulerConfig{})
		in.ClusterConfig.SchedulerConfig.ContainerImage = image
	default:
		return fmt.Errorf("%s is no component", component)
	}
	return nil
}

// CiliumVersions implements machines.
func (c clients) CiliumVersions(ctx context.Context) ([]string, error) {
	images, err := c.CiliumImages(ctx)
	return xslices.Map(images, versions.Tag), err
}
