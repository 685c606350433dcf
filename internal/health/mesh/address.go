package mesh

import (
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
)

// Service is the Service of the mesh API server.
type Service struct {
	Namespace, Name string
	Type            string
	Addresses       []string // that were assigned
	Refusal         string   // why Cilium assigns none; "" if it says nothing
}

var addressAssigned = check{
	Name:   "the mesh API server has its declared address",
	Looks:  "the load-balancer addresses of the Service `clustermesh-apiserver`; a pool in the GitOps tree assigns them",
	ByHand: "kubectl -n NAMESPACE describe service clustermesh-apiserver; kubectl get ciliumloadbalancerippools",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		subject := "Service " + spec.Namespace + "/" + ServerName
		if result, missing := seen.Services.Unread(subject, "it"); missing {
			return []health.Result{result}
		}
		if len(seen.Services.Items) == 0 {
			missing := health.Fail(subject, "does not exist: Cilium is not installed with the values of a mesh")
			return []health.Result{spec.withInlineRemedy(missing.WithCommand("helm -n NAMESPACE get values cilium"))}
		}
		service := seen.Services.Items[0]
		reason := ""
		switch {
		case service.Type != "LoadBalancer":
			reason = "is of type " + service.Type + ", so that no pool assigns its address"
		case slices.Contains(service.Addresses, spec.Address.String()):
			return []health.Result{health.Pass(subject)}
		case len(service.Addresses) > 0:
			reason = "has " + strings.Join(service.Addresses, ", ") + " instead of the declared " + spec.Address.String()
		case spec.NoPool:
			return []health.Result{health.Skip(subject, "has no address, so that no peer can reach this cluster: gitops is not enabled, and the "+
				"pool of addresses is part of its tree; create a CiliumLoadBalancerIPPool with "+spec.Address.String())}
		default:
			reason = "has no address yet"
		}
		if service.Refusal != "" {
			reason += ": " + service.Refusal
		}
		return []health.Result{health.Fail(subject, reason)}
	},
}

var serverRunning = check{
	Name:   "the mesh API server is rolled out and Ready",
	Looks:  "the Deployment `clustermesh-apiserver`: all pods are of the newest spec and Ready",
	ByHand: "kubectl -n NAMESPACE describe deployment clustermesh-apiserver",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		subject := "Deployment " + spec.Namespace + "/" + ServerName
		if result, missing := seen.Servers.Unread(subject, "it"); missing {
			return []health.Result{result}
		}
		if len(seen.Servers.Items) == 0 {
			if seen.Services.Synced && len(seen.Services.Items) == 0 {
				return []health.Result{health.Block(subject, "Cilium is not installed with the values of a mesh")}
			}
			return []health.Result{health.Fail(subject, "does not exist")}
		}
		return []health.Result{seen.Servers.Items[0].Rollout(seen.Pods)}
	},
}
