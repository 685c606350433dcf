package rotate

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// kubernetes is what a run needs of the cluster to replace Kubernetes' CA.
type kubernetes interface {
	asker

	// Settled returns what is missing until a node's programs have what its configuration says: the kubelet, and on a control plane the
	// static pods.
	Settled(ctx context.Context, node turn.Node, trust Trust) string
	// Clock returns the time by a control plane's API server, in whole seconds.
	Clock(ctx context.Context, node turn.Node) (time.Time, error)
	// Roots returns the ConfigMaps RootCA of all namespaces that are not being deleted.
	Roots(ctx context.Context) ([]Root, error)
	// Keep writes certificates into a ConfigMap RootCA, and makes it immutable.
	Keep(ctx context.Context, root Root, certificates string) error
	// Release deletes an immutable ConfigMap RootCA. kube-controller-manager makes it anew, with its own CA.
	Release(ctx context.Context, root Root) error
	// Pods returns the running pods that have read RootCA, or will.
	Pods(ctx context.Context) ([]Pod, error)
	// Restart begins to replace all pods of a workload, by its own strategy. A second call with the same time changes nothing.
	Restart(ctx context.Context, workload Workload, since time.Time) error
	// Rollout returns how far the newest version of a workload is rolled out.
	Rollout(ctx context.Context, workload Workload) (rollout, error)
}

// kubernetesCA is a run that replaces the CA of the Kubernetes API.
type kubernetesCA struct {
	*job
	kubernetes kubernetes
}

// check returns an error if clocks are wrong by which pods are dated, and one that names the pods that nothing can restart, unless no pod
// needs to be restarted any more: all have read the declared CA.
func (j kubernetesCA) check(ctx context.Context, nodes []turn.Node) error {
	_, issues, err := j.controlPlanes(ctx, nodes)
	if err != nil || issues {
		return err
	}
	if err := j.checkClocks(ctx, nodes); err != nil {
		return err
	}
	var refused error
	err = j.until(ctx, silentTimeout, "the pods", func(ctx context.Context) (string, error) {
		roots, err := j.kubernetes.Roots(ctx)
		var pods []Pod
		if err == nil {
			pods, err = j.kubernetes.Pods(ctx)
		}
		if err != nil {
			return "the Kubernetes API does not answer: " + err.Error(), nil
		}
		roots = slices.DeleteFunc(roots, func(root Root) bool { return !j.hasDeclared(root) })
		refused = CheckPods(Stale(pods, roots, j.LeaveNamespaces))
		return "", nil
	})
	if err == nil {
		err = refused
	}
	return err
}

// beforePass does what pods need before a pass. Talos gives kube-controller-manager the CA that issues, and no other, for the ConfigMap
// by which pods trust the API server. So the run itself keeps all CAs in it, from before the first API server has a certificate of the new
// one until after the last has, and restarts the pods that have read less: they read it only once.
func (j kubernetesCA) beforePass(ctx context.Context, pass Pass, nodes []turn.Node) error {
	switch pass {
	case Accept:
		return j.release(ctx, func(root Root) bool { // of a generation that is not the declared one any more
			return root.Kept && !j.hasDeclared(root)
		})
	case Issue:
		trusted, issues, err := j.controlPlanes(ctx, nodes)
		if err != nil || issues {
			return err
		}
		return j.refreshPods(ctx, trusted)
	}
	trusted, _, err := j.controlPlanes(ctx, nodes)
	if err != nil {
		return err
	}
	keeps := false
	err = j.untilRoots(ctx, silentTimeout, func(_ context.Context, roots []Root) string {
		keeps = slices.ContainsFunc(roots, func(root Root) bool { return root.Kept && root.Namespace == releasedFirst })
		return ""
	})
	if err != nil {
		return err
	}
	if keeps {
		if err := j.refreshPods(ctx, trusted); err != nil { // those of namespaces that were created meanwhile
			return err
		}
	}
	if err := j.release(ctx, func(root Root) bool { return root.Kept }); err != nil {
		return err
	}
	return j.untilRoots(ctx, nodeTimeout, func(_ context.Context, roots []Root) string {
		for _, root := range roots { // this also proves that kube-controller-manager signs with the new CA
			if !Equal(root.Certificates, j.declared()) {
				return "kube-controller-manager has not written the new CA into " + root.Namespace
			}
		}
		return ""
	})
}

// inOrder implements ca. When the former CA is not accepted any more, each kubelet gets another client certificate, which the new CA signs.
// API servers take the former ones for as long as kubelets have them.
func (kubernetesCA) inOrder(pass Pass, nodes []turn.Node) []turn.Node {
	if pass != Drop {
		return nodes
	}
	first := slices.Clone(nodes)
	slices.SortStableFunc(first, func(a, b turn.Node) int { return turn.ByRole(b, a) })
	return first
}

// leftBehind implements ca. Every Node must be Ready: its kubelet starts again in each pass, and the rollout of a DaemonSet does not end
// while one of its nodes is dead.
func (kubernetesCA) leftBehind(one sight, joined map[string]turn.KubeNode) error {
	switch object, member := joined[one.node.Name]; {
	case one.err != nil && member:
		return one.err
	case one.err != nil || object.Ready:
		return nil
	case member:
		return errors.New("its Node is not Ready")
	}
	return errors.New("it has no Node object")
}

func (kubernetesCA) remedy() string { return fixOrRemove + " and run kubectl delete node NAME" }

// missing implements ca. A worker has no API server that could prove more.
func (j kubernetesCA) missing(ctx context.Context, pass Pass, node turn.Node, trust Trust) string {
	if missing := j.kubernetes.Settled(ctx, node, trust); missing != "" || node.Role == cluster.Worker {
		return missing
	}
	return j.proves(ctx, j.kubernetes, pass, node)
}

// settles implements ca. The programs of a node start again some seconds after the change.
func (kubernetesCA) settles() time.Duration { return 3 * time.Second }
