package cluster

// Cluster is what one stack file declares: each field is a section of the file. The program works with a Cluster whose
// defaults are filled in and that Complete has found nothing wrong with.
//
// A field is one key of the file. Its tags say everything that holds for the key alone, and its comment is what the
// reference and the JSON Schema say about it:
//
//	json      the name of the key
//	config    "required": the key must be given
//	form      the form of the text, a name of package syntax; of each item in a list, of each value in a mapping
//	keys      the form of a mapping's keys
//	range     the smallest and the largest number, size or duration, such as 1-255
//	bits      the shortest and the longest prefix of a network, such as 8-29
//	items     the smallest and the largest number of items
//	default   the value of a key that is not given
//	follows   the key or rule that gives the default; the section's derive function sets it
//	example   a value, as YAML
type Cluster struct {
	// Stack is the name of the Pulumi stack, such as "infra". It is no key of the file.
	Stack string `json:"-"`

	Identity    Identity    `json:"cluster" config:"required"`
	Proxmox     Proxmox     `json:"proxmox" config:"required"`
	Network     Network     `json:"network" config:"required"`
	NodePools   []NodePool  `json:"nodePools" config:"required" items:"1-"`
	Workers     Workers     `json:"workers"`
	Talos       Talos       `json:"talos"`
	Kubernetes  Kubernetes  `json:"kubernetes"`
	Cilium      Cilium      `json:"cilium"`
	CRDs        CRDs        `json:"crds"`
	CoreDNS     CoreDNS     `json:"coreDNS"`
	Spegel      Spegel      `json:"spegel"`
	CertManager CertManager `json:"certManager"`
	GitOps      GitOps      `json:"gitops" config:"required"`
	Readiness   Readiness   `json:"readiness"`
	Storage     Storage     `json:"storage"`

	Secrets
}

// New returns a Cluster that has the defaults of every key that is the same for all clusters.
func New(stack string) *Cluster {
	c := &Cluster{Stack: stack}
	SetDefaults(c)
	return c
}

// Complete checks the keys that the file gives, fills those whose default follows other keys, and checks the whole. It adds
// everything that is wrong to findings. Call it once. A value whose form is wrong is reported once and set to its zero
// value, so that nothing else is said about it: do not use a Cluster that has a problem.
func (c *Cluster) Complete(findings *Findings) {
	checkForms(c, findings)
	c.derive()
	check := checker{Cluster: c, Findings: findings}
	check.network()
	check.ipv6()
	check.nodePools()
	check.placement()
	check.talos()
	check.versions()
	check.cilium()
	check.crds()
	check.outside()
	check.secrets()
}

// derive fills the keys whose default follows other keys.
func (c *Cluster) derive() {
	c.Network.derive()
	for i := range c.NodePools {
		c.NodePools[i].derive(c.Proxmox)
	}
	c.place()
	c.Talos.derive()
	c.Cilium.derive()
	c.CRDs.derive(c.CertManager)
	c.GitOps.derive(c.Stack)
}

// checker checks what takes more than one key to see. A value that is missing or has a wrong form is zero, and is skipped.
type checker struct {
	*Cluster
	*Findings

	taken map[string]string // what must be unique, to the path that has it
}
