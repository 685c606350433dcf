package check

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cmd/command"
	fluxrelease "github.com/slipway-platform/slipway/internal/flux/release"
)

// HandOver returns the command that hands components over.
func HandOver(name string) *cobra.Command {
	return &cobra.Command{
		Use: name + " STACK|FILE COMPONENT...", Short: "Write the file with which Flux or Argo CD takes over a component",
		Long: "Writes the file with which Flux or Argo CD takes over a component, for each COMPONENT, from the stack file that declares it " +
			"to Pulumi.",
		Args: cobra.MinimumNArgs(2),
		ValidArgsFunction: func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeStacks(c, args, begun)
		},
		RunE: func(c *cobra.Command, args []string) error {
			return command.Exit(handOver(args[0], args[1:], c.OutOrStdout(), c.ErrOrStderr()))
		},
	}
}

// handOver writes the file with which the engine takes over a component, for each component, from the stack file that declares it to
// Pulumi, and for Argo CD the Application for these files. The stack file may name the engine as the owner already. It changes nothing
// else, and no file that exists.
func handOver(stack string, components []string, out, problems io.Writer) int {
	stackPath, err := find(stack)
	if err != nil {
		_, _ = fmt.Fprintln(problems, err)
		return unreadable
	}
	file, code := check(stackPath, time.Now(), true, problems)
	if file == nil {
		return code
	}
	var sections []string
	for _, component := range components {
		path, release, err := writeFile(filepath.Dir(stackPath), file.stack, component)
		if err != nil {
			_, _ = fmt.Fprintf(problems, "%s: %v\n", stackPath, err)
			return invalid
		}
		_, _ = fmt.Fprintf(out, "%s: written\n", path)
		sections = append(sections, release.Key)
	}
	owner := cluster.OwnerFlux
	if file.stack.GitOps.ByArgoCD() {
		owner = cluster.OwnerArgoCD
		path, err := writeApplication(filepath.Dir(stackPath), file.stack.GitOps)
		if err != nil {
			_, _ = fmt.Fprintf(problems, "%s: %v\n", stackPath, err)
			return invalid
		}
		_, _ = fmt.Fprintf(out, "%s: is the Application; name it in the resources of the kustomization beside it\n", path)
	}
	_, _ = fmt.Fprintf(out, "Next, in %s: write owner: %s below %s, and remove version, values, and chart or repository there.\n",
		stackPath, owner, strings.Join(sections, " and "))
	_, _ = fmt.Fprintln(out, "Then commit the files, look at pulumi preview, run pulumi up, and push.")
	return valid
}

// writeFile writes the file of a component into the checkout, and returns its path.
func writeFile(checkout string, stack *cluster.Cluster, component string) (string, cluster.Service, error) {
	releases := stack.Releases()
	i := slices.IndexFunc(releases, func(release cluster.Service) bool { return release.Name == component })
	if i < 0 {
		var names []string
		for _, release := range releases {
			names = append(names, release.Name)
		}
		return "", cluster.Service{}, fmt.Errorf("%q is no component of this stack with a Helm release; write one of %s",
			component, strings.Join(names, ", "))
	}
	release := releases[i]
	text, err := fluxrelease.Text(release)
	if err != nil {
		return "", release, err
	}
	path := filepath.Join(checkout, filepath.FromSlash(fluxrelease.File(stack.GitOps, release.Name)))
	err = writeNew(path, text)
	if errors.Is(err, os.ErrExist) {
		err = fmt.Errorf("%s exists already; change it there, or remove it first", path)
	}
	return path, release, err
}

// writeApplication writes the Application for the files of components into the checkout, unless it is there, and returns its path.
func writeApplication(checkout string, git cluster.GitOps) (string, error) {
	path := filepath.Join(checkout, filepath.FromSlash(git.Path), "platform.yaml")
	err := writeNew(path, fluxrelease.Application(git))
	if errors.Is(err, os.ErrExist) {
		err = nil
	}
	return path, err
}

// writeNew writes a file that does not exist yet, with its folder.
func writeNew(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a folder of the repository
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // likewise
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}
