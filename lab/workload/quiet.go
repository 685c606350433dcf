package workload

import (
	"context"
	"fmt"
)

// quiet is a container that becomes ready and does nothing else.
func quiet(_ context.Context, c Container) (*Instance, error) {
	i := NewInstance()
	fmt.Fprintf(c.Log, "simulated container %s of image %s: it only becomes ready\n", c.Spec.Name, c.Spec.Image)
	i.after(c.Cluster.PodStart, func() { i.SetReady(true) })
	return i, nil
}

// completes is a container that exits with 0: init containers and jobs. It runs shorter than a pod's start, because a
// pod can have many in a row.
func completes(_ context.Context, c Container) (*Instance, error) {
	i := NewInstance()
	fmt.Fprintf(c.Log, "simulated container %s of image %s: it only exits with 0\n", c.Spec.Name, c.Spec.Image)
	i.after(c.Cluster.PodStart/5, func() { i.Exit(0) })
	return i, nil
}
