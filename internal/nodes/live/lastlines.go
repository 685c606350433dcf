package live

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/slipway-platform/slipway/cluster/secrecy"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// How much is quoted of what a node's components have written.
const (
	lastLines     = 5 // of each log
	maxComponents = 3
)

// fromCRI is the beginning of each line in a log of CRI: time, stream, and whether the line is full.
var fromCRI = regexp.MustCompile(`^\S+ std(out|err) [FP] `)

// LastLines implements turn.Cluster. It asks the node's own Talos API, because the API server may be what does not start.
func (c *Cluster) LastLines(ctx context.Context, node turn.Node) []string {
	var all []string
	logs := slices.Concat(c.sickServices(ctx, node), c.sickContainers(ctx, node))
	for _, log := range logs[:min(len(logs), maxComponents)] {
		if lines := c.tail(ctx, node, log); len(lines) > 0 {
			all = append(append(all, "log of "+log.name+":"), lines...)
		}
	}
	return all
}

// log is a log of Talos's API.
type log struct {
	name string // of the component
	talosapi.Log
}

// sickServices returns the logs of the Talos services of a node that do not run, or are not healthy.
func (c *Cluster) sickServices(ctx context.Context, node turn.Node) (logs []log) {
	seen, err := c.machine(ctx, node.Address)
	if err != nil {
		return nil
	}
	for _, id := range []string{"kubelet", "etcd"} {
		if service, has := seen.Services[id]; has && service.Sick() {
			logs = append(logs, log{id, talosapi.Log{
				ID: id, Namespace: constants.SystemContainerdNamespace, Driver: common.ContainerDriver_CONTAINERD,
			}})
		}
	}
	return logs
}

// sickContainers returns the logs of the containers of a node's static pods that are not Ready: of those that have ended, if there are any,
// because one that starts again and again has written nothing yet after each start.
func (c *Cluster) sickContainers(ctx context.Context, node turn.Node) (logs []log) {
	talos := c.talos[node.Address]
	pods, err := safe.StateListAll[*k8s.StaticPodStatus](ctx, talos.COSI)
	if err != nil {
		return nil
	}
	reply, err := talos.Containers(ctx, constants.K8sContainerdNamespace, common.ContainerDriver_CRI)
	if err != nil || len(reply.GetMessages()) == 0 {
		return nil
	}
	for pod := range pods.All() {
		if kubeapi.ConditionOf(map[string]any{"status": pod.TypedSpec().PodStatus}, "Ready").Status == "True" {
			continue
		}
		var running, ended []log
		for _, container := range reply.GetMessages()[0].GetContainers() {
			one := log{container.GetName(), talosapi.Log{
				ID: container.GetId(), Namespace: constants.K8sContainerdNamespace, Driver: common.ContainerDriver_CRI,
			}}
			switch {
			case container.GetPodId() != pod.Metadata().ID() || container.GetName() == container.GetPodId(): // the latter is its sandbox
			case strings.HasSuffix(container.GetStatus(), "_EXITED"):
				ended = append(ended, one)
			default:
				running = append(running, one)
			}
		}
		if len(ended) > 0 {
			running = ended
		}
		logs = append(logs, running...)
	}
	return logs
}

// tail returns the last lines of a log, without what may be a secret.
func (c *Cluster) tail(ctx context.Context, node turn.Node, of log) []string {
	text, err := of.Read(ctx, c.talos[node.Address], lastLines)
	if err != nil {
		return []string{"cannot be read: " + secrecy.Line(err.Error())}
	}
	var lines []string
	for _, line := range secrecy.Lines(text) {
		if line = strings.TrimSpace(fromCRI.ReplaceAllString(line, "")); line != "" {
			lines = append(lines, "| "+line)
		}
	}
	return lines[max(0, len(lines)-lastLines):]
}
