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

	"github.com/siderolabs/gen/xslices"
	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cmd/command"
	fluxrelease "github.com/slipway-platform/slipway/internal/engines/flux/release"
	"github.com/slipway-platform/slipway/internal/engines/flux/tree"
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
	files, err := filesOf(filepath.Dir(stackPath), file.stack, components)
	for _, file := range files {
		if err == nil {
			err = writeNew(file.path, file.text)
		}
	}
	if err != nil {
		_, _ = fmt.Fprintf(problems, "%s: %v\n", stackPath, err)
		return invalid
	}
	var sections []string
	for _, file := range files {
		_, _ = fmt.Fprintf(out, "%s: written\n", file.path)
		sections = append(sections, file.section)
	}
	owner, unnamed := cluster.OwnerFlux, ""
	if file.stack.GitOps.ByArgoCD() {
		owner = cluster.OwnerArgoCD
		path, err := writeApplication(filepath.Dir(stackPath), file.stack.GitOps)
		if err != nil {
			_, _ = fmt.Fprintf(problems, "%s: %v\n", stackPath, err)
			return invalid
		}
		_, _ = fmt.Fprintf(out, "%s: is the Application; name it in the resources of the kustomization beside it\n", path)
	} else {
		unnamed = notNamed(filepath.Dir(stackPath), file.stack, components)
	}
	_, _ = fmt.Fprintf(out, "Next, in %s: write owner: %s below %s, and remove version, values, and chart or repository there.\n",
		stackPath, owner, strings.Join(sections, " and "))
	_, _ = fmt.Fprint(out, unnamed)
	_, _ = fmt.Fprintln(out, "Then commit the files, look at pulumi preview, run pulumi up, and push.")
	return valid
}

// ownFile is the file with which an engine takes over a component.
type ownFile struct{ path, text, section string }

// filesOf returns the files of components in the checkout. It returns all problems, so that either all files are written or none.
func filesOf(checkout string, stack *cluster.Cluster, components []string) (files []ownFile, err error) {
	releases := stack.Releases()
	names := xslices.Map(releases, func(release cluster.Service) string { return release.Name })
	for n, component := range components {
		if slices.Contains(components[:n], component) {
			continue
		}
		i := slices.Index(names, component)
		if i < 0 {
			err = errors.Join(err, fmt.Errorf("%q is no component of this stack with a Helm release; write one of %s",
				component, strings.Join(names, ", ")))
			continue
		}
		text, problem := fluxrelease.Text(releases[i])
		path := filepath.Join(checkout, filepath.FromSlash(fluxrelease.File(stack.GitOps, component)))
		if _, exists := os.Lstat(path); exists == nil {
			problem = errors.Join(problem, fmt.Errorf("%s exists already; change it there, or remove it first", path))
		}
		err, files = errors.Join(err, problem), append(files, ownFile{path, text, releases[i].Key})
	}
	return files, err
}

// notNamed returns what to name in the kustomizations of the folder that Flux applies, one line for each file that Flux would not apply.
func notNamed(checkout string, stack *cluster.Cluster, components []string) (lines string) {
	for _, component := range xslices.Deduplicate(components, func(name string) string { return name }) {
		if line := tree.ToName(os.DirFS(checkout), stack, fluxrelease.File(stack.GitOps, component)); line != "" {
			lines += "Also " + line + ".\n"
		}
	}
	return lines
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
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}
