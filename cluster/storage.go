package cluster

// Storage declares the cluster's role in the shared storage.
type Storage struct {
	// The cluster's role in the shared storage, passed to Flux as `STORAGE_ROLE`: a `provider` runs the storage operators, a
	// `consumer` uses the storage of another cluster.
	Role StorageRole `json:"role" default:"none" example:"consumer"`
}

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
