// Package check checks stack files without running anything: no Pulumi, no cluster, no passphrase.
//
// For an invalid file it prints every problem as FILE:LINE: PATH: VALUE PROBLEM; REMEDY. For a valid file it prints the machines, and as
// warnings what should be changed.
// It also compares several files with each other, checks settings and variables with the manifests of gitops.path, and reads the files
// there of the components that Flux owns. The exit code is 0 if all files are valid, 1 if one is not, and 2
// if one cannot be read.
package check

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/internal/engines/flux/tree"
	"github.com/slipway-platform/slipway/internal/nodes/bootstrap"
	"github.com/slipway-platform/slipway/stacks/config"
)

const (
	valid      = command.Done
	invalid    = command.Failed
	unreadable = command.Misuse
)

const does = `Checks stack files without running anything: Pulumi.STACK.yaml for each STACK, or without one all of this folder, or of the
nearest one above that has any.`

// Command returns the command that checks stacks or files.
func Command(name string) *cobra.Command { return newCommand(name, time.Now(), command.Version()) }

// newCommand returns the command on a day, which decides which releases are out of support, and as that of a version of Slipway.
func newCommand(name string, day time.Time, version string) *cobra.Command {
	c := &cobra.Command{
		Use: name + " [STACK|FILE...]", Short: "Check stack files, without a cluster", Long: does, Args: cobra.ArbitraryArgs,
		ValidArgsFunction: completeStacks,
	}
	explained := c.Flags().Bool("explain", false, "print each valid file with all defaults, without secrets, instead of the machines")
	c.RunE = func(c *cobra.Command, stacks []string) error {
		show := summarize
		if *explained {
			show = explain
		}
		return command.Exit(run(stacks, day, version, show, c.OutOrStdout(), c.ErrOrStderr()))
	}
	return c
}

// completeStacks completes names of stacks. If none fits, the shell completes files.
func completeStacks(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	paths, _ := findAll()
	for i, path := range paths {
		paths[i] = strings.TrimPrefix(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), "Pulumi.")
	}
	return paths, cobra.ShellCompDirectiveDefault
}

// run checks stacks, and shows the valid ones.
func run(stacks []string, day time.Time, version string, show func(*stackFile, io.Writer) error, out, problems io.Writer) int {
	paths, err := locate(stacks)
	if err != nil {
		_, _ = fmt.Fprintln(problems, err)
	}
	worst := valid
	if err != nil {
		worst = unreadable
	}
	folders := foldersOf(paths)
	warnOfVersion(folders, version, problems)
	if newer := ofNewer(folders, version); newer != nil {
		_, _ = fmt.Fprintln(problems, newer)
		worst = max(worst, invalid)
	}
	var loaded []*stackFile
	for _, path := range paths {
		file, code := check(path, day, false, problems)
		worst = max(worst, code)
		if file != nil {
			loaded = append(loaded, file)
		}
	}
	if !compare(loaded, problems) {
		worst = max(worst, invalid)
	}
	for _, file := range loaded {
		if file.valid {
			if err := show(file, out); err != nil {
				_, _ = fmt.Fprintf(problems, "%s: %v\n", file.path, err)
				worst = unreadable
			}
		}
	}
	return worst
}

// locate returns the paths of the named stacks' files, or without names those of all stack files, each once. The error names the
// stacks without a file.
func locate(stacks []string) ([]string, error) {
	if len(stacks) == 0 {
		return findAll()
	}
	var paths []string
	var errs []error
	for _, stack := range stacks {
		path, err := find(stack)
		switch {
		case err != nil:
			errs = append(errs, err)
		case !slices.ContainsFunc(paths, func(other string) bool { return sameFile(other, path) }):
			paths = append(paths, path)
		}
	}
	return paths, errors.Join(errs...)
}

// sameFile reports whether two paths name one file: a stack conflicts with itself.
func sameFile(a, b string) bool {
	one, errOne := os.Stat(a)
	other, errOther := os.Stat(b)
	return a == b || errOne == nil && errOther == nil && os.SameFile(one, other) && filepath.Base(a) == filepath.Base(b)
}

// stackFile is a file whose stack is loaded.
type stackFile struct {
	path      string
	source    config.Source
	stack     *cluster.Cluster
	conflicts cluster.Problems // with the stacks that it names, and with the snapshot
	valid     bool             // valid by itself and in comparison with the others
}

// check checks one stack file by itself, and the settings that the manifests in gitops.path use, if that folder is beside it. It returns
// nil if the stack cannot be compared with others, and the exit code. ownedLater is that of config.Source.
func check(path string, day time.Time, ownedLater bool, problems io.Writer) (*stackFile, int) {
	text, err := config.ReadText(path)
	if err != nil {
		_, _ = fmt.Fprintln(problems, err)
		return nil, unreadable
	}
	source, err := config.ParseFile(path, text)
	if err != nil {
		_, _ = fmt.Fprintln(problems, err)
		return nil, invalid
	}
	source.OwnedLater = ownedLater
	stack, conflicts, err := config.LoadAmong(source)
	var all cluster.Problems
	switch {
	case errors.As(err, &all):
		report(path, source, all, problems)
		return nil, invalid
	case err != nil:
		_, _ = fmt.Fprintln(problems, err)
		return nil, invalid
	}
	advice := stack.Advice(day)
	if problem := bootstrap.CheckSnapshot(stack); problem != nil {
		conflicts = append(conflicts, problem)
	}
	file := &stackFile{path: path, source: source, stack: stack, conflicts: conflicts, valid: len(conflicts) == 0}
	file.warn(stack.Unaccepted(advice), problems)
	if !stack.GitOps.Enabled || !stack.Storage.KnowsProvider() { // settings of the tree follow the provider's file
		return file, valid
	}
	ofTree, code := file.checkTree(problems)
	if code == valid { // otherwise there may be more advice
		file.warn(stack.UnusedAcceptances(slices.Concat(advice, ofTree)), problems)
	}
	return file, code
}

// warn prints advice.
func (f *stackFile) warn(advice cluster.Problems, to io.Writer) {
	for _, one := range advice {
		_, _ = fmt.Fprintf(to, "%s: warning: %v\n", at(f.path, f.source, one), one)
	}
}

// checkTree checks the manifests that Flux applies, and the settings for them: the repository that Flux syncs from is usually the one of
// the stack file. It returns all advice, also what the stack file accepts.
func (f *stackFile) checkTree(problems io.Writer) (cluster.Problems, int) {
	advice, wrong, err := tree.CheckStack(f.source.Tree, f.stack)
	f.warn(f.stack.Unaccepted(advice), problems)
	if len(wrong) > 0 {
		report(f.path, f.source, wrong, problems)
	}
	if err != nil {
		_, _ = fmt.Fprintln(problems, err)
	}
	if err != nil || len(wrong) > 0 {
		f.valid = false
		return advice, invalid
	}
	return advice, valid
}

// compare compares valid stacks, each with the stacks that it names and with earlier stacks, and reports whether none conflicts with
// another.
func compare(files []*stackFile, problems io.Writer) bool {
	stacks := make([]*cluster.Cluster, len(files))
	for i, file := range files {
		stacks[i] = file.stack
	}
	fit := true
	for i, found := range cluster.Compare(stacks) {
		var all cluster.Findings
		for _, conflict := range slices.Concat(files[i].conflicts, found, applied(files, i)) {
			all.Include(conflict) // the same one once
		}
		if all.Len() > 0 {
			report(files[i].path, files[i].source, all.All(), problems)
			files[i].valid, fit = false, false
		}
	}
	return fit
}

// applied returns a problem if the stack would apply the manifests of another one, which are below its own.
func applied(files []*stackFile, own int) (problems cluster.Problems) {
	for i, other := range files {
		if one := files[own]; i != own && other.stack.GitOps.Source() == one.stack.GitOps.Source() {
			if problem := tree.Contains(one.source.Tree, one.stack.GitOps, other.stack.GitOps); problem != nil {
				problems = append(problems, problem)
			}
		}
	}
	return problems
}

// find returns the path of a stack's file: the argument if it is a path, or else the file of the stack with that name, in this folder or
// the nearest above.
func find(stack string) (string, error) {
	if strings.ContainsRune(stack, filepath.Separator) || filepath.Ext(stack) == ".yaml" || filepath.Ext(stack) == ".yml" {
		return filepath.Clean(stack), nil
	}
	name := "Pulumi." + stack + ".yaml"
	paths, err := upwards(name, "Pulumi."+stack+".yml")
	if err != nil {
		return "", err
	}
	if len(paths) == 0 {
		return "", fmt.Errorf("%s: no %s in this folder or one above; name the stack or its file", stack, name)
	}
	return paths[0], nil
}

// findAll returns the paths of all stack files of this folder, or of the nearest folder above with stack files.
func findAll() ([]string, error) {
	paths, err := upwards("Pulumi.*.yaml", "Pulumi.*.yml")
	if err == nil && len(paths) == 0 {
		err = errors.New("no Pulumi.STACK.yaml in this folder or one above; name a stack or its file")
	}
	return paths, err
}

// upwards returns the files that match a pattern, of this folder or the nearest folder above with such files.
func upwards(patterns ...string) ([]string, error) {
	here, err := filepath.Abs(".")
	if err != nil {
		return nil, err
	}
	for folder := here; ; folder = filepath.Dir(folder) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		var paths []string
		for _, entry := range entries {
			matches := slices.ContainsFunc(patterns, func(pattern string) bool {
				match, _ := filepath.Match(pattern, entry.Name())
				return match
			})
			switch {
			case !matches || entry.IsDir():
			case folder == here:
				paths = append(paths, entry.Name())
			default:
				paths = append(paths, filepath.Join(folder, entry.Name()))
			}
		}
		if len(paths) > 0 || folder == filepath.Dir(folder) {
			return paths, nil
		}
	}
}

// at returns the place of a problem: the file, and the line if it has one.
func at(path string, source config.Source, problem *cluster.Problem) string {
	if line := cmp.Or(problem.Line, source.Line(problem.Path)); line > 0 {
		return fmt.Sprintf("%s:%d", path, line)
	}
	return path
}

// report prints the problems, each with its line.
func report(path string, source config.Source, all cluster.Problems, to io.Writer) {
	for _, problem := range all.Shown() {
		_, _ = fmt.Fprintf(to, "%s: %v\n", at(path, source, problem), problem)
	}
	if more := all.More(); more != "" {
		_, _ = fmt.Fprintf(to, "%s: %s\n", path, more)
	}
	noun := "problems"
	if len(all) == 1 {
		noun = "problem"
	}
	_, _ = fmt.Fprintf(to, "%s: %d %s\n", path, len(all), noun)
}

// summarize prints the machines of a valid file with their hosts, VM ids and MAC addresses, which the file need not declare, and the
// secrets that are not set yet.
func summarize(file *stackFile, to io.Writer) error {
	stack := file.stack
	_, _ = fmt.Fprintf(to, "%s: valid\n", file.path)
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "  NODE\tROLE\tHOST\tVM\tMAC\tADDRESS")
	for _, node := range stack.Machines() {
		addresses := node.Address.String()
		if node.Address6.IsValid() {
			addresses += "," + node.Address6.String()
		}
		_, _ = fmt.Fprintf(table, "  %s\t%s\t%s\t%d\t%s\t%s\n", node.Name, node.Role, node.Host, node.VMID, node.MAC, addresses)
	}
	_ = table.Flush()
	missing := stack.MissingSecrets()
	if !stack.ProxmoxAPIToken.IsSet() && os.Getenv("PROXMOX_VE_API_TOKEN") == "" {
		missing = append([]string{"proxmoxApiToken"}, missing...) // the plugin reads the variable
	}
	for _, secret := range missing {
		_, _ = fmt.Fprintf(to, "  %s is not in this file; set it with: pulumi config set --stack %s --secret %s:%s\n",
			secret, stack.Stack, config.Namespace, secret)
	}
	return nil
}

// explain prints a valid file with all that it leaves to defaults.
func explain(file *stackFile, to io.Writer) error {
	text, err := config.Explain(file.source, file.stack)
	if err == nil {
		_, err = fmt.Fprintf(to, "--- # %s with all defaults, without secrets\n%s", file.path, text)
	}
	return err
}
