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
	blocked := map[string]string{}
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
		return waitsForPods(left, blocked), nil
	})
	if err != nil {
		return fmt.Errorf("%w; fix the PodDisruptionBudget, or delete the pod by hand, and run up again", err)
	}
	return nil
}

// evict evicts one pod, and notes why that is refused.
func (e *Engine) evict(ctx context.Context, pod Pod, blocked map[string]string) {
	var budget BlockedError
	switch err := e.Cluster.Evict(ctx, pod); {
	case err == nil, errors.Is(err, ErrGone):
		delete(blocked, pod.UID)
	case errors.As(err, &budget):
		blocked[pod.UID] = budget.Reason
	default:
		blocked[pod.UID] = "cannot be evicted: " + err.Error()
	}
}

// waitsForPods says which pods a drain waits for, those that block it first; "" if none is left.
func waitsForPods(left map[string]Pod, blocked map[string]string) string {
	var blocking, ending []string
	for uid, pod := range left {
		if why := blocked[uid]; why != "" && !pod.Deleting {
			blocking = append(blocking, fmt.Sprintf("pod %s: %s", pod, why))
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
