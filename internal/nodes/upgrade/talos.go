package upgrade

import (
	"context"
	"fmt"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// upgradeNode upgrades one node. Before 1.13, Talos drains a node itself, but goes on after some minutes whatever the PodDisruptionBudgets
// say; a node that is drained already has nothing left to drain.
func (j *job) upgradeNode(ctx context.Context, node turn.Node) error {
	err := j.engine.Take(ctx, turn.Change{
		Node: node, Of: "Talos", Drains: true, Reboots: true,
		Act: func(ctx context.Context) error { return j.install(ctx, node) },
		Check: func(_ context.Context, boot string, machine turn.Machine, _ turn.KubeNode) (string, error) {
			return j.upgraded(boot, machine)
		},
	})
	if err != nil {
		return err
	}
	after, err := j.Look(ctx, node)
	if err == nil && after.running.Schematic != "" && after.running.Schematic != j.Schematic {
		err = fmt.Errorf("it runs the extensions of schematic %s after the upgrade, and %s is declared", after.running.Schematic, j.Schematic)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", node.Name, err)
	}
	j.Say("%s: runs Talos %s", node.Name, j.Talos)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.report.Talos = append(j.report.Talos, node.Name)
	return nil
}

// install installs Talos on a node, and makes the node reboot. A second installation before the reboot would remove the version that runs
// from the disk, and with it the way back that a boot that fails takes.
func (j *job) install(ctx context.Context, node turn.Node) error {
	next, err := j.Next(ctx, node)
	if err != nil {
		return fmt.Errorf("it is not known which version boots next: %w", err)
	}
	if next == j.Talos {
		j.Say("%s: an earlier run has installed Talos %s; reboots", node.Name, j.Talos)
		return j.Reboot(ctx, node)
	}
	image := j.Installers[node.Name]
	j.Say("%s: pulls and installs %s", node.Name, image)
	return j.Upgrade(ctx, node, image)
}

// upgraded returns what is missing after an upgrade. Talos boots the former version again if the new one does not boot.
func (j *job) upgraded(boot string, machine turn.Machine) (string, error) {
	switch {
	case machine.Version == j.Talos:
		return "", nil
	case boot == "" || machine.Boot == boot:
		return "it still runs Talos " + machine.Version, nil
	}
	return "", fmt.Errorf("Talos rolled back: the machine has rebooted and runs %s again, not %s; talosctl dmesg may say why",
		machine.Version, j.Talos)
}
