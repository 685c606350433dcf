package config

import "fmt"

// Role is a machine's type, as Talos spells it.
type Role string

// The roles.
const (
	RoleControlPlane Role = "controlplane"
	RoleWorker       Role = "worker"
)

// UnmarshalText accepts the roles above, exactly.
func (r *Role) UnmarshalText(text []byte) error {
	switch role := Role(text); role {
	case RoleControlPlane, RoleWorker:
		*r = role
		return nil
	}
	return fmt.Errorf("not a role; write %s or %s", RoleControlPlane, RoleWorker)
}

// StorageRole is a cluster's part in the shared storage.
type StorageRole string

// The storage roles: a provider runs the storage operators, a consumer uses another cluster's storage.
const (
	StorageNone     StorageRole = "none"
	StorageProvider StorageRole = "provider"
	StorageConsumer StorageRole = "consumer"
)

// UnmarshalText accepts the storage roles above, exactly.
func (r *StorageRole) UnmarshalText(text []byte) error {
	switch role := StorageRole(text); role {
	case StorageNone, StorageProvider, StorageConsumer:
		*r = role
		return nil
	}
	return fmt.Errorf("not a storage role; write %s, %s or %s", StorageNone, StorageProvider, StorageConsumer)
}
