package rotate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
)

const (
	rolloutTimeout = 15 * time.Minute // longest time in which a rollout makes no progress
	endTimeout     = time.Hour        // until the pods of jobs have ended
)

// rollout is how far a workload is rolled out.
type rollout struct {
	gone      bool      // the workload does not exist
	missing   string    // what is missing until all pods are of the newest version; "" if nothing is
	progress  int32     // grows with each new pod, and with each former one that is gone
	available int32     // pods that are available
	wanted    int32     // pods that are declared
	restarted time.Time // time of the last restart that its template names; zero without one
}

// hasDeclared reports whether the declared CA is among those of a ConfigMap.
func (j kubernetesCA) hasDeclared(root Root) bool {
	return slices.ContainsFunc(root.Certificates, func(one string) bool { return Equal([]string{one}, j.declared()) })
}

// declared returns the certificate of the declared authority as RootCA has it.
func (j kubernetesCA) declared() []string { return Split(j.certificates[len(j.certificates)-1]) }

// releasedFirst is a namespace that every cluster has, whose ConfigMap is released before all others. Once it is released, all pods have
// been refreshed, and no run does it again.
const releasedFirst = "default"

// controlPlanes returns the CAs that control planes trust, all together, and whether the declared one issues on each.
func (j kubernetesCA) controlPlanes(ctx context.Context, nodes []turn.Node) (trusted []string, issues bool, err error) {
	err = j.until(ctx, silentTimeout, "the control planes", func(ctx context.Context) (string, error) {
		all := Trust{}
		issues = true
		for _, node := range nodes {
			if node.Role != cluster.ControlPlane {
				continue
			}
			trust, _, err := j.Look(ctx, node)
			if err != nil {
				return node.Name + ": its Talos API does not answer: " + err.Error(), nil
			}
			all.Accepted = append(all.Accepted, trust.All()...)
			issues = issues && trust.Issues(j.certificates)
		}
		all.Issuing = j.certificates[len(j.certificates)-1]
		trusted = Split(Bundle(all.All()))
		return "", nil
	})
	return trusted, issues, err
}

// untilRoots waits until nothing is missing of the ConfigMaps.
func (j kubernetesCA) untilRoots(ctx context.Context, limit time.Duration, missing func(context.Context, []Root) string) error {
	return j.until(ctx, limit, RootCA, func(ctx context.Context) (string, error) {
		roots, err := j.kubernetes.Roots(ctx)
		if err != nil {
			return "the Kubernetes API does not answer: " + err.Error(), nil
		}
		return missing(ctx, roots), nil
	})
}

// release releases the ConfigMaps that a condition selects.
func (j kubernetesCA) release(ctx context.Context, selected func(Root) bool) error {
	return j.untilRoots(ctx, silentTimeout, func(ctx context.Context, roots []Root) (missing string) {
		slices.SortStableFunc(roots, func(a, b Root) int { return releaseOrder(a) - releaseOrder(b) })
		for _, root := range xslices.Filter(roots, selected) {
			missing = "the one of " + root.Namespace + " has to be written anew"
			if err := j.kubernetes.Release(ctx, root); err != nil {
				return "the one of " + root.Namespace + " cannot be deleted: " + err.Error()
			}
		}
		return missing
	})
}

// releaseOrder sorts releasedFirst before all others.
func releaseOrder(root Root) int {
	if root.Namespace == releasedFirst {
		return 0
	}
	return 1
}

// refreshPods makes all pods trust an API server with a certificate of any of the CAs: it keeps the CAs in each namespace, and restarts the
// workloads of the pods that have read less, one after the other.
func (j kubernetesCA) refreshPods(ctx context.Context, trusted []string) error {
	for {
		stale, roots, err := j.stale(ctx, trusted)
		if err != nil {
			return err
		}
		next := slices.IndexFunc(stale, func(pod Pod) bool { return pod.Workload != Workload{} })
		if next < 0 && len(stale) == 0 {
			return nil
		}
		if next < 0 { // other pods may have started meanwhile
			err = j.awaitEnd(ctx, trusted)
		} else {
			err = j.restart(ctx, trusted, stale[next].Workload, roots)
		}
		if err != nil {
			return err
		}
	}
}

// stale keeps the CAs in each namespace, and returns the pods that have read less, sorted by their workloads.
func (j kubernetesCA) stale(ctx context.Context, trusted []string) (stale []Pod, roots []Root, err error) {
	err = j.until(ctx, nodeTimeout, RootCA, func(ctx context.Context) (string, error) {
		var missing string
		stale, roots, missing = j.lookAtPods(ctx, trusted)
		return missing, nil
	})
	return stale, roots, err
}

func (j kubernetesCA) lookAtPods(ctx context.Context, trusted []string) (stale []Pod, roots []Root, missing string) {
	roots, err := j.kubernetes.Roots(ctx)
	if err != nil {
		return nil, nil, "the Kubernetes API does not answer: " + err.Error()
	}
	for _, root := range roots {
		switch {
		case root.Kept && Equal(root.Certificates, trusted) && !root.Since.IsZero(): // by a run, not by somebody else
			continue
		case root.UID == "":
			missing = "kube-controller-manager has not made the one of " + root.Namespace
			continue
		case root.Kept:
			err = j.kubernetes.Release(ctx, root)
		default:
			err = j.kubernetes.Keep(ctx, root, Bundle(trusted))
		}
		missing = "the one of " + root.Namespace + " was just changed"
		if err != nil {
			return nil, nil, "the one of " + root.Namespace + " cannot be changed: " + err.Error()
		}
	}
	if missing != "" {
		return nil, nil, missing
	}
	pods, err := j.kubernetes.Pods(ctx)
	if err != nil {
		return nil, nil, "the Kubernetes API does not answer: " + err.Error()
	}
	stale = Stale(pods, roots, j.LeaveNamespaces)
	slices.SortFunc(stale, func(a, b Pod) int { return strings.Compare(a.Workload.String(), b.Workload.String()) })
	for _, pod := range stale {
		if !slices.ContainsFunc(roots, func(root Root) bool { return root.Namespace == pod.Namespace }) {
			return nil, nil, "the namespace " + pod.Namespace + " is new, or is being deleted"
		}
	}
	return stale, roots, ""
}

// restart replaces the pods of a workload, and waits until none of the former ones is left, and as many are available as before: what a
// strategy allows to be away, such as a monitor of Ceph, must not be away together with the next workload's. A workload that was not
// available before need not be now. The wait may be long while the rollout makes progress: a DaemonSet has a pod on each node.
func (j kubernetesCA) restart(ctx context.Context, trusted []string, workload Workload, roots []Root) error {
	if err := j.awaitStorage(ctx, workload); err != nil {
		return err
	}
	at := slices.IndexFunc(roots, func(root Root) bool { return root.Namespace == workload.Namespace })
	since := roots[at].Since
	j.Say("restarts %s: its pods may not trust both CAs", workload)
	var before *rollout // also if the answer to the restart is lost, and the restart is sent again
	restarted, progress := false, int32(0)
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	stalled := time.AfterFunc(rolloutTimeout, func() { giveUp(fmt.Errorf("gave up after %s without progress", rolloutTimeout)) })
	defer stalled.Stop()
	err := j.until(ctx, 0, workload.String(), func(ctx context.Context) (string, error) {
		now, err := j.kubernetes.Rollout(ctx, workload)
		if err == nil && !restarted && !now.gone {
			before = cmp.Or(before, new(now))
			if err := j.kubernetes.Restart(ctx, workload, since); err != nil {
				return "it cannot be restarted: " + err.Error(), nil
			}
			restarted = true
			now, err = j.kubernetes.Rollout(ctx, workload)
		}
		if err == nil && restarted && now.progress > progress {
			progress = now.progress
			stalled.Reset(rolloutTimeout)
		}
		switch {
		case err != nil:
			return "the Kubernetes API does not answer: " + err.Error(), nil
		case now.gone:
			return "", nil
		case now.missing != "":
			return now.missing, nil
		case now.available < min(before.available, now.wanted):
			return fmt.Sprintf("%d of its pods are available, and %d were before", now.available, before.available), nil
		}
		stale, _, missing := j.lookAtPods(ctx, trusted)
		for _, pod := range stale {
			switch {
			case pod.Workload != workload:
			case now.restarted.Before(since):
				return "", fmt.Errorf("%s: %w", workload, errTakenBack)
			default:
				missing = "pod " + pod.Name + " may not trust both CAs"
			}
		}
		return missing, nil
	})
	if err == nil && restarted && !slices.Contains(j.report.Restarted, workload.String()) {
		j.report.Restarted = append(j.report.Restarted, workload.String())
	}
	return err
}

// awaitStorage waits until Ceph has all copies, disks and monitors, before one of them is restarted: each is a Deployment of its own, so
// that no strategy of one knows of the others. Other checks may fail because of what this run has still to restart.
func (j kubernetesCA) awaitStorage(ctx context.Context, workload Workload) error {
	checks := j.OfStorage()
	if !workload.keepsCeph() || len(checks) == 0 {
		return nil
	}
	start, wait := time.Now(), probe.Wait{Limit: turn.SpareTimeout + j.Settle.Duration, Stable: j.Settle.Duration, Say: j.Say}
	return wait.Until(ctx, "Ceph, before "+workload.String()+" is restarted", func(ctx context.Context) (string, error) {
		if time.Since(start) >= j.Settle.Duration {
			return turn.Unmet(ctx, j.Unmet, j.Since(start, checks)), nil
		}
		return turn.Unmet(ctx, j.Unmet, checks), nil
	})
}

// keepsCeph reports whether Ceph may lose its quorum, or a copy of something, while the workload restarts.
func (w Workload) keepsCeph() bool {
	return w.Namespace == cluster.RookNamespace &&
		(strings.HasPrefix(w.Name, "rook-ceph-mon-") || strings.HasPrefix(w.Name, "rook-ceph-osd-"))
}

// errTakenBack is the error of a workload whose owner, such as an operator, removes what it does not know from the template.
var errTakenBack = errors.New("whoever owns it takes the restart back; write its namespace into " +
	"lifecycle.certificateAuthorities.leaveNamespaces, and restart its pods yourself")

// awaitEnd waits for the pods that end by themselves.
func (j kubernetesCA) awaitEnd(ctx context.Context, trusted []string) error {
	return j.until(ctx, endTimeout, "the end of pods that may not trust both CAs, and that nothing restarts",
		func(ctx context.Context) (string, error) {
			stale, _, missing := j.lookAtPods(ctx, trusted)
			var names []string
			for _, pod := range stale {
				if pod.Workload == (Workload{}) {
					names = append(names, pod.Namespace+"/"+pod.Name)
				}
			}
			if err := CheckPods(stale); err != nil { // of pods that are new
				return "", err
			}
			if len(names) > 0 {
				slices.Sort(names)
				missing = strings.Join(names, ", ")
			}
			return missing, nil
		})
}
