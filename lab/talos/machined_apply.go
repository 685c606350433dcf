package talos

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configdiff"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/lab/kube/authority"
	"github.com/slipway-platform/slipway/lab/talos/accept"
	"github.com/slipway-platform/slipway/lab/talos/kubernetes"
	"github.com/slipway-platform/slipway/lab/talos/versions"
)

// ApplyConfiguration changes the configuration of a configured node, and reboots it if the change needs that.
func (s *machinedServer) ApplyConfiguration(ctx context.Context, in *machine.ApplyConfigurationRequest) (*machine.ApplyConfigurationResponse, error) {
	b := s.b
	noReboot := versions.Since(b.version, "v1.14") // it applies every configuration without one
	if !noReboot && in.Mode != machine.ApplyConfigurationRequest_TRY {
		b.cancelRevert() // also for a dry run, and for a configuration that is refused
	}
	cfg, err := configloader.NewFromBytes(in.GetData())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if err := b.applyError(); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if noReboot && in.Mode == machine.ApplyConfigurationRequest_REBOOT {
		return nil, status.Error(codes.Unimplemented, "the REBOOT mode is not supported, please use AUTO or NO_REBOOT modes instead")
	}
	warnings, err := accept.Validate(ctx, cfg, b.version, b.res.State(), true)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	b.site.mu.Lock()
	current := b.config
	b.site.mu.Unlock()

	mode, details := in.Mode, "Applied configuration with a reboot"
	immediate := accept.NeedsReboot(current, cfg)
	if noReboot {
		immediate = nil
	}
	switch mode {
	case machine.ApplyConfigurationRequest_TRY, machine.ApplyConfigurationRequest_NO_REBOOT:
		if immediate != nil {
			return nil, status.Error(codes.InvalidArgument, immediate.Error())
		}
		details = "Applied configuration without a reboot"
	case machine.ApplyConfigurationRequest_STAGED:
		details = "Staged configuration to be applied after the next reboot"
	case machine.ApplyConfigurationRequest_AUTO:
		mode, details = machine.ApplyConfigurationRequest_NO_REBOOT, "Applied configuration without a reboot"
		if immediate != nil {
			mode, details = machine.ApplyConfigurationRequest_REBOOT, "Applied configuration with a reboot: "+immediate.Error()
		}
	case machine.ApplyConfigurationRequest_REBOOT:
	default:
		return nil, status.Errorf(codes.InvalidArgument, "incorrect mode '%s' specified for the apply config call", in.Mode)
	}
	if in.DryRun {
		diff, err := configdiff.DiffConfigs(current, cfg)
		if err != nil {
			return nil, err
		}
		if diff == "" {
			diff = "No changes."
		}
		return &machine.ApplyConfigurationResponse{Messages: []*machine.ApplyConfiguration{{
			Mode: mode, ModeDetails: fmt.Sprintf("Dry run summary:\n%s (skipped in dry-run).\nConfig diff:\n\n%s", details, diff),
		}}}, nil
	}
	if mode != machine.ApplyConfigurationRequest_TRY {
		b.cancelRevert()
	}
	b.Printk("[talos] apply config request: mode %s", mode)
	switch mode {
	case machine.ApplyConfigurationRequest_TRY:
		timeout := constants.ConfigTryTimeout
		if in.TryModeTimeout != nil {
			timeout = in.TryModeTimeout.AsDuration()
		}
		details += fmt.Sprintf("\nThe config is applied in 'try' mode and will be automatically reverted back in %s", timeout)
		b.activate(cfg)
		b.revertAfter(timeout, current)
	case machine.ApplyConfigurationRequest_NO_REBOOT:
		b.persist(cfg)
		b.activate(cfg)
	case machine.ApplyConfigurationRequest_STAGED:
		b.persist(cfg)
	default:
		b.persist(cfg)
		b.begin(&sequence{name: "reboot", then: endReboot})
	}
	return &machine.ApplyConfigurationResponse{Messages: []*machine.ApplyConfiguration{{Mode: mode, Warnings: warnings,
		ModeDetails: details}}}, nil
}

// persist writes a configuration to the machine's disk.
func (b *boot) persist(cfg config.Provider) {
	b.site.mu.Lock()
	b.inst.config = cfg
	b.site.mu.Unlock()
	b.res.Put(configres.NewMachineConfigWithID(cfg, configres.PersistentID))
}

// activate applies a configuration to the running node. It restarts the kubelet if the kubelet's input has changed, and from Talos 1.14 on
// containerd of the pods if its input has. Files, arguments of etcd and the encryption of volumes wait for the next boot, and nothing says
// so. Addresses and host name change with the next boot; real Talos changes them at once.
func (b *boot) activate(cfg config.Provider) {
	b.site.mu.Lock()
	former := b.config
	b.site.mu.Unlock()
	b.setConfig(cfg)
	b.publishRoutes(cfg)
	if !reflect.DeepEqual(kubeletInputs(former), kubeletInputs(cfg)) {
		b.services.Restart("kubelet")
	}
	b.restartExtensions(former, cfg)
	b.followCRI(former, cfg)
	if !kubernetes.SameManifests(former, cfg) {
		b.applyManifests()
	}
	b.site.change.Notify()
}

// kubeletInputs are the parts of the configuration that a kubelet depends on.
func kubeletInputs(cfg config.Provider) []any {
	labels, annotations, taints := kubernetes.NodeMetadata(cfg, nil, "")
	return []any{labels, annotations, taints, cfg.RawV1Alpha1().MachineConfig.MachineKubelet, authority.Accepted(cfg.Cluster())}
}

func (b *boot) revertAfter(d time.Duration, to config.Provider) {
	ctx, cancel := context.WithCancel(b.ctx)
	b.site.mu.Lock()
	b.revert = cancel
	b.site.mu.Unlock()
	b.wg.Go(func() {
		defer cancel()
		if sleep(ctx, d) == nil {
			b.activate(to)
		}
	})
}

func (b *boot) cancelRevert() {
	b.site.mu.Lock()
	cancel := b.revert
	b.revert = nil
	b.site.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}
