// Package cluster is the model of a declared cluster: its nodes and networks, the settings of Talos, Cilium and Flux, their
// versions and which of them are compatible, the limits and the defaults. It imports no Pulumi.
package cluster

// Cluster is the configuration in one stack file: each field is a section of the file. The program uses a Cluster only after
// Complete has set its defaults and found no problem.
//
// A field of a section is one key of the file. Its tags contain every rule for the key alone. Its comment is the key's
// description in the reference and in the JSON Schema:
//
//	json      the name of the key
//	config    "required": the key must be given
//	form      the form of the text, a name of package syntax; of each item in a list, of each value in a mapping
//	keys      the form of a mapping's keys
//	range     the smallest and the largest number, such as 1-255, or the smallest size or duration, such as 10s-
//	bits      the shortest and the longest prefix of a network, such as 8-29
//	items     the smallest and the largest number of items
//	default   the value if the key is not given
//	follows   the key or rule that gives the default; the section's derive function sets it
//	example   a value, as YAML; without it, the default is shown
type Cluster struct {
	// Stack is the name of the Pulumi stack, such as "infra". It is not a key of the file.
	Stack string `json:"-"`

	// Running is set if the cluster was read from the outputs of its stack, not from its file. It is not a key of the file.
	Running bool `json:"-"`

	// Given are the paths of the keys that the stack file has, of sections and below them. It is nil for a cluster with Running, and for a
	// cluster that is declared in Go. It is not a key of the file.
	Given map[string]bool `json:"-"`

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
	Mesh        Mesh        `json:"mesh"`
	Readiness   Readiness   `json:"readiness"`
	Lifecycle   Lifecycle   `json:"lifecycle"`
	Storage     Storage     `json:"storage"`
	Checks      []Check     `json:"checks"`

	Accepted []Acceptance `json:"accepted"`

	Providers SecretProviders `json:"secrets"`

	// Git is what the repository declares of components, by the name of their release. It is not a key of the file.
	Git map[string]Git `json:"-"`

	Secrets
}

// New returns a Cluster with the defaults that are the same for all clusters.
func New(stack string) *Cluster {
	c := &Cluster{Stack: stack}
	SetDefaults(c)
	return c
}

// Complete checks the given keys, sets the defaults that follow other keys, and checks the whole. It adds all problems to findings.
// Call it once. A value with a wrong form is reported and set to its zero value, so that no other check reports it again. Do not
// use a Cluster that has a problem.
func (c *Cluster) Complete(findings *Findings) {
	for i := range c.NodePools {
		c.NodePools[i].setGenerations()
	}
	checkForms(c, findings)
	c.derive(findings)
	whole := clusterCheck{findings, c, map[string]string{}}
	whole.check()
	if findings.Len() == 0 { // both are about a cluster that is complete
		whole.announcement6()
		whole.values()
	}
}

// clusterCheck checks a cluster, each section and what sections have to do with each other.
type clusterCheck struct {
	*Findings
	*Cluster
	taken map[string]string // values that must be unique: kind and value → path of the key
}

// check checks the rules that involve more than one key. It skips a value that is missing or had a wrong form, which is zero.
func (c clusterCheck) check() {
	c.network()
	c.ipv6()
	c.nodePools()
	c.roles()
	c.placement()
	c.talos()
	c.metricsServer()
	c.snapshots()
	c.skippedNodes()
	c.snapshotBucket()
	c.versions()
	c.cilium()
	c.crds()
	c.outside()
	c.gitOps()
	c.argoCD()
	c.secrets()
	c.mesh()
	c.storage()
	c.ownChecks()
}

// derive sets the defaults that follow other keys.
func (c *Cluster) derive(findings *Findings) {
	c.Network.derive(c.Mesh.IsMember(), findings)
	c.deriveNodes(findings)
	for i := range c.NodePools {
		c.NodePools[i].derive(c.Proxmox)
	}
	c.place()
	c.Talos.derive()
	c.Cilium.derive()
	c.Providers.derive(c.SealedSecretsKey)
	c.CRDs.derive(c.CertManager, c.Providers)
	c.GitOps.derive(c.Stack)
	c.Readiness.derive(len(c.Machines()))
	c.Storage.derive(len(c.StorageMachines()))
}
