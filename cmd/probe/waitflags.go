package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/observe"
	"github.com/slipway-platform/slipway/internal/probe"
)

// waitFlags are the flags that all subcommands that wait have in common.
type waitFlags struct {
	*pflag.FlagSet
	command *cobra.Command
	spec    probe.Spec
	target  *health.Target // of the spec
	calls   *observe.Calls

	file                string // of the spec
	cluster, kubeconfig string
	timeout, stable     time.Duration
	once                bool
	output              output

	kube  *observe.Kube     // the client of the target, once it has been read
	tools map[string]string // flags with which a tool reaches the cluster, for the commands in the report
}

// newWaitFlags defines the flags. runs stores their values in target, which is part of the spec.
func newWaitFlags(c *cobra.Command, spec probe.Spec, target *health.Target) *waitFlags {
	f := &waitFlags{FlagSet: c.Flags(), command: c, spec: spec, target: target, calls: new(observe.Calls)}
	f.StringVar(&f.cluster, "cluster", "by hand", "cluster `name`, for the report")
	f.StringVar(&f.kubeconfig, "kubeconfig", "", "`file` with the cluster's kubeconfig; without it the spec is read from standard input")
	f.DurationVar(&f.timeout, "timeout", health.DefaultTimeout, "longest wait for all conditions together")
	f.DurationVar(&f.stable, "stable-for", health.DefaultStableFor, "how long all conditions must hold without a break")
	f.BoolVar(&f.once, "once", false, "look once and do not wait for what does not hold")
	f.output.flag(c)
	return f
}

// takesSpec defines --spec, and what the help says: further required flags, and what the subcommand does, with and without --spec.
func (f *waitFlags) takesSpec(needed, does, without string) {
	name := f.command.Name()
	f.StringVar(&f.file, "spec", "", "`file` with what is declared, as JSON: the stack's output "+name+"Spec")
	f.command.Use = name + " --kubeconfig FILE " + needed + "[flags]"
	f.command.Long = fmt.Sprintf(`%[2]s

What is declared comes from --spec: the stack's output %[1]sSpec, which holds no secret,
    pulumi stack output %[1]sSpec --stack infra >%[1]s.json
%[3]sWithout --kubeconfig the whole spec, credentials included, is read from standard input.`, name, does, without)
}

// runs sets what the subcommand does: it reads the spec, and waits.
func (f *waitFlags) runs(byHand, wait func(context.Context) error) {
	f.command.RunE = func(c *cobra.Command, _ []string) error {
		if err := f.read(c.Context(), byHand); err != nil {
			return err
		}
		return wait(c.Context())
	}
}

// read reads the spec: from standard input without any flag but -o and --once, else from the flags and the file of --spec. byHand, if not
// nil, then sets what is not in target.
func (f *waitFlags) read(ctx context.Context, byHand func(context.Context) error) error {
	if f.kubeconfig == "" {
		declares := false
		f.Visit(func(given *pflag.Flag) { declares = declares || given.Name != "output" && given.Name != "once" })
		if declares {
			return command.Wrong(errors.New("--kubeconfig: is missing; give the file, or the spec on standard input and no flag but -o and --once"))
		}
		if err := readStdin(f.command, f.spec); err != nil {
			return err
		}
		return f.connect(f.target.Kubeconfig)
	}
	kubeconfig, err := readFile("--kubeconfig", f.kubeconfig)
	if err != nil {
		return err
	}
	if err := f.connect(kubeconfig); err != nil {
		return err
	}
	if err := f.decodeFile(); err != nil {
		return err
	}
	if byHand != nil {
		if err := byHand(ctx); err != nil {
			return err
		}
	}
	f.target.Kubeconfig = kubeconfig
	if f.target.Cluster == "" {
		f.target.Cluster = f.cluster
	}
	f.Visit(func(given *pflag.Flag) { // flags override the file
		switch given.Name {
		case "cluster":
			f.target.Cluster = f.cluster
		case "timeout":
			f.target.Timeout = probe.Duration(f.timeout)
		case "stable-for":
			f.target.StableFor = probe.Duration(f.stable)
		}
	})
	if err := probe.Complete(f.spec); err != nil {
		return command.Wrong(err)
	}
	return nil
}

// connect makes the client of the target.
func (f *waitFlags) connect(kubeconfig string) (err error) {
	if f.kube, err = observe.NewKube([]byte(kubeconfig), f.calls); err != nil {
		return command.Wrong(err)
	}
	f.tools = map[string]string{"kubectl": toolFlags("--kubeconfig", f.kubeconfig, f.kube.Context)}
	return nil
}

// decodeFile reads the file of --spec, if it was given.
func (f *waitFlags) decodeFile() error {
	if f.file == "" {
		return nil
	}
	file, err := os.Open(f.file)
	if err != nil {
		return command.Wrong(fmt.Errorf("--spec: %w", err))
	}
	defer file.Close()
	if err := probe.Decode(file, f.spec); err != nil {
		return command.Wrong(fmt.Errorf("--spec: %s: %w", f.file, err))
	}
	return nil
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
		return "", command.Wrong(fmt.Errorf("%s: is missing; give the file", flagName))
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", command.Wrong(fmt.Errorf("%s: %w", flagName, err))
	}
	return string(content), nil
}
