package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// drain evicts the pods of a node and waits until they are gone. The pods are listed once: a pod that tolerates cordoned nodes may be
// created again on this one, and would be evicted for ever. If no other node takes ordinary pods, nothing is evicted: the pods would only
// wait for this node. Nor is anything if the node is not Ready: nobody would report that its pods have ended.
func (e *Engine) drain(ctx context.Context, node Node) error {
	nodes, err := e.nodes(ctx)
	if err != nil {
		return err
	}
	if at, exists := nodes[node.Name]; exists && !at.Ready {
		e.Say("%s: is not drained, because it is not Ready", node.Name)
		return nil
	}
	if !takesPods(nodes, node) {
		e.Say("%s: keeps its pods, because no other node takes them", node.Name)
		return nil
	}
	var left map[string]Pod
	blocked, osds := map[string]error{}, keptOSDs{engine: e, node: node}
	err = e.Until(ctx, e.DrainTimeout.Duration, 0, node.Name+"'s drain", func(ctx context.Context) (string, error) {
		pods, err := e.Cluster.Pods(ctx, node.Name)
		if err != nil {
			return "the Kubernetes API does not answer: " + err.Error(), nil
		}
		here := map[string]Pod{}
		for _, pod := range pods {
			if _, known := left[pod.UID]; !pod.Stays && (left == nil || known) {
				here[pod.UID] = pod
			}
		}
		if left == nil && len(here) > 0 {
			e.Say("%s: evicts %d pods", node.Name, len(here))
		}
		left = here
		for _, pod := range left {
			if !pod.Deleting {
				e.evict(ctx, pod, blocked)
			}
		}
		waits := waitsForPods(left, blocked)
		if osds.look(ctx, left, blocked); osds.why != "" {
			waits += "; " + osds.why
		}
		return waits, nil
	})
	switch {
	case err == nil:
		return nil
	case osds.why != "": // an OSD that is deleted by hand may have the only other copy
		return fmt.Errorf("%w; start the OSDs that do not run, or purge those of a node that has gone or was replaced (docs/nodes.md, "+
			"A node with an OSD of Ceph), or wait until Ceph has all copies; fix any other PodDisruptionBudget, and run up again", err)
	}
	return fmt.Errorf("%w; fix the PodDisruptionBudget, or delete the pod by hand, and run up again", err)
}

// evict evicts one pod, and notes why that is refused.
func (e *Engine) evict(ctx context.Context, pod Pod, blocked map[string]error) {
	switch err := e.Cluster.Evict(ctx, pod); {
	case err == nil, errors.Is(err, ErrGone):
		delete(blocked, pod.UID)
	case errors.As(err, new(BlockedError)):
		blocked[pod.UID] = err
	default:
		blocked[pod.UID] = fmt.Errorf("cannot be evicted: %w", err)
	}
}

// waitsForPods says which pods a drain waits for, those that block it first; "" if none is left.
func waitsForPods(left map[string]Pod, blocked map[string]error) string {
	var blocking, ending []string
	for uid, pod := range left {
		if why := blocked[uid]; why != nil && !pod.Deleting {
			blocking = append(blocking, fmt.Sprintf("pod %s: %v", pod, why))
		} else {
			ending = append(ending, pod.String())
		}
	}
	slices.Sort(blocking)
	slices.Sort(ending)
	if len(ending) > 0 {
		blocking = append(blocking, fmt.Sprintf("%d pods that end: %s", len(ending), strings.Join(ending[:min(len(ending), 3)], ", ")))
	}
	return list(blocking)
}

// takesPods reports whether a node other than these takes ordinary pods.
func takesPods(nodes map[string]KubeNode, except ...Node) bool {
	for name, node := range nodes {
		excepted := slices.ContainsFunc(except, func(other Node) bool { return other.Name == name })
		if !excepted && node.Ready && !node.Unschedulable && !node.Repels {
			return true
		}
	}
	return false
}
