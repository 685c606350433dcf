package config

// Role is a machine's type, as Talos spells it.
type Role string

// The roles.
const (
	RoleControlPlane Role = "controlplane"
	RoleWorker       Role = "worker"
)

func (Role) choices() (string, []string) { return "a role", names(RoleControlPlane, RoleWorker) }

// StorageRole is a cluster's part in the shared storage.
type StorageRole string

// The storage roles: a provider runs the storage operators, a consumer uses another cluster's storage.
const (
	StorageNone     StorageRole = "none"
	StorageProvider StorageRole = "provider"
	StorageConsumer StorageRole = "consumer"
)

func (StorageRole) choices() (string, []string) {
	return "a storage role", names(StorageNone, StorageProvider, StorageConsumer)
}
