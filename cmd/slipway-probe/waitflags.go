package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/observe"
	"github.com/slipway-platform/slipway/internal/probe"
)

// waitFlags are the flags that all subcommands that wait have in common.
type waitFlags struct {
	*flag.FlagSet
	call   call
	target *health.Target // of the subcommand's spec
	calls  *observe.Calls

	cluster, kubeconfig string
	timeout, stable     time.Duration
	once                bool
	output              output
}

// newWaitFlags defines the flags. Their values are stored in target, which is part of the spec, by read.
func newWaitFlags(c call, target *health.Target) *waitFlags {
	f := &waitFlags{FlagSet: c.flags(), call: c, target: target, calls: new(observe.Calls)}
	f.StringVar(&f.cluster, "cluster", "by hand", "cluster `name`, for the report")
	f.StringVar(&f.kubeconfig, "kubeconfig", "", "`file` with the cluster's kubeconfig; without it the spec is read from standard input")
	f.DurationVar(&f.timeout, "timeout", health.DefaultTimeout, "longest wait for all conditions together")
	f.DurationVar(&f.stable, "stable-for", health.DefaultStableFor, "how long all conditions must hold without a break")
	f.BoolVar(&f.once, "once", false, "look once and do not wait for what does not hold")
	f.output.flag(f.FlagSet)
	return f
}

// read reads the spec: from standard input without any flag but -o and --once, else from the flags. In between, byHand sets what is not in
// target, if not nil; it is given the content of the kubeconfig.
func (f *waitFlags) read(spec probe.Spec, byHand func(kubeconfig string) error) error {
	if err := f.call.parse(f.FlagSet); err != nil {
		return err
	}
	if f.kubeconfig == "" {
		declares := false
		f.Visit(func(given *flag.Flag) { declares = declares || given.Name != "o" && given.Name != "once" })
		if declares {
			return usageError{errors.New("--kubeconfig: is missing; give the file, or the spec on standard input and no flag but -o and --once")}
		}
		return f.call.readStdin(spec)
	}
	kubeconfig, err := readFile("--kubeconfig", f.kubeconfig)
	if err != nil {
		return err
	}
	if byHand != nil {
		if err := byHand(kubeconfig); err != nil {
			return err
		}
	}
	f.target.Kubeconfig = kubeconfig
	if f.target.Cluster == "" {
		f.target.Cluster = f.cluster
	}
	f.Visit(func(given *flag.Flag) { // flags override what byHand has read
		switch given.Name {
		case "cluster":
			f.target.Cluster = f.cluster
		case "timeout":
			f.target.Timeout = probe.Duration(f.timeout)
		case "stable-for":
			f.target.StableFor = probe.Duration(f.stable)
		}
	})
	if err := probe.Complete(spec); err != nil {
		return usageError{err}
	}
	return nil
}

// kube makes the client of the target.
func (f *waitFlags) kube(kubeconfig string) (*observe.Kube, error) {
	kube, err := observe.NewKube([]byte(kubeconfig), f.calls)
	if err != nil {
		return nil, usageError{err}
	}
	return kube, nil
}

// toolFlags returns the flags with which a tool reaches the cluster: a file, or the context of a spec's credentials.
func toolFlags(flagName, path, context string) string {
	if path != "" {
		return " " + flagName + " " + path
	}
	return " --context " + context
}

// readFile returns the content of the file that a flag names.
func readFile(flagName, path string) (string, error) {
	if path == "" {
		return "", usageError{fmt.Errorf("%s: is missing; give the file", flagName)}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", usageError{fmt.Errorf("%s: %w", flagName, err)}
	}
	return string(content), nil
}
