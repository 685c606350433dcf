package upgrade

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/mod/semver"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/nodes/versions"
)

// takesOver is how long the kubelet of another minor release may take until it ends the static pods of the one before. A release that makes
// them alike ends none.
const takesOver = 90 * time.Second

// upgradeKubelet changes the image of a node's kubelet in the node's turn. etcd goes on meanwhile. A control plane that waits for its
// configuration gets it only after this step, when nobody can declare the former release any more, so the others are not awaited then.
//
// A kubelet names a static pod by a hash of all that it knows of pods (applyDefaults in pkg/kubelet/config/common.go). One of another minor
// release knows other fields, so it ends the API server of its node and starts it again: the next node must not follow before. The machine
// configurations do not wait for that, if this step leaves the kubelets to them.
func (j *job) upgradeKubelet(ctx context.Context, node turn.Node, images map[versions.Component]string) error {
	awaits := turn.Spared
	if node.IsControlPlane() && len(j.serving) < len(j.ControlPlanes()) {
		awaits = turn.OthersWell
	}
	var before map[versions.Component]string
	var since time.Time
	return j.engine.Take(ctx, turn.Change{
		Node: node, Of: "the kubelet", Quiet: true, Awaits: awaits, KeepsEtcd: true,
		Act: func(ctx context.Context) error {
			if j.remakesPods(ctx, node) {
				before = j.podHashes(ctx, node)
				turn.StepAside(ctx, j, node, j.serving, j.Say)
			}
			j.Say("kubelet on %s: is changed to %s", node.Name, images[versions.Kubelet])
			return j.SetImage(ctx, node, versions.Kubelet, images[versions.Kubelet])
		},
		Check: func(ctx context.Context, _ string, _ turn.Machine, at turn.KubeNode) (string, error) {
			if at.Kubelet != j.Kubernetes {
				return "its kubelet still runs " + at.Kubelet, nil
			}
			if since.IsZero() {
				since = time.Now()
			}
			late := time.Since(since) >= min(takesOver, j.ReturnTimeout.Duration/2)
			return j.notRemade(ctx, node, images, before, late), nil
		},
	})
}

// remakesPods reports whether the new kubelet of a node ends static pods: the one that runs there is of another minor release.
func (j *job) remakesPods(ctx context.Context, node turn.Node) bool {
	if !node.IsControlPlane() {
		return false
	}
	nodes, err := j.engine.Cluster.Nodes(ctx)
	return err != nil || semver.MajorMinor(nodes[node.Name].Kubelet) != semver.MajorMinor(j.Kubernetes)
}

// podHashes returns from what the static pods of a node were made, as far as that is known.
func (j *job) podHashes(ctx context.Context, node turn.Node) map[versions.Component]string {
	hashes := map[versions.Component]string{}
	for _, component := range versions.StaticPods {
		switch hash, _, err := j.PodHash(ctx, node, string(component)); {
		case err != nil:
			j.Say("%s: whether its kubelet makes %s anew is not awaited: %v", node.Name, component, err)
		case hash != "": // without a pod in the API, nothing shows it
			hashes[component] = hash
		}
	}
	return hashes
}

// notRemade returns why the static pods of a node are not all made anew and Ready; "" if they are, or were to be made anew long ago.
func (j *job) notRemade(
	ctx context.Context, node turn.Node, images, before map[versions.Component]string, late bool,
) string {
	for _, component := range versions.StaticPods {
		hash, known := before[component]
		if !known {
			continue
		}
		if problem := j.problem(ctx, node, component, images[component]); problem != "" {
			return string(component) + ": " + problem
		}
		now, _, err := j.PodHash(ctx, node, string(component))
		switch {
		case err != nil:
			return "the Kubernetes API does not answer: " + err.Error()
		case now == hash && !late:
			return string(component) + ": its kubelet has not made it anew"
		}
	}
	return ""
}

// awaitRemade waits, before the kubelets of other control planes change, for the static pods of those whose kubelets an earlier run has
// changed. That run may have ended before they were made anew: a static pod that was first seen before its kubelet began to run is from the
// kubelet before it, by the clock of the node. One that has run for takesOver makes none anew.
func (j *job) awaitRemade(ctx context.Context, pending []turn.Node, images map[string]map[versions.Component]string) error {
	if !slices.ContainsFunc(pending, func(node turn.Node) bool { return j.remakesPods(ctx, node) }) {
		return nil
	}
	begin, most := time.Now(), min(takesOver, j.ReturnTimeout.Duration/2)
	for _, node := range j.serving {
		if slices.Contains(pending, node) {
			continue
		}
		var before map[versions.Component]string
		var started time.Time
		err := j.engine.Until(ctx, j.ReturnTimeout.Duration, 0, node.Name+"'s static pods", func(ctx context.Context) (string, error) {
			if before == nil {
				var err error
				if before, started, err = j.beforeKubelet(ctx, node); err != nil {
					return "what its kubelet has made is not known: " + err.Error(), nil
				}
				if started.After(begin) { // this computer's clock is behind. If it is ahead by more than takesOver, nothing is awaited
					started = begin
				}
			}
			return j.notRemade(ctx, node, images[node.Name], before, time.Since(started) >= most), nil
		})
		if err != nil {
			return fmt.Errorf("%w; no other kubelet is changed. Fix it, and run up again%s", err, j.engine.Quote(ctx, node))
		}
	}
	return nil
}

// beforeKubelet returns when the kubelet of a node began to run, and from what the static pods were made that are older.
func (j *job) beforeKubelet(ctx context.Context, node turn.Node) (hashes map[versions.Component]string, started time.Time, err error) {
	machine, err := j.Machine(ctx, node)
	if err != nil {
		return nil, started, err
	}
	started, hashes = machine.Services["kubelet"].Started, map[versions.Component]string{}
	for _, component := range versions.StaticPods {
		hash, seen, err := j.PodHash(ctx, node, string(component))
		if err != nil {
			return nil, started, err
		}
		if hash != "" && !seen.IsZero() && seen.Before(started) {
			hashes[component] = hash
		}
	}
	return hashes, started, nil
}
