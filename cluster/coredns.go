package cluster

import (
	"net/netip"

	"github.com/siderolabs/gen/xslices"
)

// CoreDNS is the DNS of the cluster, at the tenth address of `network.serviceCIDR`.
type CoreDNS struct {
	Owned

	// Version of the chart.
	//
	// renovate: datasource=helm depName=coredns registryUrl=https://coredns.github.io/helm
	Version string `json:"version" form:"chart-version" default:"1.46.2"`
	// Chart repository.
	Repository string `json:"repository" form:"https-url" default:"https://coredns.github.io/helm" example:"https://charts.example.com/coredns"`
	// Number of CoreDNS pods.
	Replicas int `json:"replicas" range:"1-10" default:"2" example:"3"`
	// Values of one's own for the chart, under its own keys. They are merged last, and must not set what Slipway sets. They must
	// contain no secrets. For the minor release of the default, keys that the chart does not know, and values of another kind, are refused.
	Values ChartValues `json:"values" example:"{podAnnotations: {example.com/team: dns}}"`
}

// dnsLabel is the name of the cluster's DNS that Kubernetes itself, Talos and network policies use.
const dnsLabel = "kube-dns"

func (d CoreDNS) service(network Network) Service {
	addresses := xslices.Map(network.DNS(), netip.Addr.String)
	families := "SingleStack"
	if len(addresses) == 2 {
		families = "RequireDualStack"
	}
	return Service{
		Key: "coreDNS", Name: "coredns", Namespace: "kube-system", Chart: "coredns", Version: d.Version, Repository: d.Repository,
		UserValues: d.Values, Owner: d.Owner,
		Needed: []Needed{
			{"deployment.enabled", true, "leaves the cluster without DNS"}, {"servers", 1, "leaves CoreDNS without zones"},
			{"isClusterService", true, "leaves out the label k8s-app, by which the DNS of a cluster is found"},
			{"rbac.create", true, "leaves CoreDNS without the right to read Services"},
		},
		Values: mapping{
			"replicaCount": d.Replicas,
			// The addresses determine the families. The first address is in both keys, because the API requires that they agree.
			"service":             mapping{"name": dnsLabel, "clusterIP": addresses[0], "clusterIPs": addresses, "ipFamilyPolicy": families},
			"serviceAccount":      mapping{"create": true},
			"k8sAppLabelOverride": dnsLabel,
			"priorityClassName":   "system-cluster-critical",
			"tolerations": []mapping{
				{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"},
				{"key": "CriticalAddonsOnly", "operator": "Exists"},
			},
			// Preferred instead of required, so that both pods run on a single node. Anti-affinities are applied one by one; of spread constraints,
			// a node without the label of one is exempt from all.
			"affinity": mapping{"podAntiAffinity": mapping{"preferredDuringSchedulingIgnoredDuringExecution": []mapping{
				apart(100, "kubernetes.io/hostname"),
				apart(50, labelZone), // the Proxmox host
			}}},
			// CoreDNS reports when it is ready. The chart's default, 30 seconds, would delay each rollout.
			"readinessProbe": mapping{"initialDelaySeconds": 1},
		},
	}
}

// apart returns an anti-affinity that spreads the pods of one rollout over different nodes or zones. Pods of the previous rollout
// do not count, because they are about to end.
func apart(weight int, key string) mapping {
	return mapping{"weight": weight, "podAffinityTerm": mapping{
		"topologyKey":    key,
		"labelSelector":  mapping{"matchLabels": mapping{"app.kubernetes.io/instance": "coredns", "k8s-app": dnsLabel}},
		"matchLabelKeys": []string{"pod-template-hash"},
	}}
}
