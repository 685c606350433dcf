package workload

import (
	"context"
	"fmt"
)

// quiet is a container that says so in its log and becomes ready.
func quiet(_ context.Context, c Container) (*Instance, error) {
	i := NewInstance()
	fmt.Fprintf(c.Log, "simulated container %s of image %s: it only becomes ready\n", c.Spec.Name, c.Spec.Image)
	i.after(c.Cluster.PodStart, func() { i.SetReady(true) })
	return i, nil
}

// completes is a container that does its work and exits: init containers and jobs. A start of many of them in a row
// should not cost many starts of a pod.
func completes(_ context.Context, c Container) (*Instance, error) {
	i := NewInstance()
	fmt.Fprintf(c.Log, "simulated container %s of image %s: it only exits with 0\n", c.Spec.Name, c.Spec.Image)
	i.after(c.Cluster.PodStart/5, func() { i.Exit(0) })
	return i, nil
}
