// Command slipway-preview shows what a change of this repository would change, compared with another commit of it, without cluster, Proxmox
// VE, Talos, Git host and secrets:
//
//	slipway-preview -base origin/main -out bin/preview
//
// It writes preview.md, for the comment of a pull request, and preview.json. On standard output it writes the problems as annotations of a
// GitHub workflow. The exit code is 0, 1 if the change has a problem, and 2 if nothing could be compared: then there are no files.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/slipway-platform/slipway/components/cilium/chart"
	"github.com/slipway-platform/slipway/preview/checkout"
	"github.com/slipway-platform/slipway/preview/program"
	"github.com/slipway-platform/slipway/preview/report"
	"github.com/slipway-platform/slipway/stacks/config"
)

const (
	fine       = 0
	problems   = 1
	incomplete = 2
)

// The files of the result.
const (
	markdownFile = "preview.md"
	jsonFile     = "preview.json"
)

// The two sides. Each has a folder of that name in the one for the result.
const (
	baseName   = "base"
	changeName = "change"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are what the command is asked for.
type options struct {
	checkout string // the change: a folder with the repository, or one below
	base     string // a branch, tag or commit
	out      string
	charts   []string // folders with archives of charts
	fetch    bool     // fetch the charts that are missing there into the first of them
	program  bool
	state    string // an exported state, or a folder with some; "" for none
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	var folders string
	flags := flag.NewFlagSet("slipway-preview", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.checkout, "checkout", ".", "folder of the change")
	flags.StringVar(&o.base, "base", "origin/main", "branch, tag or commit; the change is compared with the commit that both come from")
	flags.StringVar(&o.out, "out", "bin/preview", "folder for the result, and for what is kept for the next run")
	flags.StringVar(&folders, "charts", "", "folders with charts, NAME-VERSION.tgz, separated by :; needs a build with -tags charts")
	flags.BoolVar(&o.fetch, "fetch", false, "fetch charts that are in none of these folders into the first")
	flags.StringVar(&o.state, "state", "", "file of pulumi stack export, or a folder with some: what exists is compared, too")
	flags.BoolVar(&o.program, "program", true, "run the program of both sides, by pulumi preview on an empty backend")
	if err := flags.Parse(args); err != nil {
		return incomplete
	}
	o.charts = filepath.SplitList(folders)
	result, err := makeReport(ctx, o, stderr)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return incomplete
	}
	_, _ = fmt.Fprint(stdout, result.Annotations())
	if result.Fails() {
		return problems
	}
	return fine
}

// makeReport compares, and writes the result. An earlier run's is removed first: nobody must take it for this run's.
func makeReport(ctx context.Context, o options, log io.Writer) (result report.Report, err error) {
	if o.fetch && len(o.charts) == 0 {
		return result, errors.New("-fetch: it needs a folder for the charts; name one with -charts (make preview CHARTS=FOLDER)")
	}
	if o.state != "" && !o.program {
		return result, errors.New("-state: it needs the programs of both sides; leave out -program=false")
	}
	for _, name := range []string{markdownFile, jsonFile} {
		if err := os.Remove(filepath.Join(o.out, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return result, err
		}
	}
	if result, err = compare(ctx, o, log); err != nil {
		return result, err
	}
	return result, write(o.out, result)
}

func compare(ctx context.Context, o options, log io.Writer) (report.Report, error) {
	top, err := git(ctx, o.checkout, "rev-parse", "--show-toplevel")
	if err != nil {
		return report.Report{}, err
	}
	if o.out, err = filepath.Abs(o.out); err != nil {
		return report.Report{}, err
	}
	from, err := findBase(ctx, top, o.base)
	if err != nil {
		return report.Report{}, err
	}
	unpacked := filepath.Join(o.out, baseName, "checkout")
	if err := extract(ctx, top, from.commit, unpacked); err != nil {
		return report.Report{}, err
	}
	both, err := sides(ctx, o, []string{unpacked, top}, log)
	if err != nil {
		return report.Report{}, err
	}
	result := report.Compare(checkout.Side(from.name, both[0]), checkout.Side(change(ctx, top), both[1]))
	result.BaseNote = from.note
	return result, nil
}

// sides reads both checkouts and runs their programs.
func sides(ctx context.Context, o options, folders []string, log io.Writer) ([][]checkout.Stack, error) {
	both := make([][]checkout.Stack, len(folders))
	runs, err := newRuns(o)
	if err != nil {
		return nil, err
	}
	for i, folder := range folders {
		if both[i], err = checkout.Read(folder); err != nil {
			return nil, err
		}
	}
	free := make(chan struct{}, runtime.NumCPU())
	var all sync.WaitGroup
	for i, name := range []string{baseName, changeName} {
		project, unrun, err := prepare(ctx, o, name, folders[i], runs.secrets, log)
		if err != nil {
			all.Wait()
			return nil, err
		}
		for j := range both[i] {
			stack := &both[i][j]
			if stack.Cluster == nil {
				continue
			}
			if project == nil {
				stack.Program = unrun
				continue
			}
			all.Go(func() {
				free <- struct{}{}
				defer func() { <-free }()
				runs.run(ctx, project, stack)
				_, _ = fmt.Fprintf(log, "%s of %s: %d resources, %.1f s\n", stack.Name, name, len(stack.Program.Resources),
					stack.Program.Seconds+stack.Existing.Seconds)
			})
		}
	}
	all.Wait()
	useCharts(both)
	addManifests(ctx, o, both)
	return both, ctx.Err()
}

// runs are the runs of the programs, and what they need.
type runs struct {
	secrets, others config.Placeholders // two sets: what depends on a secret then differs between a run and the run on the state
	states          map[string]*program.State
}

func newRuns(o options) (r runs, err error) {
	if !o.program {
		return r, nil
	}
	if o.state != "" {
		if r.states, err = program.ReadStates(o.state); err != nil {
			return r, fmt.Errorf("the state: %w", err)
		}
		if r.others, err = config.NewPlaceholders(); err != nil {
			return r, err
		}
	}
	r.secrets, err = config.NewPlaceholders()
	return r, err
}

// run runs the program of a stack, and then, if it works and there is a state of the stack, on that state.
func (r runs) run(ctx context.Context, project *program.Project, stack *checkout.Stack) {
	stack.Program = project.Preview(ctx, stack.Cluster, stack.Text)
	state := r.states[stack.Name]
	switch {
	case len(r.states) == 0:
	case state == nil:
		stack.Existing.Unrun = "there is no file with the state of this stack"
	case stack.Program.Works():
		stack.StateOf, stack.Existing = state.Time, project.OnState(ctx, stack.Cluster, stack.Text, state, r.others)
	}
}

// useCharts takes the charts of a stack from its programs, if both sides' programs ran: without them, some values are missing. No program
// registers the release of an engine that owns Cilium in mode inline.
func useCharts(both [][]checkout.Stack) {
	ran := map[string]int{}
	for _, stacks := range both {
		for _, stack := range stacks {
			if stack.Program.Works() {
				ran[stack.Name]++
			}
		}
	}
	for _, stacks := range both {
		for i, stack := range stacks {
			if ran[stack.Name] == len(both) {
				inline := slices.DeleteFunc(stack.Charts, func(one report.Chart) bool {
					return one.Name != chart.ReleaseName || !stack.Cluster.Cilium.Inline()
				})
				stacks[i].Charts = slices.Concat(inline, program.Charts(stack.Program))
			}
		}
	}
}

// prepare builds the program of a side. Without one, it returns what takes the place of the outcome: a change that does not compile has
// problems; a base that does not compile, which the change may fix, has a remark.
func prepare(
	ctx context.Context, o options, side, checkout string, secrets config.Placeholders, log io.Writer,
) (project *program.Project, unrun report.Program, err error) {
	if !o.program {
		return nil, report.Program{Unrun: "-program=false"}, nil
	}
	project, err = program.New(ctx, filepath.Join(o.out, side), checkout, secrets)
	switch {
	case err == nil:
		return project, unrun, nil
	case errors.Is(err, program.ErrNoPulumi), ctx.Err() != nil:
		return nil, unrun, err
	}
	_, _ = fmt.Fprintf(log, "%s: %v\n", side, err)
	found := program.Problems(err)
	if side == changeName {
		return nil, report.Program{Ran: true, Problems: found}, nil
	}
	return nil, report.Program{Unrun: found[0].Text}, nil
}

// extract writes the files of a commit into a folder. The folder always has the same path, so that Go's cache knows its packages.
func extract(ctx context.Context, repository, commit, folder string) error {
	mark := folder + ".commit"
	if text, err := os.ReadFile(mark); err == nil && string(text) == commit {
		return nil
	}
	if err := errors.Join(os.RemoveAll(mark), os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	archive := exec.CommandContext(ctx, "git", "-C", repository, "archive", "--format=tar", commit)
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", folder)
	var err error
	if unpack.Stdin, err = archive.StdoutPipe(); err != nil {
		return err
	}
	if err := unpack.Start(); err != nil {
		return err
	}
	if err := errors.Join(archive.Run(), unpack.Wait()); err != nil {
		return fmt.Errorf("the files of %s: %w", commit, err)
	}
	return os.WriteFile(mark, []byte(commit), 0o600)
}

// change names the change: its commit, and whether the working tree has more.
func change(ctx context.Context, top string) string {
	commit, err := git(ctx, top, "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "the working tree"
	}
	if modified, err := git(ctx, top, "status", "--porcelain", "--untracked-files=no"); err != nil || modified != "" {
		return "the working tree on " + commit
	}
	return commit
}

func git(ctx context.Context, folder string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", folder}, args...)...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

func write(folder string, result report.Report) error {
	text, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		os.MkdirAll(folder, 0o755),
		os.WriteFile(filepath.Join(folder, markdownFile), []byte(result.Markdown()), 0o600),
		os.WriteFile(filepath.Join(folder, jsonFile), append(text, '\n'), 0o600),
	)
}
