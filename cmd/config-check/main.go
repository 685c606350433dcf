// Command config-check checks stack files without running anything: no Pulumi, no cluster, no passphrase.
//
//	config-check infra                # Pulumi.infra.yaml, of this folder or one above
//	config-check path/to/Pulumi.x.yaml
//
// It prints every problem as FILE:LINE: PATH: VALUE PROBLEM; REMEDY, or what the file declares. The exit code is 0 if all
// files are valid, 1 if one is not, and 2 if one cannot be read.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/slipway-platform/slipway/stacks/config"
)

const (
	valid      = 0
	invalid    = 1
	unreadable = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(stacks []string, out, problems io.Writer) int {
	if len(stacks) == 0 || strings.HasPrefix(stacks[0], "-") {
		_, _ = fmt.Fprintln(problems, "usage: config-check STACK|FILE...")
		return unreadable
	}
	worst := valid
	for _, stack := range stacks {
		worst = max(worst, check(stack, out, problems))
	}
	return worst
}

// check checks one stack file, named by its stack or its path.
func check(stack string, out, problems io.Writer) int {
	path, err := find(stack)
	if err != nil {
		_, _ = fmt.Fprintln(problems, err)
		return unreadable
	}
	text, err := os.ReadFile(path) //nolint:gosec // reading the file that it is given is what the command is for
	if err != nil {
		_, _ = fmt.Fprintln(problems, err)
		return unreadable
	}
	source, err := config.ParseFile(path, text)
	if err != nil {
		_, _ = fmt.Fprintln(problems, err)
		return invalid
	}
	loaded, err := config.Load(source)
	if err != nil {
		report(path, text, err, problems)
		return invalid
	}
	summarize(path, loaded, out)
	return valid
}

// find returns the path of a stack's file: the argument itself if it is one, or the file of the stack of that name in
// this folder or the nearest one above that has it.
func find(stack string) (string, error) {
	if strings.ContainsRune(stack, filepath.Separator) || filepath.Ext(stack) == ".yaml" || filepath.Ext(stack) == ".yml" {
		return stack, nil
	}
	name := "Pulumi." + stack + ".yaml"
	folder, err := filepath.Abs(".")
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil { //nolint:gosec // as above
			if here, err := filepath.Abs("."); err == nil && here == folder {
				return name, nil
			}
			return filepath.Join(folder, name), nil
		}
		above := filepath.Dir(folder)
		if above == folder {
			return "", fmt.Errorf("%s: no %s in this folder or one above; name the stack or its file", stack, name)
		}
		folder = above
	}
}

// report prints every problem, each with the line that it is about.
func report(path string, text []byte, err error, to io.Writer) {
	lines := config.ReadLines(text)
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // the outermost layer is the list
		all = joined.Unwrap()
	}
	for _, one := range all {
		at := path
		var problem *config.Problem
		if errors.As(one, &problem) {
			if line := lines.Find(problem.Path); line > 0 {
				at = fmt.Sprintf("%s:%d", path, line)
			}
		}
		_, _ = fmt.Fprintf(to, "%s: %v\n", at, one)
	}
	noun := "problems"
	if len(all) == 1 {
		noun = "problem"
	}
	_, _ = fmt.Fprintf(to, "%s: %d %s\n", path, len(all), noun)
}

// summarize prints what a valid file declares: where each machine runs, which the file may leave open, and which secrets
// are still to be set.
func summarize(path string, stack *config.Stack, to io.Writer) {
	_, _ = fmt.Fprintf(to, "%s: valid\n", path)
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "  NODE\tROLE\tHOST\tVM\tADDRESS")
	for _, node := range stack.Nodes() {
		addresses := node.Address.String()
		if node.Address6.IsValid() {
			addresses += "," + node.Address6.String()
		}
		_, _ = fmt.Fprintf(table, "  %s\t%s\t%s\t%d\t%s\n", node.Name, node.Pool.Role, node.Host, node.VMID, addresses)
	}
	_ = table.Flush()
	if !stack.GitPassword.IsSet() {
		_, _ = fmt.Fprintf(to, "  gitPassword is not in this file; set it with: pulumi config set --stack %s --secret %s:gitPassword\n",
			stack.Name, config.Namespace)
	}
}
