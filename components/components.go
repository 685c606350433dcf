// Package components has what a program needs beside the components: their providers, and the names of the arguments that they share. Each
// component is in a folder of its own. The example in examples/homelab shows how they go together.
//
// A program passes the declared cluster, a cluster.Cluster that Complete has found no problem in, and the outputs of one component to the
// next. Order is made of leaves: a resource that must wait for a component depends on the component's Leaves, because a dependency on a
// component waits only for the children registered so far.
package components

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/handover"
	"github.com/slipway-platform/slipway/components/internal/step"
)

// Lifetime tells when the children of a component are created, and with what they are deleted.
type Lifetime = component.Lifetime

// InCluster holds the arguments of every component that creates objects in the cluster.
type InCluster = component.InCluster

// OwnedValues is where the engine reads the values that Slipway sets in the charts of the releases that the engine owns.
type OwnedValues = component.OwnedValues

// Steps holds the arguments of every component that runs slipway-probe.
type Steps = component.Steps

// GitOpsHandover is the handover to either engine.
type GitOpsHandover = handover.GitOpsHandover

// RunInstalled makes all components of a program run the probe of an installed binary, `slipway probe`, instead of compiling the probe. The
// binary is in the folder bin of the project, or on PATH. Call it before the first component.
func RunInstalled(ctx *pulumi.Context) error { return ctx.RegisterStackTransformation(step.Installed) }
