package upgrade

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/nodes/versions"
)

// upgradeKubernetes upgrades the API servers, then the controller managers and the schedulers, each on one node after the other, and at
// last the kubelets in their nodes' turns: the same order as Talos's own `upgrade-k8s`. So no component is ever newer than the API server
// it talks to. Like there, a kubelet is restarted without a drain: its pods go on, but for static ones.
func (j *job) upgradeKubernetes(ctx context.Context, plan versions.Plan, running []versions.Running) error {
	if len(plan.Kubernetes) == 0 {
		return nil
	}
	images := map[string]map[versions.Component]string{}
	for _, node := range running {
		if node.Node.IsControlPlane() {
			j.serving = append(j.serving, node.Node)
		}
		images[node.Node.Name] = map[versions.Component]string{}
		for component, image := range node.Images {
			images[node.Node.Name][component] = versions.WithVersion(image, j.Kubernetes)
		}
	}
	if err := j.pull(ctx, plan, images); err != nil {
		return err
	}
	for _, component := range versions.StaticPods {
		if component != versions.APIServer {
			if err := j.awaitAPIServers(ctx); err != nil {
				return err
			}
		}
		if err := j.awaitChanged(ctx, component, plan, images); err != nil || j.report.Left != "" {
			return err
		}
		if plan.Back {
			j.sickFirst(ctx, plan.Kubernetes[component])
		}
		for _, node := range plan.Kubernetes[component] {
			if err := j.upgradeStaticPod(ctx, plan, node, component, images[node.Name][component]); err != nil {
				return err
			}
			j.finished(component, node)
		}
	}
	if err := j.awaitChanged(ctx, versions.Kubelet, plan, images); err != nil || j.report.Left != "" {
		return err
	}
	if err := j.awaitRemade(ctx, plan.Kubernetes[versions.Kubelet], images); err != nil {
		return err
	}
	return j.engine.InOrder(plan.Kubernetes[versions.Kubelet], func(node turn.Node) error {
		if err := j.upgradeKubelet(ctx, node, images[node.Name]); err != nil {
			return err
		}
		j.finished(versions.Kubelet, node)
		return nil
	})
}

// sickFirst puts the control planes first whose API servers are not ready: the others wait for them.
func (j *job) sickFirst(ctx context.Context, nodes []turn.Node) {
	ready := map[string]int{}
	for _, node := range nodes {
		if _, err := j.Version(ctx, node); err == nil {
			ready[node.Name] = 1
		}
	}
	slices.SortStableFunc(nodes, func(a, b turn.Node) int { return ready[a.Name] - ready[b.Name] })
}

func (j *job) finished(component versions.Component, node turn.Node) {
	done := string(component) + " on " + node.Name
	j.Say("%s: runs %s", done, j.Kubernetes)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.report.Kubernetes = append(j.report.Kubernetes, done)
}

// pull pulls every image on the nodes that will run it, so that no component is away for the time of a pull, and an image that cannot be
// had stops the run before anything is changed.
func (j *job) pull(ctx context.Context, plan versions.Plan, images map[string]map[versions.Component]string) error {
	components := append(slices.Clone(versions.StaticPods), versions.Kubelet)
	return turn.InParallel(len(j.Spec.Nodes), j.Spec.Nodes, func(node turn.Node) error {
		for _, component := range components {
			if !slices.Contains(plan.Kubernetes[component], node) {
				continue
			}
			image := images[node.Name][component]
			j.Say("%s: pulls %s", node.Name, image)
			if err := j.Pull(ctx, node, component, image); err != nil {
				return fmt.Errorf("%s: cannot pull %s, and no component was changed: %w", node.Name, image, err)
			}
		}
		return nil
	})
}

// awaitAPIServers waits until all API servers run the declared version. One whose image an interrupted run has changed may still restart.
func (j *job) awaitAPIServers(ctx context.Context) error {
	return j.engine.Until(ctx, podTimeout, 0, "all API servers", func(ctx context.Context) (string, error) {
		for _, node := range j.serving {
			switch version, err := j.Version(ctx, node); {
			case err != nil:
				return "the one of " + node.Name + " is not ready: " + err.Error(), nil
			case version != j.Kubernetes:
				return "the one of " + node.Name + " runs " + version, nil
			}
		}
		return "", nil
	})
}

// awaitChanged waits until the nodes that are configured with the new image of a component run it, if others are to follow: an earlier run
// may have ended because one did not start, and must not be finished with the next, nor with the kubelet of the node. If one does not, once
// all API servers are upgraded, this component and all that follows are left to the machine configurations: these may correct the cause,
// reach one node after the other, too, and make nothing newer than an API server.
func (j *job) awaitChanged(
	ctx context.Context, component versions.Component, plan versions.Plan, images map[string]map[versions.Component]string,
) error {
	pending := plan.Kubernetes[component]
	for _, node := range j.Spec.Nodes {
		image := images[node.Name][component]
		follow := len(pending) > 0 || slices.Contains(plan.Kubernetes[versions.Kubelet], node)
		if !follow || image == "" || slices.Contains(pending, node) {
			continue
		}
		what := fmt.Sprintf("%s on %s, which is changed already", component, node.Name)
		err := j.engine.Until(ctx, podTimeout, 0, what, func(ctx context.Context) (string, error) {
			if !node.IsControlPlane() && j.hasStarted(ctx, node) {
				return "", nil
			}
			return j.problem(ctx, node, component, image), nil
		})
		switch {
		case err == nil:
		case component == versions.APIServer || ctx.Err() != nil:
			return j.broken(ctx, node, component, err)
		default:
			j.Say("%v", j.broken(ctx, node, component, err))
			j.report.Left = string(component) + " on " + node.Name
			return nil
		}
	}
	return nil
}

// hasStarted reports whether the kubelet of a worker has started in its new version, whatever has become of its node, or has not joined.
func (j *job) hasStarted(ctx context.Context, worker turn.Node) bool {
	nodes, err := j.engine.Cluster.Nodes(ctx)
	at, joined := nodes[worker.Name]
	return err == nil && (!joined || at.Kubelet == j.Kubernetes)
}

// broken is the error of a component that does not run its new version.
func (j *job) broken(ctx context.Context, node turn.Node, component versions.Component, err error) error {
	remedy := "Fix it, or correct its settings, and run up again"
	if component == versions.APIServer {
		remedy = "Fix it, and run up again; or, while only API servers have the new release, declare the former kubernetes.version with " +
			"the setting corrected, run up, and upgrade again"
	}
	return fmt.Errorf("%w; no other one is changed. %s%s", err, remedy, j.engine.Quote(ctx, node))
}

// problem returns why a component does not run the image yet; "" if it does.
func (j *job) problem(ctx context.Context, node turn.Node, component versions.Component, image string) string {
	switch component {
	case versions.Kubelet:
		nodes, err := j.engine.Cluster.Nodes(ctx)
		switch at := nodes[node.Name]; {
		case err != nil:
			return "the Kubernetes API does not answer: " + err.Error()
		case at.Kubelet != j.Kubernetes:
			return "it still runs " + at.Kubelet
		case !at.Ready:
			return "its Node is not Ready"
		}
		return ""
	case versions.APIServer:
		switch version, err := j.Version(ctx, node); {
		case err != nil:
			return "it is not ready: " + err.Error()
		case version != j.Kubernetes:
			return "it still runs " + version
		}
	}
	switch runs, ready, err := j.Image(ctx, node, string(component)); {
	case err != nil:
		return "the Kubernetes API does not answer: " + err.Error()
	case runs == "":
		return "it has no pod"
	case runs != image:
		return "its pod still runs " + runs
	case !ready:
		return "its pod is not Ready"
	}
	return ""
}

// removedAPI matches a line of the API server's metric about requests to deprecated APIs.
var removedAPI = regexp.MustCompile(`(?m)^apiserver_requested_deprecated_apis\{(.*)\} 1$`)

// label matches a label of a metric.
var label = regexp.MustCompile(`(\w+)="([^"]*)"`)

// namesRemovedAPIs refuses an upgrade to another minor release if a client has used an API that this release does not have, since the API
// servers were started that are to be upgraded: one that is already need not run.
func (j *job) namesRemovedAPIs(ctx context.Context, plan versions.Plan) error {
	if !plan.Minor || len(plan.Kubernetes[versions.APIServer]) == 0 {
		return nil
	}
	var used []string
	for _, node := range plan.Kubernetes[versions.APIServer] {
		text, err := j.Metrics(ctx, node)
		if err != nil {
			return fmt.Errorf("%s: it is not known whether a removed API is in use, because the metrics of its API server cannot be read: %w",
				node.Name, err)
		}
		used = append(used, removedIn(text, j.Kubernetes)...)
	}
	slices.Sort(used)
	if used = slices.Compact(used); len(used) == 0 {
		return nil
	}
	text := fmt.Sprintf("clients use APIs that Kubernetes %s does not have: %s", j.Kubernetes, strings.Join(used, ", "))
	if j.AllowRemovedAPIs {
		j.Say("%s", text)
		return nil
	}
	return errors.New(text + "; upgrade those clients and restart the API servers, which forget it then, " +
		"or set lifecycle.allowRemovedAPIs: true")
}

// removedIn returns the APIs in use that a version does not have.
func removedIn(metrics, version string) []string {
	var used []string
	for _, line := range removedAPI.FindAllStringSubmatch(metrics, -1) {
		labels := map[string]string{}
		for _, one := range label.FindAllStringSubmatch(line[1], -1) {
			labels[one[1]] = one[2]
		}
		release := labels["removed_release"]
		if release == "" || semver.Compare("v"+release, semver.MajorMinor(version)) > 0 {
			continue
		}
		name := labels["resource"] + " of " + strings.TrimPrefix(labels["group"]+"/"+labels["version"], "/")
		used = append(used, fmt.Sprintf("%s (removed in %s)", name, release))
	}
	return used
}
