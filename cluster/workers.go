package cluster

// Workers declares what applies to all workers.
type Workers struct {
	// When workers are created: `parallel` with the control plane, or `afterGate`, once the readiness gate has passed on the
	// control plane; a second gate then covers the workers.
	Join WorkerJoin `json:"join" default:"parallel" example:"afterGate"`
}

// WorkerJoin is when workers are created.
type WorkerJoin string

// The join orders.
const (
	JoinParallel  WorkerJoin = "parallel"
	JoinAfterGate WorkerJoin = "afterGate"
)

// Choices lists the join orders.
func (WorkerJoin) Choices() []string { return texts(JoinParallel, JoinAfterGate) }
