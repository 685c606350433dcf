package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/observe"
	"github.com/slipway-platform/slipway/internal/probe"
)

// specFlags are the flags that make a spec by hand. Without any of them the spec comes from standard input.
type specFlags struct {
	*flag.FlagSet

	cluster, kubeconfig string
	timeout, stable     time.Duration
	form                form
	into                specFields
}

// specFields are what the specs of all waits have.
type specFields struct {
	cluster, kubeconfig *string
	timeout, stable     *probe.Duration
}

func newSpecFlags(command string, stderr io.Writer, into specFields) *specFlags {
	f := &specFlags{FlagSet: flag.NewFlagSet("slipway-probe "+command, flag.ContinueOnError), into: into}
	f.SetOutput(stderr)
	f.StringVar(&f.cluster, "cluster", "by hand", "cluster `name`, for the report")
	f.StringVar(&f.kubeconfig, "kubeconfig", "", "`file` with the cluster's kubeconfig; without it the spec is read from standard input")
	f.DurationVar(&f.timeout, "timeout", health.DefaultTimeout, "longest wait for all conditions together")
	f.DurationVar(&f.stable, "stable-for", health.DefaultStableFor, "how long all conditions must have held without a break")
	f.form.flags(f.FlagSet)
	return f
}

// read makes the spec.
func (f *specFlags) read(args []string, stdin io.Reader, spec probe.Spec) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q: takes no arguments, only flags", f.Arg(0))
	}
	if err := f.form.validate(); err != nil {
		return err
	}
	if f.kubeconfig == "" {
		if f.NFlag() > 0 {
			return errors.New("--kubeconfig: is missing; with any flag the spec is made from flags alone")
		}
		return probe.Read(stdin, spec)
	}
	*f.into.cluster, *f.into.timeout, *f.into.stable = f.cluster, probe.Duration(f.timeout), probe.Duration(f.stable)
	if err := readFile("--kubeconfig", f.kubeconfig, f.into.kubeconfig); err != nil {
		return err
	}
	return probe.Complete(spec)
}

// kubectl is what a proposed command has to be told to reach the cluster.
func (f *specFlags) kubectl(kube *observe.Kube) string {
	if f.kubeconfig != "" {
		return " --kubeconfig " + f.kubeconfig
	}
	return " --context " + kube.Context()
}
