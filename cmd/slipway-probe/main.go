// Command slipway-probe waits until a cluster is healthy, until what Helm releases have put into it runs, or until Flux has taken it
// over, and says what is missing while it waits. The Pulumi program runs it with a spec on standard input; a person runs it with flags.
// Apart from bootstrap and crds it changes nothing.
package main

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
)

// Exit codes.
const (
	exitOpen      = 0 // everything holds
	exitUnhealthy = 1 // the report names what does not
	exitUsage     = 2 // flags or spec are wrong; nothing was looked at
)

const usage = `usage: slipway-probe gate|workloads|handover [flags]
       slipway-probe bootstrap|crds

  gate       wait until machines, etcd, Kubernetes and Cilium are healthy
  workloads  wait until everything of some Helm releases is rolled out and Ready
  handover   wait until Flux has applied the root Kustomization and all that hangs on it
  bootstrap  start etcd on the first control plane, unless it already runs; the spec comes from
             standard input
  crds       apply CustomResourceDefinitions from pinned manifests and wait until they are
             served; the spec comes from standard input

Bootstrap and crds are the commands that change something.
The others only read; what workloads offers to the API is a dry run. Without --kubeconfig their spec is read as one JSON object from
standard input.
Progress goes to standard error; the report, with one line of JSON at its end, to standard output.
Exit code: 0 everything holds, 1 something does not (the report names it), 2 wrong flags or spec.
"slipway-probe gate -h" and so on list the flags.
`

func main() {
	klog.SetLogger(logr.Discard()) // client-go's own remarks; what matters is in the results
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	var err error
	var code int
	switch args[0] {
	case "gate":
		code, err = gate(ctx, args[1:], stdin, stdout, stderr)
	case "workloads":
		code, err = workloads(ctx, args[1:], stdin, stdout, stderr)
	case "handover":
		code, err = handover(ctx, args[1:], stdin, stdout, stderr)
	case "bootstrap":
		code, err = bootstrapEtcd(ctx, args[1:], stdin, stdout, stderr)
	case "crds":
		code, err = applyCRDs(ctx, args[1:], stdin, stdout, stderr)
	case "help", "-h", "--help":
		fmt.Fprint(stdout, usage)
		return exitOpen
	default:
		fmt.Fprintf(stderr, "slipway-probe: %q is no command\n\n%s", args[0], usage)
		return exitUsage
	}
	if errors.Is(err, flag.ErrHelp) {
		return exitOpen
	}
	if err != nil {
		fmt.Fprintf(stderr, "slipway-probe %s: %v\n", args[0], err)
	}
	return code
}
