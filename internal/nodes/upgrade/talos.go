package upgrade

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// upgradeTalos upgrades nodes in their turns: control planes one after the other, and then as many workers at once as may be out of
// service. After the first failure, no further node begins.
func (j *job) upgradeTalos(ctx context.Context, nodes []turn.Node) error {
	var workers []turn.Node
	for _, node := range nodes {
		if !node.IsControlPlane() {
			workers = append(workers, node)
			continue
		}
		if err := j.upgradeNode(ctx, node); err != nil {
			return err
		}
	}
	return inParallel(min(j.MaxUnavailable, len(workers)), workers, func(node turn.Node) error { return j.upgradeNode(ctx, node) })
}

// inParallel calls do for all nodes in their order, at most so many at once. It returns the errors, and begins nothing after the first one.
func inParallel(most int, nodes []turn.Node, do func(turn.Node) error) error {
	var mu sync.Mutex
	var problems []error
	next := func() (turn.Node, bool) {
		mu.Lock()
		defer mu.Unlock()
		if len(nodes) == 0 || len(problems) > 0 {
			return turn.Node{}, false
		}
		node := nodes[0]
		nodes = nodes[1:]
		return node, true
	}
	var all sync.WaitGroup
	for range most {
		all.Go(func() {
			for node, ok := next(); ok; node, ok = next() {
				if err := do(node); err != nil {
					mu.Lock()
					problems = append(problems, err)
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return join(problems)
}

// upgradeNode upgrades one node. Before 1.13, Talos drains a node itself, but goes on after some minutes whatever the PodDisruptionBudgets
// say; a node that is drained already has nothing left to drain.
func (j *job) upgradeNode(ctx context.Context, node turn.Node) error {
	err := j.engine.Take(ctx, turn.Change{
		Node: node, Drains: true, Reboots: true,
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
	j.report.Talos = append(j.report.Talos, node.Name)
	return nil
}

// install installs Talos on a node, and makes the node reboot. A second installation before the reboot would remove the version that runs
// from the disk, and with it the way back that a boot that fails takes.
func (j *job) install(ctx context.Context, node turn.Node) error {
	installed, err := j.Installed(ctx, node, j.Talos)
	if err != nil {
		return fmt.Errorf("it is not known which version boots next: %w", err)
	}
	if installed {
		j.Say("%s: an earlier run has installed Talos %s; reboots", node.Name, j.Talos)
		return j.Reboot(ctx, node)
	}
	j.Say("%s: pulls and installs %s", node.Name, j.Installer)
	return j.Upgrade(ctx, node, j.Installer)
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

// join returns the errors as one, a line each.
func join(problems []error) error {
	if len(problems) == 0 {
		return nil
	}
	var lines []string
	for _, problem := range problems {
		lines = append(lines, problem.Error())
	}
	return fmt.Errorf("%s", strings.Join(lines, "\n"))
}
