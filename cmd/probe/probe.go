// Package probe is the probe as a command. It waits until a cluster is healthy (gate), until what Helm releases installed runs
// (workloads), until a secret has synced (external-secrets), until Flux or Argo CD has applied its tree (handover, argocd), until the
// cluster is connected with its mesh (mesh), until pods get volumes (storage), or until the checks of the stack file hold (checks), and
// prints what is missing while it waits. The subcommands bootstrap, rotate, retire, upgrade, crds, prune, argocd-removal and leftovers
// change the cluster, storage removes what it creates, argocd asks Argo CD to compare anew and begins failed syncs again, snapshot copies
// etcd to a file, and picture only reads files. The program runs it with a spec on standard input; a person runs it with flags.
package probe

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/internal/crds"
	"github.com/slipway-platform/slipway/internal/engines/argocd/removal"
	"github.com/slipway-platform/slipway/internal/engines/flux/prune"
	"github.com/slipway-platform/slipway/internal/nodes/upgrade"
	"github.com/slipway-platform/slipway/internal/probe"
)

// subcommands, each in a file of its own.
var subcommands = []struct {
	name, does string
	define     func(*cobra.Command) // adds its flags, and what it runs
}{
	{"gate", "Wait until machines, etcd, Kubernetes and Cilium are healthy", defineGate},
	{"workloads", "Wait until everything of some Helm releases is rolled out and Ready", defineWorkloads},
	{"external-secrets", "Wait until an ExternalSecret has synced from its ClusterSecretStore", defineExternalSecrets},
	{"handover", "Wait until Flux has applied the root Kustomization and everything below it", defineHandover},
	{"argocd", "Wait until Argo CD has applied the root Application and everything below it", defineArgoCD},
	{"mesh", "Wait until every agent sees every peer of the cluster's mesh", defineMesh},
	{"storage", "Wait until a volume of each StorageClass was bound, written, read and removed", defineStorage},
	{"checks", "Wait until the checks of the stack file hold", defineChecks},
	{"snapshot", "Copy etcd to a file, verified, and encrypted if wanted", defineSnapshot},
	{"bootstrap", "Start etcd on the first control plane, empty or from a snapshot, unless it already runs", defineBootstrap},
	{"rotate", "Replace the CA of the Talos APIs, of Kubernetes or of etcd, in three passes over the nodes", defineRotate},
	{"retire", "Remove the nodes that are not declared any more", change(retireNodes)},
	{"upgrade", "Bring the nodes to the declared Talos and Kubernetes, one after the other", change(upgrade.Run)},
	{"crds", "Apply CRDs from pinned manifests and wait until they are served", change(crds.Run)},
	{"picture", "Write what a pulumi up did as one HTML page, from its event log", definePicture},
	{"prune", "Make Flux remove everything that it has applied and wait until that is done", change(prune.Run)},
	{"argocd-removal", "Delete Argo CD's Applications, with or without what they have applied", change(removal.Run)},
	{"leftovers", "Remove what interrupted runs have left on Proxmox VE of a cluster that is destroyed", defineLeftovers},
}

const does = `Looks at a cluster, and waits until it is healthy.

Bootstrap, rotate, retire, upgrade, crds, prune, argocd-removal and leftovers change the cluster; their spec is read from standard input.
Snapshot has flags only, and picture only reads files.
The others change nothing; the samples of workloads are dry runs, storage removes the volume that it creates, and argocd without --once
asks Argo CD to compare anew, and begins failed syncs again. Without --kubeconfig their spec is read as one JSON object from standard
input.
Progress goes to standard error: on a terminal a table that is redrawn, elsewhere lines; at its end one sentence. The report goes to standard
output, with one line of JSON at its end if all conditions hold.
Exit code: 0 all conditions hold, 1 one does not (the report names it), 2 wrong flags or spec.`

// Command returns the probe as a command of this process.
func Command(name string) *cobra.Command {
	c := newCommand(name, prepare)
	if terminal(os.Stderr) == nil {
		c.SetErr(&shortLines{to: os.Stderr})
	}
	return c
}

// prepare makes a subcommand end after an interrupt, and when the run that has started it is gone.
func prepare(c *cobra.Command, _ []string) {
	klog.SetLogger(logr.Discard()) // client-go's own messages; what matters is in the results
	ctx, _ := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if isPipe(os.Stdin) {
		ctx = whileStarted(ctx)
	}
	c.SetContext(ctx)
}

// newCommand returns the probe. prepare, if not nil, runs before a subcommand.
func newCommand(name string, prepare func(*cobra.Command, []string)) *cobra.Command {
	group := command.Group(&cobra.Command{Use: name, Short: "Look at a cluster, and wait until it is healthy", Long: does})
	for _, one := range subcommands {
		c := &cobra.Command{
			Use: one.name, Short: one.does, Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions, PreRun: prepare,
		}
		one.define(c)
		group.AddCommand(c)
	}
	return group
}

func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q: is not a flag; the spec comes from flags or from standard input", args[0])
	}
	return nil
}

// readStdin reads the spec from standard input.
func readStdin(c *cobra.Command, spec probe.Spec) error {
	if err := probe.Read(c.InOrStdin(), spec); err != nil {
		return command.Wrong(err)
	}
	return nil
}
