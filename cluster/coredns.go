package cluster

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
	// contain no secrets. The chart ignores keys that it does not know.
	Values ChartValues `json:"values" example:"{podAnnotations: {example.com/team: dns}}"`
}

// coreDNSValues is the part of the chart's values that Slipway sets, under the chart's own keys.
type coreDNSValues struct {
	ReplicaCount        int               `json:"replicaCount"`
	Service             dnsService        `json:"service"`
	ServiceAccount      dnsServiceAccount `json:"serviceAccount"`
	K8sAppLabelOverride string            `json:"k8sAppLabelOverride"`
	PriorityClassName   string            `json:"priorityClassName"`
	Tolerations         []toleration      `json:"tolerations"`
	Affinity            affinity          `json:"affinity"`
	ReadinessProbe      readinessProbe    `json:"readinessProbe"`
}

type (
	dnsService struct {
		Name           string   `json:"name"`
		ClusterIP      string   `json:"clusterIP"`
		ClusterIPs     []string `json:"clusterIPs"`
		IPFamilyPolicy string   `json:"ipFamilyPolicy"`
	}
	dnsServiceAccount struct {
		Create bool `json:"create"`
	}
	toleration struct {
		Key      string `json:"key"`
		Operator string `json:"operator"`
		Effect   string `json:"effect,omitempty"`
	}
	affinity struct {
		PodAntiAffinity podAntiAffinity `json:"podAntiAffinity"`
	}
	podAntiAffinity struct {
		Preferred []weightedTerm `json:"preferredDuringSchedulingIgnoredDuringExecution"`
	}
	weightedTerm struct {
		Weight int  `json:"weight"`
		Term   term `json:"podAffinityTerm"`
	}
	term struct {
		TopologyKey    string        `json:"topologyKey"`
		LabelSelector  labelSelector `json:"labelSelector"`
		MatchLabelKeys []string      `json:"matchLabelKeys"`
	}
	labelSelector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	}
	readinessProbe struct {
		InitialDelaySeconds int `json:"initialDelaySeconds"`
	}
)

// dnsLabel is the name of the cluster's DNS that Kubernetes itself, Talos and network policies use.
const dnsLabel = "kube-dns"

func (d CoreDNS) service(network Network) Service {
	var addresses []string
	for _, address := range network.DNS() {
		addresses = append(addresses, address.String())
	}
	families := "SingleStack"
	if len(addresses) == 2 {
		families = "RequireDualStack"
	}
	return Service{
		Key: "coreDNS", Name: "coredns", Namespace: "kube-system", Chart: "coredns", Version: d.Version, Repository: d.Repository,
		UserValues: d.Values, Owner: d.Owner,
		Values: coreDNSValues{
			ReplicaCount: d.Replicas,
			// The addresses determine the families. The first address is in both keys, because the API requires that they agree.
			Service:             dnsService{Name: dnsLabel, ClusterIP: addresses[0], ClusterIPs: addresses, IPFamilyPolicy: families},
			ServiceAccount:      dnsServiceAccount{Create: true},
			K8sAppLabelOverride: dnsLabel,
			PriorityClassName:   "system-cluster-critical",
			Tolerations: []toleration{
				{Key: "node-role.kubernetes.io/control-plane", Operator: "Exists", Effect: "NoSchedule"},
				{Key: "CriticalAddonsOnly", Operator: "Exists"},
			},
			// Preferred instead of required, so that both pods run on a single node. These are anti-affinities instead of spread
			// constraints: on a node without the label of one constraint, all constraints are ignored, but each anti-affinity is
			// applied by itself.
			Affinity: affinity{PodAntiAffinity: podAntiAffinity{Preferred: []weightedTerm{
				apart(100, "kubernetes.io/hostname"),
				apart(50, labelZone), // the Proxmox host
			}}},
			// CoreDNS reports when it is ready. The chart's default, 30 seconds, would delay each rollout.
			ReadinessProbe: readinessProbe{InitialDelaySeconds: 1},
		},
	}
}

// apart returns an anti-affinity that spreads the pods of one rollout over different nodes or zones. Pods of the previous rollout
// do not count, because they are about to end.
func apart(weight int, key string) weightedTerm {
	return weightedTerm{Weight: weight, Term: term{
		TopologyKey:    key,
		LabelSelector:  labelSelector{MatchLabels: map[string]string{"app.kubernetes.io/instance": "coredns", "k8s-app": dnsLabel}},
		MatchLabelKeys: []string{"pod-template-hash"},
	}}
}
