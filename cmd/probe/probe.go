// Package probe is the probe as a command. It waits until a cluster is healthy (gate), until what Helm releases installed runs
// (workloads), until a secret has synced (external-secrets), until Flux or Argo CD has applied its tree (handover, argocd), until the
// cluster is connected with its mesh (mesh), until pods get volumes (storage), or until the checks of the stack file hold (checks), and
// prints what is missing while it waits. The subcommands bootstrap, rotate, retire, upgrade, crds, prune, argocd-removal and leftovers
// change the cluster, storage removes what it creates, argocd asks Argo CD to compare anew and begins failed syncs again, snapshot copies
// etcd to a file, and picture only reads files. The program runs it with a spec on standard input; a person runs it with flags.
package probe

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/slipway-platform/slipway/internal/argocd/removal"
	"github.com/slipway-platform/slipway/internal/crds"
	"github.com/slipway-platform/slipway/internal/flux/prune"
	"github.com/slipway-platform/slipway/internal/nodes/upgrade"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Exit codes.
const (
	exitOpen      = 0 // all conditions hold
	exitUnhealthy = 1 // the report names those that do not
	exitUsage     = 2 // flags or spec are wrong; nothing was read
)

// call is how the probe was called.
type call struct {
	program        string // command line before the subcommand: "slipway probe" or "slipway-probe"
	subcommand     string
	args           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	terminal       *os.File // of standard error; nil if it is none
}

// subcommands, each in a file of its own.
var subcommands = []struct {
	name, does string
	run        func(context.Context, call) error
}{
	{"gate", "wait until machines, etcd, Kubernetes and Cilium are healthy", runGate},
	{"workloads", "wait until everything of some Helm releases is rolled out and Ready", runWorkloads},
	{"external-secrets", "wait until an ExternalSecret has synced from its ClusterSecretStore", runExternalSecrets},
	{"handover", "wait until Flux has applied the root Kustomization and everything below it", runHandover},
	{"argocd", "wait until Argo CD has applied the root Application and everything below it", runArgoCD},
	{"mesh", "wait until every agent sees every peer of the cluster's mesh", runMesh},
	{"storage", "wait until a volume of each StorageClass was bound, written, read and removed", runStorage},
	{"checks", "wait until the checks of the stack file hold", runChecks},
	{"snapshot", "copy etcd to a file, verified, and encrypted if wanted", runSnapshot},
	{"bootstrap", "start etcd on the first control plane, empty or from a snapshot, unless it already runs", runBootstrap},
	{"rotate", "replace the CA of the Talos APIs or that of Kubernetes, in three passes over all nodes", runRotate},
	{"retire", "remove the nodes that are not declared any more", change(retireNodes)},
	{"upgrade", "bring the nodes to the declared Talos and Kubernetes, one after the other", change(upgrade.Run)},
	{"crds", "apply CRDs from pinned manifests and wait until they are served", change(crds.Run)},
	{"picture", "write what a pulumi up did as one HTML page, from its event log", runPicture},
	{"prune", "make Flux remove everything that it has applied and wait until that is done", change(prune.Run)},
	{"argocd-removal", "delete Argo CD's Applications, with or without what they have applied", change(removal.Run)},
	{"leftovers", "remove what interrupted runs have left on Proxmox VE of a cluster that is destroyed", runLeftovers},
}

const usageEnd = `
Bootstrap, rotate, retire, upgrade, crds, prune, argocd-removal and leftovers change the cluster; their spec is read from standard input.
Snapshot has flags only, and picture only reads files.
The others change nothing; the samples of workloads are dry runs, storage removes the volume that it creates, and argocd without --once
asks Argo CD to compare anew, and begins failed syncs again. Without --kubeconfig their spec is read as one JSON object from standard
input. "gate -h" and so on list the flags.
Progress goes to standard error: on a terminal a table that is redrawn, elsewhere lines; at its end one sentence. The report goes to standard
output, with one line of JSON at its end if all conditions hold.
Exit code: 0 all conditions hold, 1 one does not (the report names it), 2 wrong flags or spec.
`

// Main runs the subcommand in args for this process, and returns the exit code. program is the command line before the subcommand.
func Main(program string, args []string) int {
	klog.SetLogger(logr.Discard()) // client-go's own messages; what matters is in the results
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if isPipe(os.Stdin) {
		ctx = whileStarted(ctx)
	}
	return call{
		program: program, args: args, stdin: os.Stdin, stdout: os.Stdout, stderr: &shortLines{to: os.Stderr}, terminal: terminal(os.Stderr),
	}.run(ctx)
}

// run runs the subcommand that is the first argument.
func (c call) run(ctx context.Context) int {
	if len(c.args) == 0 {
		c.usage(c.stderr)
		return exitUsage
	}
	c.subcommand, c.args = c.args[0], c.args[1:]
	for _, s := range subcommands {
		if s.name == c.subcommand {
			return c.exitCode(s.run(ctx, c))
		}
	}
	switch c.subcommand {
	case "help", "-h", "--help":
		c.usage(c.stdout)
		return exitOpen
	}
	fmt.Fprintf(c.stderr, "%s: %q is not a subcommand\n\n", c.program, c.subcommand)
	c.usage(c.stderr)
	return exitUsage
}

func (c call) usage(w io.Writer) {
	fmt.Fprintf(w, "usage: %s SUBCOMMAND [flags]\n\n", c.program)
	for _, s := range subcommands {
		fmt.Fprintf(w, "  %-16s %s\n", s.name, s.does)
	}
	fmt.Fprint(w, usageEnd)
}

// usageError is an error about flags or spec.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitCode prints an error and returns the exit code for it.
func (c call) exitCode(err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return exitOpen
	}
	fmt.Fprintf(c.stderr, "%s %s: %v\n", c.program, c.subcommand, err)
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitUnhealthy
}

// flags returns the flag set of the subcommand.
func (c call) flags() *flag.FlagSet {
	flags := flag.NewFlagSet(c.program+" "+c.subcommand, flag.ContinueOnError)
	flags.SetOutput(c.stderr)
	return flags
}

// parse parses the flags and refuses other arguments.
func (c call) parse(flags *flag.FlagSet) error {
	if err := flags.Parse(c.args); err != nil {
		return usageError{err}
	}
	if flags.NArg() > 0 {
		return usageError{fmt.Errorf("%q: is not a flag; the spec comes from flags or from standard input", flags.Arg(0))}
	}
	return nil
}

// readStdin reads the spec from standard input.
func (c call) readStdin(spec probe.Spec) error {
	if err := probe.Read(c.stdin, spec); err != nil {
		return usageError{err}
	}
	return nil
}

// readOnlyStdin reads the spec of a subcommand that has no flags.
func (c call) readOnlyStdin(spec probe.Spec) error {
	if err := c.parse(c.flags()); err != nil {
		return err
	}
	return c.readStdin(spec)
}
