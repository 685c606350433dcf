package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Storage declares the cluster's part in the storage that clusters share. A provider runs Ceph, with Rook as its operator, on its data
// disks with `use: osd`. Consumers use it as an external cluster, and run no storage of their own.
type Storage struct {
	// The cluster's role in the shared storage. A `provider` needs data disks with `use: osd`, a `consumer` must not have any, and names
	// its provider.
	Role StorageRole `json:"role" default:"none" example:"consumer"`
	// Stack of the cluster whose storage a consumer uses. Its stack file lies beside this one, and has `role: provider`. The cluster need
	// not exist yet. Required with `role: consumer`.
	Provider string `json:"provider" form:"stack-name" example:"infra"`
	// Number of copies that a provider keeps of everything, each on another machine.
	Replicas *int `json:"replicas" range:"1-9" follows:"the machines with such a disk, at most 3" example:"2"`
	// Vault of 1Password through which the provider hands its consumers how they connect. All of them have the same, for nothing else, and
	// each has a token for this vault alone, `onepasswordStorageToken`. A consumer with `radosNamespace` has a vault of its own. Without this
	// key, the consumer's Secret must come from the repository, encrypted.
	Vault string `json:"vault" form:"onepassword-name" example:"storage"`
	// RADOS namespace of a consumer in the provider's pool, whose volumes and users are [apart](gitops.md#a-consumer-of-its-own) from those of
	// all others. With `vault`, no other cluster has the same vault. Only for a new consumer: a StorageClass does not change, and volumes that
	// exist stay where they are.
	RadosNamespace string `json:"radosNamespace" form:"label" example:"apps"`
	// User volume, a data disk with `use: volume`, in which the tree's StorageClass `local-path` makes volumes on the nodes that have it:
	// see [storage without Ceph](gitops.md#storage-without-ceph). With `role: none`, the class is the cluster's default. Without this
	// key, there is no such class.
	Local string `json:"local" form:"volume-name" example:"data"`

	// StorageClasses that pods can rely on. After the handover, `up` waits until a volume of each was bound, written, read and removed.
	// The tree must have them.
	Classes []string `json:"classes" form:"label" items:"1-" example:"[ceph-block]"`
	// CSI drivers, beside those of the classes, that must be registered on every node that takes ordinary pods.
	Drivers []string `json:"drivers" form:"csi-driver" items:"1-" example:"[rook-ceph.cephfs.csi.ceph.com]"`

	// ProviderCluster is the name of the provider's cluster. It is read from the stack file of a consumer's provider, and is no key.
	ProviderCluster string `json:"-"`
	// SameNamespace are the other stacks with the same RADOS namespace of the same provider. They are read from the stack files beside this
	// one, and are no key.
	SameNamespace []string `json:"-"`
}

// KnowsProvider reports whether the settings that follow a consumer's provider are known: its stack file could be read.
func (s Storage) KnowsProvider() bool { return s.Role != StorageConsumer || s.ProviderCluster != "" }

// StorageRole is a cluster's role in the shared storage.
type StorageRole string

// The storage roles.
const (
	StorageNone     StorageRole = "none"
	StorageProvider StorageRole = "provider"
	StorageConsumer StorageRole = "consumer"
)

// Choices lists the storage roles.
func (StorageRole) Choices() []string { return texts(StorageNone, StorageProvider, StorageConsumer) }

// Ceph's usual numbers. Fewer machines have less.
const (
	usualReplicas = 3 // copies
	usualMonitors = 3 // Ceph's quorum; Rook runs one on a machine
	usualManagers = 2 // one is on standby
)

// storageToken is the key of the token for the vault of the storage.
const storageToken = "onepasswordStorageToken"

// cephIsWhole is the check before and after each turn on a provider of storage: the next node that goes away must not take the last copy of
// something. Warnings that say nothing of copies do not count, such as a late scrub.
var cephIsWhole = cephSays("Ceph has all copies, disks and monitors",
	"'PG_AVAILABILITY', 'PG_DEGRADED', 'PG_DAMAGED', 'OBJECT_UNFOUND', 'OSD_DOWN', 'OSD_HOST_DOWN', 'MON_DOWN', 'error'",
	"to replace the node that is the reason, set lifecycle.allowDegradedStorage: true")

// cephServes is the check before a node is removed that is sick or lost. The node's own disks and monitor may be missing, which the other
// nodes tolerate. Data that nobody else has may be on the node's disks alone, which the removal deletes. If no monitor answers, Rook writes
// error.
var cephServes = cephSays("Ceph serves all data without the node", "'PG_AVAILABILITY', 'PG_DAMAGED', 'OBJECT_UNFOUND', 'error'",
	"the node's disks may have the only copy; to remove the node with them, set lifecycle.allowDegradedStorage: true")

// cephCopies is the check before a node with a disk of Ceph is removed. The pools say how many copies they keep: the declared number may be
// for machines that are still to come.
var cephCopies = Check{
	Name:       "Ceph keeps more than one copy of everything",
	Objects:    CheckedObjects{APIVersion: "ceph.rook.io/v1", Kind: "CephBlockPool", Namespace: RookNamespace},
	Expression: "object.spec.?replicated.?size.orValue(2) > 1",
	Message:    "keep more copies first, or move the data and set lifecycle.allowDegradedStorage: true",
}

// cephClusterKind is the kind of the object that says how Ceph is.
const cephClusterKind = "CephCluster"

// cephSays returns the check that Ceph has none of some health codes, by a recent status of Rook: while Rook's operator starts or waits, it
// leaves the status as it was (pkg/operator/ceph/cluster/cephstatus.go).
func cephSays(name, codes, message string) Check {
	return Check{
		Name:    name,
		Objects: CheckedObjects{APIVersion: "ceph.rook.io/v1", Kind: cephClusterKind, Namespace: RookNamespace, Name: "rook-ceph"},
		Expression: "!object.?status.?ceph.hasValue() || (!object.status.ceph.?details.orValue({}).exists(code, code in [" + codes + "]) && " +
			"timestamp(object.status.ceph.lastChecked) > now - duration('3m'))",
		Message: "kubectl -n rook-ceph describe cephcluster rook-ceph says what is missing, or that rook-ceph-operator has not asked Ceph " +
			"in the last 3 minutes, by this computer's clock; " + message,
	}
}

// cephAskedSince is the check that Rook has asked Ceph since a time: until then, its status says how Ceph was before.
func cephAskedSince(at time.Time) Check {
	text := at.UTC().Format(time.RFC3339)
	return Check{
		Name:       "Rook has asked Ceph since " + text,
		Objects:    cephIsWhole.Objects,
		Expression: "!object.?status.?ceph.hasValue() || timestamp(object.status.ceph.lastChecked) > timestamp('" + text + "')",
		Message: "rook-ceph-operator asks once a minute; if it does not, see kubectl -n rook-ceph logs deployment/rook-ceph-operator, and " +
			"compare the clock of its node with this computer's",
	}
}

// cephStatusAge is how old Rook's word about Ceph may be: it asks once a minute, and Ceph's answer may take some seconds
// (pkg/operator/ceph/cluster/cephstatus.go).
const cephStatusAge = 75 * time.Second

// TurnChecks are those of the stack file, and on a provider of storage that of Ceph.
func (c *Cluster) TurnChecks() TurnChecks {
	if c.Storage.Role != StorageProvider || c.Lifecycle.AllowDegradedStorage {
		return TurnChecks{Checks: c.Checks}
	}
	return TurnChecks{
		Checks: append(slices.Clone(c.Checks), cephIsWhole), Leaving: []Check{cephServes}, Settle: Duration{cephStatusAge},
		Storage: namesOf(c.StorageMachines()), Copies: []Check{cephCopies},
	}
}

// RookNamespace is the namespace of Ceph's operator and of all that the storage needs.
const RookNamespace = "rook-ceph"

// storageProviderPath is the key that names a consumer's provider.
const storageProviderPath = "storage.provider"

// DiskPath returns the name of a VM's SCSI disk by its place on the bus: 0 is the system disk, and 1 the first data disk. Unlike /dev/sda
// it always names the same disk.
func DiskPath(index int) string {
	return "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi" + strconv.Itoa(index)
}

// StorageMachines returns the machines with a disk of the shared storage.
func (c *Cluster) StorageMachines() []Machine {
	return slices.DeleteFunc(c.Machines(), func(m Machine) bool { return len(m.StorageDisks()) == 0 })
}

// StorageDisks returns the paths of the machine's disks of the shared storage.
func (m Machine) StorageDisks() []string {
	var paths []string
	for i, disk := range m.DataDisks {
		if disk.Use == DiskOSD {
			paths = append(paths, DiskPath(i+1))
		}
	}
	return paths
}

// IsVerified reports whether there is anything that a gate verifies.
func (s Storage) IsVerified() bool { return len(s.Classes)+len(s.Drivers) > 0 }

// Connection returns the ExternalSecret of the tree that tells a consumer how to connect to its provider; "" without one.
func (s Storage) Connection() (namespace, name string) {
	if s.Role != StorageConsumer || s.Vault == "" {
		return "", ""
	}
	return FluxNamespace, "storage-monitors"
}

// ClusterID returns the clusterID in the StorageClass of a consumer: its RADOS namespace, or Rook's name of the storage without one. ""
// without a consumer.
func (s Storage) ClusterID() string {
	if s.Role != StorageConsumer {
		return ""
	}
	return cmp.Or(s.RadosNamespace, RookNamespace)
}

// VaultReaders returns the namespaces that read or write the vault. Flux's has a consumer's list of the provider's monitors.
func (s Storage) VaultReaders() []string {
	if s.Role == StorageConsumer {
		return []string{FluxNamespace, RookNamespace}
	}
	return []string{RookNamespace}
}

func (s *Storage) derive(machines int) {
	if s.Role == StorageProvider && s.Replicas == nil && machines > 0 {
		s.Replicas = new(min(usualReplicas, machines))
	}
}

// storage checks the section without the stack files of others.
func (c clusterCheck) storage() {
	s, machines := c.Storage, len(c.StorageMachines())
	if c.Unusable("storage.role") || c.Unusable("nodePools") || c.hasUnreadDisk() {
		return
	}
	switch {
	case s.Role == StorageProvider && machines == 0 && len(c.NodePools) > 0:
		c.Found("storage.role", "give a pool of nodePools dataDisks with use: osd", "%s needs a disk of its own for the storage", s.Role)
	case s.Role == StorageConsumer && s.Provider == "":
		c.Found(storageProviderPath, "name the stack with role: provider", "is missing, and the role is %s", s.Role)
	case s.Role == StorageConsumer && s.Provider == c.Stack:
		c.Found(storageProviderPath, "name another stack", "%s is this stack", s.Provider)
	case s.Role != StorageConsumer && s.Provider != "":
		c.Found(storageProviderPath, "remove it, or write role: consumer", "%s is for a consumer, and the role is %s", s.Provider, s.Role)
	}
	c.storageDisks()
	c.storageReplicas(machines)
	c.storageVault()
	c.radosNamespace()
	c.verifiedStorage()
	c.localStorage()
}

// hasUnreadDisk reports whether the use of a data disk could not be read.
func (c clusterCheck) hasUnreadDisk() bool {
	for i, pool := range c.NodePools {
		for j := range pool.DataDisks {
			if c.Unusable(fmt.Sprintf("nodePools[%d].dataDisks[%d].use", i, j)) {
				return true
			}
		}
	}
	return false
}

// verifiedStorage checks that something brings the classes and drivers that a gate verifies: the tree does.
func (c clusterCheck) verifiedStorage() {
	if !c.GitOps.Enabled && c.Storage.IsVerified() {
		path := "storage.classes"
		if len(c.Storage.Classes) == 0 {
			path = "storage.drivers"
		}
		c.Found(path, "remove it, or set gitops.enabled: true", "comes with the tree, which nothing applies")
	}
}

// cephDisk is the size of the smallest disk that Ceph takes. ceph-volume rejects a smaller one with "Insufficient space (<5GB)" (Ceph,
// src/ceph-volume/ceph_volume/util/device.py), and Rook skips what it rejects (pkg/daemon/ceph/osd/daemon.go).
const cephDisk = 5 * GiB

// storageDisks checks that only a provider has disks of the shared storage, and that Ceph takes them.
func (c clusterCheck) storageDisks() {
	remedy := "write raw or volume, or storage.role: provider"
	if c.Storage.Role == StorageConsumer {
		remedy = "remove the disk, or write raw or volume"
	}
	for i, pool := range c.NodePools {
		for j, disk := range pool.DataDisks {
			switch at := fmt.Sprintf("nodePools[%d].dataDisks[%d]", i, j); {
			case disk.Use != DiskOSD:
			case c.Storage.Role != StorageProvider:
				c.Found(at+".use", remedy, "%s is for the provider of a storage, and storage.role is %s", disk.Use, c.Storage.Role)
			case disk.Size < cephDisk:
				c.Found(at+".size", fmt.Sprintf("write at least %s", cephDisk),
					"%s is too small for Ceph, which would leave the disk out", disk.Size)
			}
		}
	}
}

// adviseStorageMachines advises against disks of the shared storage in machines whose taints the tree's OSDs do not tolerate: its
// CephCluster has tolerations for monitors only.
func (c clusterCheck) adviseStorageMachines() {
	takesPods := namesOf(c.PodMachines())
	unused := slices.DeleteFunc(namesOf(c.StorageMachines()), func(name string) bool { return slices.Contains(takesPods, name) })
	if c.Storage.Role == StorageProvider && len(unused) > 0 {
		c.Found("storage.role", "remove the taints, set kubernetes.allowSchedulingOnControlPlanes for control planes, or give the "+
			"tree's CephCluster tolerations in spec.placement.osd", "%s, and no OSD tolerates the taints of %s: Ceph does not use their disks",
			c.Storage.Role, strings.Join(unused, ", "))
	}
}

func (c clusterCheck) storageReplicas(machines int) {
	const path = "storage.replicas"
	switch s := c.Storage; {
	case s.Replicas == nil:
	case s.Role != StorageProvider:
		c.Found(path, "remove it, or write role: provider", "%d is for a provider, and the role is %s", *s.Replicas, s.Role)
	case *s.Replicas > machines && machines > 0:
		c.Found(path, fmt.Sprintf("write at most %d, or give more machines a disk with use: osd", machines),
			"%d copies need as many machines with such a disk, and there are %d", *s.Replicas, machines)
	}
}

func (c clusterCheck) storageVault() {
	const path = "storage.vault"
	vault, onePassword := c.Storage.Vault, c.Providers.OnePassword
	switch {
	case vault == "":
	case c.Storage.Role == StorageNone:
		c.Found(path, "remove it, or write a role", "%s is for a provider and its consumers, and the role is %s", vault, c.Storage.Role)
	case onePassword == nil:
		c.Found(path, "add the section, or remove the vault", "%s needs secrets.onepassword, which is not declared", vault)
	case onePassword.OneClient() && !slices.Contains(onePassword.Vaults, vault):
		c.Found(path, "add it there, or write 2.5.0 or newer as secrets.onepassword.operator.version",
			"%s is not among secrets.onepassword.vaults", vault)
	}
	if vault == "" {
		c.unused(path, NamedSecret{storageToken, c.OnePasswordStorageToken})
	}
}

// radosNamespace checks that a RADOS namespace keeps a consumer apart. Rook's own ClientProfile, without a namespace, has the name
// rook-ceph (CreateDefaultClientProfile in pkg/operator/ceph/csi/config.go).
func (c clusterCheck) radosNamespace() {
	const path = "storage.radosNamespace"
	switch s := c.Storage; {
	case s.RadosNamespace == "":
	case s.Role != StorageConsumer:
		c.Found(path, "remove it, or write role: consumer", "%s is for a consumer, and the role is %s", s.RadosNamespace, s.Role)
	case s.RadosNamespace == RookNamespace:
		c.Found(path, "write another name, such as that of the cluster", "%s is what Rook calls the storage without a namespace",
			s.RadosNamespace)
	}
}

// adviseRadosNamespace advises against one RADOS namespace for two consumers. A cluster that takes over the volumes of another one has the
// same namespace on purpose.
func (c clusterCheck) adviseRadosNamespace() {
	if others := c.Storage.SameNamespace; len(others) > 0 {
		c.Found("storage.radosNamespace", "write another one in the newer cluster, unless both are to have the same volumes",
			"%s is also that of %s: each can read and delete the volumes of the other", c.Storage.RadosNamespace, strings.Join(others, ", "))
	}
}

// adviseStorageVault advises against reading the storage's vault with the token, and so from the namespaces, of the others.
func (c clusterCheck) adviseStorageVault() {
	one := c.Providers.OnePassword
	switch {
	case one == nil || c.Storage.Vault == "":
	case one.OneClient():
		c.Found("secrets.onepassword.operator.version", "write 2.5.0 or newer, and set "+storageToken,
			"%s has one client for all stores, so that storage.vault is used with onepasswordToken", one.Operator.Version)
	case slices.Contains(one.Vaults, c.Storage.Vault):
		c.Found("secrets.onepassword.vaults", "remove it there, and let onepasswordToken have no access to it",
			"has %s, which is storage.vault: more namespaces than the storage's can read the keys of Ceph", c.Storage.Vault)
	}
}

// storage checks what a provider of storage and a consumer of it must declare. A running consumer loses its data without its provider. A
// stack that becomes a provider offers storage after its next run.
func (c comparison) storage() {
	own, other := c.own.Storage, c.other.Storage
	consumes := own.Role == StorageConsumer && own.Provider == c.other.Stack
	provides := other.Role == StorageConsumer && other.Provider == c.own.Stack
	switch {
	case provides && own.Role != StorageProvider:
		c.taken("storage.role", fmt.Sprintf("write provider, or another storage.provider in %s", c.other.Stack),
			"%s, and %s consumes the storage of this cluster", own.Role, c.theOther())
	case c.other.Running:
	case consumes && other.Role != StorageProvider:
		c.Found(storageProviderPath, "write role: provider there, or name another stack",
			"%s provides no storage: its storage.role is %s", c.other.Stack, other.Role)
	case own.RadosNamespace+other.RadosNamespace != "":
		c.vaultsApart(consumes || provides)
	case (consumes || provides) && own.Vault != other.Vault:
		c.Found("storage.vault", "write the same in both", "%s is not that of %s, which is %s",
			cmp.Or(own.Vault, "none"), c.other.Stack, cmp.Or(other.Vault, "none"))
	}
}

// vaultsApart checks that a consumer with a RADOS namespace shares its vault neither with its provider nor with another consumer of it: a
// vault has one item of a provider, with one set of keys, and whoever reads a vault reads all of it. The provider writes both with the
// token for its own vault: the store in kubernetes/infrastructure/storage/provider/apart names the Secret, which is there only with
// storage.vault.
func (c comparison) vaultsApart(connected bool) {
	const path = "storage.vault"
	own, other := c.own.Storage, c.other.Storage
	besides := own.Role == StorageConsumer && own.Provider == other.Provider && own.RadosNamespace != other.RadosNamespace
	switch {
	case own.Vault != "" && own.Vault == other.Vault && (connected || besides):
		c.Found(path, "give each consumer with storage.radosNamespace a vault of its own",
			"%s is also that of %s, and has the keys of one consumer, or of all", own.Vault, c.other.Stack)
	case connected && own.Vault != "" && other.Vault == "" && own.Role == StorageConsumer:
		c.Found(path, "write another vault there, or remove this one", "%s is to be filled by %s, which has no vault", own.Vault, c.other.Stack)
	case connected && own.Vault == "" && other.Vault != "" && own.Role == StorageProvider:
		c.Found(path, fmt.Sprintf("write another vault, or remove that of %s", c.other.Stack),
			"is missing, and this cluster is to fill %s, the vault of %s", other.Vault, c.other.Stack)
	}
}

// storageNode is a node of the section storage of a CephCluster.
type storageNode struct {
	Name    string    `json:"name"`
	Devices []mapping `json:"devices"`
}

// storageNodes returns a provider's disks in Rook's form.
func (c *Cluster) storageNodes() []storageNode {
	var nodes []storageNode
	for _, machine := range c.StorageMachines() {
		node := storageNode{Name: machine.Name}
		for _, path := range machine.StorageDisks() {
			node.Devices = append(node.Devices, mapping{"name": path})
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// storageSettings are the cluster settings of the shared storage.
var storageSettings = []Setting{
	{"STORAGE_ROLE", "storage.role", "role in the shared storage", func(c *Cluster) string { return string(c.Storage.Role) }},
	{"STORAGE_PROVIDER", storageProviderPath, "name of the cluster that provides the storage, a provider's own; not with `role: none`",
		func(c *Cluster) string {
			if c.Storage.Role == StorageProvider {
				return c.Identity.Name
			}
			return c.Storage.ProviderCluster
		}},
	{"STORAGE_NODES", "nodePools[].dataDisks", "the nodes with the paths of their disks of `use: osd`, as a list in JSON: " +
		"`spec.storage.nodes` of a CephCluster; only of a provider",
		only(providesStorage, func(c *Cluster) string { return asJSON(c.storageNodes()) })},
	{"STORAGE_REPLICAS", "storage.replicas", "copies: `spec.replicated.size` of a pool, whose failure domain is `host`; only of a provider",
		only(providesStorage, func(c *Cluster) string { return strconv.Itoa(*c.Storage.Replicas) })},
	{"STORAGE_REPLICAS_SAFE", "storage.replicas", "whether there is more than one copy: `spec.replicated.requireSafeReplicaSize`; " +
		"only of a provider", only(providesStorage, func(c *Cluster) string { return strconv.FormatBool(*c.Storage.Replicas > 1) })},
	{"STORAGE_MONITORS", "nodePools", "Ceph's monitors: `spec.mon.count`, 3, or 1 if fewer than three machines, control planes " +
		"included, can run one; only of a provider",
		only(providesStorage, func(c *Cluster) string {
			// The manifests' monitors tolerate the taint of control planes: two workers alone would leave the storage with one monitor.
			if len(withoutTaints(c.Machines())) < usualMonitors {
				return "1"
			}
			return strconv.Itoa(usualMonitors)
		})},
	{"STORAGE_MANAGERS", "nodePools", "Ceph's managers: `spec.mgr.count`, 2, or 1 if one machine takes pods; only of a provider",
		only(providesStorage, func(c *Cluster) string { return strconv.Itoa(min(usualManagers, len(c.PodMachines()))) })},
	{"STORAGE_CONNECTION", "storage.vault", "how consumers learn to connect: `onepassword` with a vault, `apart` with a vault and " +
		"`storage.radosNamespace`, otherwise `git`; not with `role: none`",
		func(c *Cluster) string {
			switch {
			case c.Storage.Role == StorageNone:
				return ""
			case c.Storage.Vault != "" && c.Storage.RadosNamespace != "":
				return "apart"
			case c.Storage.Vault != "":
				return "onepassword"
			}
			return "git"
		}},
	{"STORAGE_CLUSTER_ID", "storage.radosNamespace", "`clusterID` of the StorageClass: the ClientProfile with the consumer's RADOS " +
		"namespace; only with one", func(c *Cluster) string { return c.Storage.RadosNamespace }},
	{"STORAGE_VAULT", "storage.vault", "the vault; only with one", func(c *Cluster) string { return c.Storage.Vault }},
}

// providesStorage reports whether the cluster is a provider. One without a disk for the storage, which is refused, has no number of copies.
func providesStorage(c *Cluster) bool {
	return c.Storage.Role == StorageProvider && c.Storage.Replicas != nil
}
