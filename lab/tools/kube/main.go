// kube is the lab's Kubernetes: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl in one
// binary. Each runs as its own process, but only one binary is built, cached and linked instead of five.
//
//	kube SUBCOMMAND [flags]
//
// It also runs as the program with the name of its file: a link `kubectl -> kube` is a kubectl.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// commands are constructed only when they run: NewAPIServerCommand installs signal handlers, which is possible once per
// process.
var commands = map[string]func() *cobra.Command{
	"etcd":                    newEtcdCommand,
	"etcd-restore":            newEtcdRestoreCommand,
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
}

func main() {
	name, args := filepath.Base(os.Args[0]), os.Args[1:]
	if !known(name) {
		if len(args) == 0 || !known(args[0]) {
			fmt.Fprintf(os.Stderr, "usage: kube %s [flags]\n", subcommands())
			os.Exit(2)
		}
		name, args = args[0], args[1:]
	}
	if name == "kubectl" {
		os.Exit(runKubectl(args))
	}
	if err := stamp(); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
	command := commands[name]()
	command.SetArgs(args)
	os.Exit(cli.Run(command))
}

// runKubectl runs kubectl as its own main does. kubectl reads os.Args itself (for plugins and warnings), so they must
// be those of a direct call.
func runKubectl(args []string) int {
	os.Args = append([]string{"kubectl"}, args...)
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
		return 1
	}
	return 0
}

func known(name string) bool {
	return slices.Contains(subcommands(), name)
}

func subcommands() []string {
	names := []string{"kubectl"}
	for name := range commands {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
