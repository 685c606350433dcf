package retire

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
)

// saveBeforeJoin takes a snapshot of etcd before it gets members. A cluster of which no control plane runs etcd has nothing to save: its
// creation was interrupted, or it is lost, which the bootstrap finds out.
func saveBeforeJoin(
	ctx context.Context, on remover, spec *Spec, plan Plan, log *probe.Progress, report Report,
) (Report, error) {
	log.Say("%s will be new members of etcd", turn.Names(plan.Join))
	if err := awaitEtcd(ctx, on, plan.Stay, log.Say); err != nil {
		log.Say("there is no etcd to take a snapshot of: %v", err)
		return report, nil
	}
	if err := awaitVoters(ctx, on, spec, plan, log.Say); err != nil {
		return report, fmt.Errorf("nothing was changed: %w", err)
	}
	if err := saveEtcd(ctx, on, spec, plan, log, &report); err != nil {
		return report, fmt.Errorf("nothing was changed: %w", err)
	}
	report.Took = log.Took()
	return report, spec.Snapshots.Prune(spec.Cluster, report.Snapshot)
}

// takesNone is what is to be done about a member of etcd that does not answer while another one is to join.
const takesNone = "while a member with a vote does not answer, etcd takes no new one: start that control plane, or remove or replace it " +
	"first, in a run of its own"

// awaitVoters waits until etcd can take the control planes that join. It takes no member, not even one without a vote, while one with a
// vote is away, whatever its quorum (mayAddMember in etcd's server.go, with --strict-reconfig-check, its default): the machine would wait
// in vain, after a healthy one has been removed for it. Those that leave do not count, nor a member with the name of one that joins, which
// Talos removes first. A member that is not declared cannot be asked.
func awaitVoters(ctx context.Context, on remover, spec *Spec, plan Plan, say func(string, ...any)) error {
	name := func(node turn.Node) string { return node.Name }
	join := xslices.Map(plan.Join, name)
	remade := slices.ContainsFunc(turn.ControlPlanes(plan.Leave), func(node turn.Node) bool {
		return slices.Contains(plan.Replaced, node.Name)
	})
	if len(join) == 0 && !remade {
		return nil
	}
	away := slices.Concat(join, xslices.Map(plan.Leave, name))
	voters := slices.DeleteFunc(spec.ControlPlanes(), func(node turn.Node) bool { return slices.Contains(away, node.Name) })
	remedy := ""
	wait := probe.Wait{Limit: turn.SpareTimeout, Say: say}
	err := wait.Until(ctx, "etcd's members that stay", func(ctx context.Context) (string, error) {
		remedy = ""
		members, err := turn.First(voters, func(node turn.Node) ([]talosapi.Member, error) { return on.Members(ctx, node) })
		if err != nil {
			return "the members of etcd cannot be listed: " + err.Error(), nil
		}
		isMember := func(name string) bool {
			return slices.ContainsFunc(members, func(m talosapi.Member) bool { return m.Name == name })
		}
		if !remade && !slices.ContainsFunc(join, func(name string) bool { return !isMember(name) }) {
			return "", nil // an earlier run has added all of them
		}
		problems := make([]string, len(voters))
		probe.Each(voters, func(i int, node turn.Node) {
			if isMember(node.Name) {
				if problem := turn.EtcdProblem(on.Machine(ctx, node)); problem != "" {
					problems[i] = node.Name + ": " + problem
				}
			}
		})
		remedy = "; " + takesNone
		for i, problem := range problems {
			if problem != "" && spec.Skip.Has(voters[i].Name) {
				return "", fmt.Errorf("%s, and lifecycle.skip leaves it out", problem)
			}
		}
		return strings.Join(slices.DeleteFunc(problems, func(problem string) bool { return problem == "" }), "; "), nil
	})
	if err != nil && context.Cause(ctx) == nil {
		return fmt.Errorf("%w%s", err, remedy)
	}
	return err
}

// skipped are the declared control planes that lifecycle.skip leaves out.
func (s *Spec) skipped() []turn.Node {
	return slices.DeleteFunc(s.ControlPlanes(), func(node turn.Node) bool { return !s.Skip.Has(node.Name) })
}
