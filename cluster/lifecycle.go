package cluster

import (
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// Lifecycle declares how `up` changes the nodes of a running cluster: one after the other, each in its turn.
type Lifecycle struct {
	TurnLimits
	// Upgrade Kubernetes to another minor release although clients use APIs that it does not have.
	AllowRemovedAPIs bool `json:"allowRemovedAPIs" example:"true"`
	// Allow an even number of control planes: on the way from one odd number to another, because each run removes one at most.
	AllowEvenControlPlanes bool `json:"allowEvenControlPlanes" example:"true"`
	// Change and remove nodes of a storage provider although Ceph lacks copies, a disk or a monitor: to replace the node that is the reason.
	// A node that is removed with the only copy of something takes it along.
	AllowDegradedStorage bool `json:"allowDegradedStorage" example:"true"`
	// Time before which no node may have booted. `up` reboots each that has, in its turn: declare the present time to reboot all nodes.
	BootedSince string `json:"bootedSince" form:"time" example:"\"2026-11-26T10:00:00Z\""`
	// Nodes that are left out.
	Skip SkippedNodes `json:"skip"`
	// Generations of the certificate authorities (CAs). A higher number makes `up` replace a CA.
	CertificateAuthorities CertificateAuthorities `json:"certificateAuthorities"`
	// Snapshots of etcd, of which `up` takes one before each upgrade, each new or removed control plane and each new CA.
	Snapshots Snapshots `json:"snapshots"`
}

// TurnLimits are the limits of the turns of nodes, in the stack file and in the specs of the runs of the probe.
type TurnLimits struct {
	// Workers that may be out of service at once while machines are changed or removed: a number, or a part of the declared workers,
	// rounded down, and one at least. Those count that are not Ready or cordoned for other reasons. Control planes always go one at a
	// time, and so does the first worker of each change.
	MaxUnavailable Share `json:"maxUnavailable" form:"share" default:"1" example:"10%"`
	// Longest drain of a node. If a PodDisruptionBudget still blocks a pod then, `up` stops, names both, and the node is schedulable again.
	DrainTimeout Duration `json:"drainTimeout" range:"10s-" default:"10m" example:"30m"`
	// Longest time until a changed node is back: an installation, a reboot and its services. If the node is not back then, `up` stops, names
	// what is missing, changes no other node, and leaves this node cordoned.
	ReturnTimeout Duration `json:"returnTimeout" range:"1m-" default:"20m" example:"45m"`
}

// SkippedNodes are the nodes that are left out.
type SkippedNodes []SkippedNode

// SkippedNode is a node that is left out on purpose, such as a node that waits for a spare part.
type SkippedNode struct {
	// Name of a node of `nodePools` that `up` leaves as it is, and that no gate waits for: see [Leaving a node
	// out](nodes.md#leaving-a-node-out).
	Name string `json:"name" config:"required" form:"label" example:"infra-worker-2"`
	// Why, and until when. Reports quote it.
	Reason string `json:"reason" config:"required" form:"sentence" example:"waits for a new disk, ticket 4711"`
}

// CertificateAuthorities declares how often the CAs of a running cluster were replaced.
type CertificateAuthorities struct {
	// Generation of the CA of the Talos APIs, which signs their certificates and those of their clients. A new cluster has 1. A higher one
	// replaces the CA on all nodes, without a reboot: see [new CAs](credentials.md#certificates-of-clients-and-cas). It never goes down.
	Talos int `json:"talos" range:"1-100" default:"1" example:"2"`
	// Generation of the CA of the Kubernetes API, which signs its certificates, those of kubelets and the kubeconfig. A new cluster has 1. A
	// higher one replaces the CA on all nodes, without a reboot, and restarts every workload whose pods use the Kubernetes API: see [new
	// CAs](credentials.md#certificates-of-clients-and-cas). It never goes down.
	Kubernetes int `json:"kubernetes" range:"1-100" default:"1" example:"2"`
	// Generation of the CA of etcd, which signs the certificates of its members and of their clients, the API servers. A new cluster has 1. A
	// higher one replaces the CA on all control planes, each of which is drained and reboots twice, one after the other: see [new
	// CAs](credentials.md#certificates-of-clients-and-cas). It never goes down.
	Etcd int `json:"etcd" range:"1-100" default:"1" example:"2"`
	// Namespaces whose pods `up` does not restart for a new CA of Kubernetes. Pods there that use the Kubernetes API lose access until you
	// restart them.
	LeaveNamespaces []string `json:"leaveNamespaces" form:"label" items:"1-" example:"[databases]"`
}

// Snapshots declares where the snapshots of etcd are kept that `up` takes.
type Snapshots struct {
	// Folder below `${XDG_STATE_HOME:-~/.local/state}/slipway` of whoever runs `up`. The snapshots hold all Secrets of the cluster.
	Folder string `json:"folder" form:"repository-path" default:"snapshots" example:"backups/etcd"`
	// How many snapshots of the cluster stay in the folder, after a change that has succeeded.
	Keep int `json:"keep" range:"1-1000" default:"5" example:"10"`
	// Age public keys that the snapshots are encrypted to. Without one, they are not encrypted.
	Recipients []string `json:"recipients" items:"1-" example:"[age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z]"`
	// Whether pods of the namespace `etcd-backup` may take snapshots with Talos's API, and Flux applies a CronJob there that copies them to
	// a bucket: see [the tree](gitops.md#snapshots-of-etcd). They are encrypted to the first of `recipients`.
	Scheduled bool `json:"scheduled" example:"true"`
	// Snapshot that `up` restores if no control plane has data of etcd: the name of a file in `folder`, an absolute path, or the key of an
	// object of the bucket, as `bucket:KEY`. While etcd exists, it does nothing. With `none`, `up` begins with an empty cluster where it
	// would refuse to, because all control planes of a cluster that existed are new. Remove the key afterwards.
	RecoverFrom string `json:"recoverFrom" form:"snapshot-file" example:"infra-20260102T030405Z.db.age"`
}

// RecoverNothing is the RecoverFrom with which a lost cluster begins anew, empty.
const RecoverNothing = syntax.NoSnapshot

// Restores reports whether a snapshot is declared that is to be restored.
func (s Snapshots) Restores() bool { return s.RecoverFrom != "" && s.RecoverFrom != RecoverNothing }

// Object returns the key of the object of the bucket that is to be restored; "" if it is none.
func (s Snapshots) Object() string {
	key, is := strings.CutPrefix(s.RecoverFrom, syntax.InBucket)
	if !is {
		return ""
	}
	return key
}

// BackupNamespace is the namespace whose pods take snapshots by a schedule.
const BackupNamespace = "etcd-backup"

// backupSettings are the cluster settings of the snapshots by a schedule.
var backupSettings = []Setting{
	{"ETCD_BACKUP", "lifecycle.snapshots.scheduled", "`bucket` if a CronJob takes snapshots of etcd; only then",
		only(func(c *Cluster) bool { return c.Lifecycle.Snapshots.Scheduled }, func(*Cluster) string { return "bucket" })},
	{"ETCD_BACKUP_RECIPIENT", "lifecycle.snapshots.recipients", "age public key that they are encrypted to; only then",
		func(c *Cluster) string {
			if s := c.Lifecycle.Snapshots; s.Scheduled && len(s.Recipients) > 0 {
				return s.Recipients[0]
			}
			return ""
		}},
}

func (c clusterCheck) scheduledSnapshots() {
	const path = "lifecycle.snapshots.scheduled"
	switch s := c.Lifecycle.Snapshots; {
	case !s.Scheduled:
	case !c.GitOps.Enabled:
		c.Found(path, "remove it, or set gitops.enabled", "needs Flux, which applies the CronJob")
	case len(s.Recipients) == 0:
		c.Found(path, "write one into lifecycle.snapshots.recipients", "needs an age public key: what is in a bucket is encrypted")
	case strings.HasPrefix(s.Recipients[0], "age1pq"):
		c.Found("lifecycle.snapshots.recipients[0]", "write one first that age-keygen made without -pq",
			"is a key that the CronJob does not know")
	}
}

// Has reports whether a node is left out.
func (s SkippedNodes) Has(name string) bool {
	return slices.ContainsFunc(s, func(node SkippedNode) bool { return node.Name == name })
}

// Serving returns those of the machines that are not left out.
func (c *Cluster) Serving(machines []Machine) []Machine {
	return slices.DeleteFunc(slices.Clone(machines), func(machine Machine) bool { return c.Lifecycle.Skip.Has(machine.Name) })
}

// skippedNodes checks the nodes that are left out.
func (c clusterCheck) skippedNodes() {
	names := namesOf(c.Machines())
	for i, node := range c.Lifecycle.Skip {
		path := ItemPath("lifecycle.skip", i) + ".name"
		c.take("skipped node", path, node.Name)
		if node.Name != "" && !slices.Contains(names, node.Name) {
			c.Found(path, OneOf(node.Name, names), "%s is not among the nodes of nodePools", node.Name)
		}
	}
	all := len(c.ControlPlanes())
	serve, needs := len(c.Serving(c.ControlPlanes())), all/2+1
	switch {
	case all == serve:
	case serve < needs:
		c.Found("lifecycle.skip", "leave fewer control planes out, or see the restore of a lost cluster in docs/recovery.md",
			"leaves %d of %d control planes, and etcd has a quorum with %d", serve, all, needs)
	case c.Lifecycle.Snapshots.RecoverFrom != "":
		c.Found("lifecycle.skip", "remove the control plane here, and give it a higher generation",
			"has a control plane, and lifecycle.snapshots.recoverFrom begins etcd anew on all of them")
	}
}

func (c clusterCheck) snapshots() {
	c.scheduledSnapshots()
	for i, recipient := range c.Lifecycle.Snapshots.Recipients {
		c.fault(ItemPath("lifecycle.snapshots.recipients", i), syntax.AgeRecipient(recipient))
	}
}
