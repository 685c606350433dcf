package gate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/health"
)

// Talos's own health check looks at the kubelets of control planes only. This check looks at those of all nodes.
var talosServices = check{
	Name: "apid, machined, kubelet and extensions run on every node, etcd and trustd on control planes",
	Looks: "Talos reports them Running and healthy, on workers too; the same for every `ext-…` service that a node has, and for those " +
		"that every node must have",
	ByHand: "talosctl -n ADDRESS service ID; talosctl -n ADDRESS logs ID",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		return eachTalos(spec.Nodes, seen, func(node Machine, talos TalosNode) health.Result {
			want := []string{"apid", "machined", "kubelet"}
			if node.Role == cluster.ControlPlane {
				want = append(want, "etcd", "trustd")
			}
			return nodeServices(node, append(want, spec.Services...), talos)
		})
	},
}

func nodeServices(node Machine, want []string, talos TalosNode) health.Result {
	if !talos.Asked {
		return health.NotSeen(node.Name, "Talos services")
	}
	for _, id := range slices.Sorted(maps.Keys(talos.Services)) {
		if strings.HasPrefix(id, "ext-") && !slices.Contains(want, id) {
			want = append(want, id)
		}
	}
	var problems []string
	result := health.Fail(node.Name, "")
	for _, id := range want {
		problem := serviceProblem(talos.Services, id)
		if problem == "" {
			continue
		}
		problems = append(problems, id+" "+problem)
		service, present := talos.Services[id]
		if service.Message != "" && !strings.Contains(problem, service.Message) {
			result = result.WithEvidence("last event of " + id + ": " + service.Message)
		}
		if present {
			result = result.Asks(node.log(id))
		}
		result.Command = cmp.Or(result.Command, fmt.Sprintf("talosctl -n ADDRESS service %s; talosctl -n ADDRESS logs %[1]s", id))
	}
	if len(problems) == 0 {
		return health.Pass(node.Name)
	}
	result.Reason = strings.Join(problems, "; ")
	return result
}

// serviceProblem returns why a service is not healthy; "" if it is.
func serviceProblem(services map[string]talosapi.Service, id string) string {
	service, present := services[id]
	extension := strings.HasPrefix(id, "ext-")
	switch {
	case !present:
		return "is not a service of this node yet"
	case extension && service.State == "Finished":
		return "" // some extensions run once, such as the one that imports storage pools
	case service.State != talosapi.Running && service.Message != "":
		return "is " + cmp.Or(service.State, "in no state") + " (" + service.Message + ")"
	case service.State != talosapi.Running:
		return "is " + cmp.Or(service.State, "in no state")
	case extension && !service.Known:
		return "" // extensions have no health check
	case !service.Known:
		return "is Running, its health is not known yet"
	case !service.Healthy:
		return "is Running and not healthy: " + cmp.Or(service.HealthError, "no message")
	}
	return ""
}
