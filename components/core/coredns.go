package core

import (
	"errors"
	"fmt"
	"net/netip"
)

// DefaultCoreDNSReplicas is what a cluster's DNS has where nothing else is said.
const DefaultCoreDNSReplicas = 2

// dnsHost is the place of the cluster's DNS in a service network. Talos tells every kubelet the same one.
const dnsHost = 10

// CoreDNS is the cluster's DNS, in place of Talos's own, which the machine configuration switches off.
type CoreDNS struct {
	ServiceCIDRs []netip.Prefix // networks of Services, one a family, IPv4 first; DNS is the tenth address of each; required
	Replicas     int            // pods, spread over nodes as far as there are enough; 0 means DefaultCoreDNSReplicas
	Version      string         // of the chart; "" means pins.CoreDNSVersion
	Repository   string         // https URL of the chart repository; "" means pins.CoreDNSRepository
}

// DNSAddress is the address of the cluster's DNS in a network of Services.
func DNSAddress(serviceCIDR netip.Prefix) netip.Addr {
	address := serviceCIDR.Masked().Addr()
	for range dnsHost {
		address = address.Next()
	}
	return address
}

func (c CoreDNS) validate() error {
	var problems []error
	switch {
	case len(c.ServiceCIDRs) == 0:
		problems = append(problems, errors.New("coreDNS.serviceCIDRs: missing; give the network of Services"))
	case len(c.ServiceCIDRs) > 2:
		problems = append(problems, fmt.Errorf("coreDNS.serviceCIDRs: %v are more than one a family", c.ServiceCIDRs))
	case len(c.ServiceCIDRs) == 2 && (!c.ServiceCIDRs[0].Addr().Is4() || !c.ServiceCIDRs[1].Addr().Is6()):
		problems = append(problems, fmt.Errorf("coreDNS.serviceCIDRs: %v are not IPv4 and then IPv6; swap them", c.ServiceCIDRs))
	}
	for _, cidr := range c.ServiceCIDRs {
		if !cidr.IsValid() || !cidr.Contains(DNSAddress(cidr)) {
			problems = append(problems, fmt.Errorf("coreDNS.serviceCIDRs: %s has no tenth address; give a larger network", cidr))
		}
	}
	if c.Replicas < 0 {
		problems = append(problems, fmt.Errorf("coreDNS.replicas: %d is negative; give a number of pods", c.Replicas))
	}
	return errors.Join(problems...)
}

// coreDNSChart mirrors the part of the chart's values that Slipway sets, in the chart's own words.
type coreDNSChart struct {
	ReplicaCount        int            `json:"replicaCount"`
	Service             service        `json:"service"`
	ServiceAccount      serviceAccount `json:"serviceAccount"`
	K8sAppLabelOverride string         `json:"k8sAppLabelOverride"`
	PriorityClassName   string         `json:"priorityClassName"`
	Tolerations         []toleration   `json:"tolerations"`
	Affinity            affinity       `json:"affinity"`
	ReadinessProbe      readinessProbe `json:"readinessProbe"`
}

type (
	service struct {
		Name           string   `json:"name"`
		ClusterIP      string   `json:"clusterIP"`
		ClusterIPs     []string `json:"clusterIPs"`
		IPFamilyPolicy string   `json:"ipFamilyPolicy"`
	}
	serviceAccount struct {
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

// dnsLabel is the name that Kubernetes itself, Talos and network policies know the cluster's DNS by.
const dnsLabel = "kube-dns"

func (c CoreDNS) values() coreDNSChart {
	replicas := c.Replicas
	if replicas == 0 {
		replicas = DefaultCoreDNSReplicas
	}
	var addresses []string
	for _, cidr := range c.ServiceCIDRs {
		addresses = append(addresses, DNSAddress(cidr).String())
	}
	families := "SingleStack"
	if len(addresses) == 2 {
		families = "RequireDualStack"
	}
	return coreDNSChart{
		ReplicaCount: replicas,
		// The families follow from the addresses. The first one stands in both keys: the API wants them to agree.
		Service:             service{Name: dnsLabel, ClusterIP: addresses[0], ClusterIPs: addresses, IPFamilyPolicy: families},
		ServiceAccount:      serviceAccount{Create: true},
		K8sAppLabelOverride: dnsLabel,
		PriorityClassName:   "system-cluster-critical",
		Tolerations: []toleration{
			{Key: "node-role.kubernetes.io/control-plane", Operator: "Exists", Effect: "NoSchedule"},
			{Key: "CriticalAddonsOnly", Operator: "Exists"},
		},
		// Wishes, not conditions: on a single node both pods run, and Helm's wait ends. Spread constraints would be void
		// on nodes that lack the label of any of them, so these are anti-affinities, which are judged one by one.
		Affinity: affinity{PodAntiAffinity: podAntiAffinity{Preferred: []weightedTerm{
			apart(100, "kubernetes.io/hostname"),
			apart(50, "topology.kubernetes.io/zone"), // the Proxmox host
		}}},
		// CoreDNS tells by itself when it is ready; the chart's 30 seconds of silence would be paid at each rollout.
		ReadinessProbe: readinessProbe{InitialDelaySeconds: 1},
	}
}

// apart keeps the pods of one rollout apart: those of the one before are about to go.
func apart(weight int, key string) weightedTerm {
	return weightedTerm{Weight: weight, Term: term{
		TopologyKey:    key,
		LabelSelector:  labelSelector{MatchLabels: map[string]string{"app.kubernetes.io/instance": CoreDNSName, "k8s-app": dnsLabel}},
		MatchLabelKeys: []string{"pod-template-hash"},
	}}
}
