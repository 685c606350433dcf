package live

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	machineryconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// asideFor is how long a control plane leaves the virtual IP to others: Talos takes the former configuration back then, by itself.
const asideFor = 2 * time.Minute

// StepAside implements turn.VIPs.
func (c *Cluster) StepAside(ctx context.Context, node turn.Node) (netip.Addr, error) {
	vip, err := StepAside(ctx, c.talos[node.Address])
	return vip, talosapi.Message(err)
}

// Holds implements turn.VIPs.
func (c *Cluster) Holds(ctx context.Context, node turn.Node, address netip.Addr) (bool, error) {
	holds, err := Holds(ctx, c.talos[node.Address], address)
	return holds, talosapi.Message(err)
}

// StepAside makes a control plane that has the cluster's virtual IP give it to another one, and returns the address; an invalid one if the
// node does not have it. Talos moves the address at once if a node's configuration names none any more, but leaves it where it is while the
// API server behind it restarts (network/operator/vip.go). The node's next configuration ends this, or two minutes, in Talos's try mode, so
// that a killed run leaves nothing behind.
func StepAside(ctx context.Context, talos *client.Client) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*talosapi.CallTimeout)
	defer cancel()
	current, err := safe.StateGetByID[*config.MachineConfig](ctx, talos.COSI, config.ActiveID)
	if err != nil {
		return netip.Addr{}, err
	}
	vip := virtualIP(current.Provider())
	if !vip.IsValid() {
		return netip.Addr{}, nil
	}
	if holds, err := Holds(ctx, talos, vip); err != nil || !holds {
		return netip.Addr{}, err
	}
	without, err := current.Provider().PatchV1Alpha1(func(in *v1alpha1.Config) error {
		for _, device := range in.MachineConfig.MachineNetwork.NetworkInterfaces {
			device.DeviceVIPConfig = nil
		}
		return nil
	})
	if err != nil {
		return netip.Addr{}, RefusedError("its machine configuration cannot be changed") // the cause may quote the configuration
	}
	text, err := without.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return netip.Addr{}, RefusedError("its machine configuration cannot be written")
	}
	_, err = talos.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{
		Data: text, Mode: machine.ApplyConfigurationRequest_TRY, TryModeTimeout: durationpb.New(asideFor),
	})
	return vip, err
}

// Holds reports whether a node has an address.
func Holds(ctx context.Context, talos *client.Client, address netip.Addr) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, talosapi.CallTimeout)
	defer cancel()
	current, err := safe.StateGetByID[*network.NodeAddress](ctx, talos.COSI, network.NodeAddressCurrentID)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(current.TypedSpec().Addresses, func(p netip.Prefix) bool { return p.Addr() == address }), nil
}

// virtualIP returns the virtual IP that a configuration names; an invalid address if none.
func virtualIP(full machineryconfig.Provider) netip.Addr {
	if full.Machine() == nil {
		return netip.Addr{}
	}
	for _, device := range full.Machine().Network().Devices() {
		if vip := device.VIPConfig(); vip != nil {
			address, _ := netip.ParseAddr(vip.IP())
			return address
		}
	}
	return netip.Addr{}
}

// lasting returns the configuration that a node runs, with the virtual IP that it takes back if it has stepped aside. What another run
// has left on its disk for the next boot is not in it: that run, once it goes on, brings it again.
func lasting(ctx context.Context, talos *client.Client) (machineryconfig.Provider, error) {
	current, err := safe.StateGetByID[*config.MachineConfig](ctx, talos.COSI, config.ActiveID)
	if err != nil {
		return nil, err
	}
	if virtualIP(current.Provider()).IsValid() {
		return current.Provider(), nil
	}
	kept, err := safe.StateGetByID[*config.MachineConfig](ctx, talos.COSI, config.PersistentID)
	if err != nil || !virtualIP(kept.Provider()).IsValid() {
		return current.Provider(), nil // it has no virtual IP, as workers have none
	}
	return current.Provider().PatchV1Alpha1(func(in *v1alpha1.Config) error {
		if in.MachineConfig == nil || in.MachineConfig.MachineNetwork == nil {
			return errors.New("no network")
		}
		own := in.MachineConfig.MachineNetwork.NetworkInterfaces
		former := kept.Provider().RawV1Alpha1().MachineConfig.MachineNetwork
		for i, device := range former.NetworkInterfaces {
			if i < len(own) {
				own[i].DeviceVIPConfig = device.DeviceVIPConfig
			}
		}
		return nil
	})
}
