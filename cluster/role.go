package cluster

// Role is a machine's type, in Talos's spelling.
type Role string

// The roles.
const (
	ControlPlane Role = "controlplane"
	Worker       Role = "worker"
)

// Choices lists the roles.
func (Role) Choices() []string { return texts(ControlPlane, Worker) }
