// Package config is the configuration of one Slipway stack: its model, its defaults, its strict loading and its
// validation. It imports no Pulumi, so that the program, its tests and a check by hand load a stack file the same way.
//
// The exported structs mirror what a stack file says. A top-level key of the project's namespace ("slipway:cluster")
// is a field of Stack; below that, the json tag is the key's name, exactly, case included. schema.json, the JSON Schema
// for editors, is generated from the model and from the words of docs/configuration.md.
package config

// Stack is the whole configuration of one stack, defaults filled in, validated.
type Stack struct {
	// Name is the Pulumi stack's name, such as "infra". It is not a key of the file.
	Name string `json:"-"`

	Cluster      Cluster      `json:"cluster" config:"required"`   // required
	Proxmox      Proxmox      `json:"proxmox" config:"required"`   // required
	Network      Network      `json:"network" config:"required"`   // required
	NodePools    []NodePool   `json:"nodePools" config:"required"` // required; in order: the first control plane is the one that bootstraps
	WorkerPolicy WorkerPolicy `json:"workers"`                     // optional
	Talos        Talos        `json:"talos"`                       // optional
	Kubernetes   Kubernetes   `json:"kubernetes"`                  // optional
	CRDs         CRDs         `json:"crds"`                        // optional
	Cilium       Cilium       `json:"cilium"`                      // optional
	CoreDNS      CoreDNS      `json:"coreDNS"`                     // optional
	Spegel       Spegel       `json:"spegel"`                      // optional
	CertManager  CertManager  `json:"certManager"`                 // optional
	GitOps       GitOps       `json:"gitops" config:"required"`    // required
	Readiness    Readiness    `json:"readiness"`                   // optional
	Storage      Storage      `json:"storage"`                     // optional

	// GitPassword is the password or token of GitOps.Username; required, secret.
	GitPassword Secret `json:"gitPassword"`
	// ProxmoxAPIToken is USER@REALM!TOKENID=UUID; secret. Unset means that the Proxmox provider reads the environment
	// variable PROXMOX_VE_API_TOKEN.
	ProxmoxAPIToken Secret `json:"proxmoxApiToken"`
}

// Cluster identifies the cluster, to Talos, to Kubernetes clients and in Cilium's mesh.
type Cluster struct {
	Name string `json:"name" config:"required"` // lower-case RFC 1123 label of at most 32 characters (Cilium's rule); required
	ID   int    `json:"id" config:"required"`   // 1 to 255, different in every cluster of a mesh; required
}

// Proxmox is the Proxmox VE cluster that the machines run on.
type Proxmox struct {
	Endpoint   string     `json:"endpoint" config:"required"` // https URL of the API, such as https://pve.home.arpa:8006/; required
	Cluster    string     `json:"cluster"`                    // name of the Proxmox cluster, the label topology.kubernetes.io/region of every node; default pve
	Nodes      []string   `json:"nodes" config:"required"`    // names of the Proxmox nodes that may run machines; required
	Datastores Datastores `json:"datastores"`                 // optional
	Bridge     string     `json:"bridge"`                     // Linux bridge or SDN VNet of the machines' network device; default vmbr0
	VLAN       int        `json:"vlan"`                       // VLAN tag of that device, 1 to 4094; 0, the default, is untagged
	Tags       []string   `json:"tags"`                       // tags of every VM, beside Slipway's own; optional
	Insecure   bool       `json:"insecure"`                   // skip the verification of the endpoint's certificate; default false

	// AllowControlPlanesOnOneHost lets two control planes share a Proxmox node, whose failure then takes both; default
	// false. It is the declared exception for a Proxmox cluster with fewer nodes than control planes.
	AllowControlPlanesOnOneHost bool `json:"allowControlPlanesOnOneHost"`
}

// Datastores names the Proxmox storages in use. Both must exist on every one of Proxmox.Nodes.
type Datastores struct {
	ISO   string `json:"iso"`   // holds the Talos boot images; content type iso; default local
	Disks string `json:"disks"` // holds disks, EFI variables and cloud-init drives; content type images; default local-lvm
}

// Kubernetes is what Talos runs.
type Kubernetes struct {
	Version string `json:"version"` // such as v1.35.8; default DefaultKubernetesVersion

	// AllowSchedulingOnControlPlanes lets ordinary pods run on control planes; default false. A stack without workers
	// needs it.
	AllowSchedulingOnControlPlanes bool `json:"allowSchedulingOnControlPlanes"`
}

// GitOps is what Flux syncs from, and the Flux it is.
type GitOps struct {
	URL      string   `json:"url" config:"required"` // https URL of the Git repository, without credentials; required
	Branch   string   `json:"branch"`                // default main
	Path     string   `json:"path"`                  // folder in the repository, relative; default kubernetes/clusters/STACK
	Username string   `json:"username"`              // user of the Git host that GitPassword belongs to; default flux
	Interval Duration `json:"interval"`              // how often Flux looks for changes; default 1m
	Timeout  Duration `json:"timeout"`               // longest wait for Flux to have applied the tree; default 10m
	Operator Operator `json:"operator"`              // optional
	Flux     Flux     `json:"flux"`                  // optional
}

// Operator is the chart of flux-operator.
type Operator struct {
	Chart   string `json:"chart"`   // OCI reference without a tag; default oci://ghcr.io/controlplaneio-fluxcd/charts/flux-operator
	Version string `json:"version"` // chart version; default DefaultFluxOperatorVersion
}

// Flux is the distribution that flux-operator installs.
type Flux struct {
	Version  string `json:"version"`  // exact version, such as 2.9.5, or range, such as 2.9.x; default DefaultFluxVersion
	Registry string `json:"registry"` // registry and path of the controllers' images; default ghcr.io/fluxcd
}

// Readiness is how long a cluster may take to become healthy.
type Readiness struct {
	Timeout Duration `json:"timeout"` // longest wait of a gate for all checks together, and for a core service to run; default 10m
}

// Storage is the cluster's part in the shared storage.
type Storage struct {
	Role StorageRole `json:"role"` // none, provider or consumer; default none
}
