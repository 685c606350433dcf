package workload

import (
	"context"
	"fmt"
	"slices"
)

// quiet is a container that becomes ready and does nothing else, unless its command says how it ends.
func quiet(ctx context.Context, c Container) (*Instance, error) {
	i, _ := NewInstance(ctx)
	if f := fateOf(c.command()); f.known {
		end(c, i, f)
	} else {
		fmt.Fprintf(c.Log, "simulated container %s of image %s: it only becomes ready\n", c.Spec.Name, c.Spec.Image)
	}
	i.After(c.Cluster.PodStart, func() { i.SetReady(true) })
	return i, nil
}

// assumed is what the status of a container says that has ended with a code which the lab cannot know.
const assumed = "exit code 0 is assumed: the lab has no images and cannot run the command"

// completes is a container that ends by itself: init containers and jobs. If its command does not say how, it ends with
// 0, because every chart's own jobs would fail otherwise. It runs shorter than a pod's start, because a pod can have many
// in a row.
func completes(ctx context.Context, c Container) (*Instance, error) {
	i, ctx := NewInstance(ctx)
	if script := scriptOf(c); script != nil {
		i.After(c.Cluster.PodStart/5, func() { i.Exit(script.run(ctx)) })
		return i, nil
	}
	if f := fateOf(c.command()); f.known {
		end(c, i, f)
		return i, nil
	}
	fmt.Fprintf(c.Log, "simulated container %s of image %s: the lab cannot run the command, and assumes that it exits with 0\n", c.Spec.Name, c.Spec.Image)
	i.Message = assumed
	i.After(c.Cluster.PodStart/5, func() { i.Exit(0) })
	return i, nil
}

// end ends a container as its command says.
func end(c Container, i *Instance, f fate) {
	fmt.Fprintf(c.Log, "simulated container %s of image %s: its command exits with %d\n", c.Spec.Name, c.Spec.Image, f.code)
	i.After(c.Cluster.PodStart/5+f.after, func() { i.Exit(f.code) })
}

// command is the container's command with its arguments; empty for the image's own.
func (c Container) command() []string {
	if len(c.Spec.Command) == 0 {
		return nil
	}
	return slices.Concat(c.Spec.Command, c.Spec.Args)
}
