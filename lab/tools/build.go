package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// parallel is the number of tools that are built at once. For one tool, go already uses all cores.
const parallel = 2

// logTail is the number of lines of a failed build's log in its error.
const logTail = 20

// Builder builds tools into a cache.
type Builder struct {
	Cache    string    // folder of the cache; usually from DefaultCache
	Source   string    // folder with the tools' modules; "" means SourceDir
	Progress io.Writer // receives the progress; nil: nobody. A terminal line is redrawn, other writers get new lines

	// Home is the PULUMI_HOME with the machine's own Pulumi plugins; "" means ${PULUMI_HOME:-~/.pulumi}.
	Home string
}

// Build builds the tools that are neither in the cache nor installed on the machine. It returns each tool's program by
// name; for a tool without program, its data folder.
//
// It may run in several processes at once. It reports all failures together, and keeps what was built.
func (b *Builder) Build(ctx context.Context, tools []Tool) (map[string]string, error) {
	plan, err := b.Plan(ctx, tools)
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	var missing []Item
	for _, item := range plan {
		paths[item.Tool.Name] = item.Path
		if item.State == Missing {
			missing = append(missing, item)
		}
	}
	if len(missing) == 0 {
		return paths, nil
	}
	parts, err := b.buildParts(ctx, missing)
	if err != nil {
		return nil, err
	}
	source, err := b.source()
	if err != nil {
		return nil, err
	}
	goVersion, err := toolchain(ctx)
	if err != nil {
		return nil, err
	}
	show := newProgress(b.Progress, missing)
	show.begin()
	queue, results := make(chan []Item), make(chan error)
	// The others begin when the first tool is built: before, they would compile the standard library as well.
	first := make(chan struct{})
	for worker := range parallel {
		go func() {
			if worker > 0 {
				<-first
			}
			for items := range queue {
				for _, item := range items {
					show.start(item.Tool.Name)
					record, err := b.buildOne(ctx, source, goVersion, item, parts)
					show.finish(item.Tool.Name, record, err)
					results <- err
				}
			}
		}()
	}
	go func() {
		defer close(queue)
		for _, items := range byFolder(missing) {
			queue <- items
		}
	}()
	var errs []error
	for i := range missing {
		errs = append(errs, <-results)
		if i == 0 {
			close(first)
		}
	}
	show.end()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return paths, nil
}

// byFolder groups items by their folders, in the order in which the folders appear. Tools of a folder are built one after
// the other: at the same time, each would compile what they share.
func byFolder(items []Item) [][]Item {
	var groups [][]Item
	index := map[string]int{}
	for _, item := range items {
		folder := item.Tool.folder()
		at, known := index[folder]
		if !known {
			at = len(groups)
			index[folder] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], item)
	}
	return groups
}

// buildParts builds the parts of the items and returns their paths by name. It builds nothing if the machine lacks a program.
func (b *Builder) buildParts(ctx context.Context, items []Item) (map[string]string, error) {
	var errs []error
	parts := map[string]Tool{}
	for _, item := range items {
		errs = append(errs, item.Tool.checkHost())
		for _, part := range item.Tool.Parts {
			parts[part.Name] = part
		}
	}
	if err := errors.Join(errs...); err != nil || len(parts) == 0 {
		return nil, err
	}
	var sorted []Tool
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		sorted = append(sorted, parts[name])
	}
	return b.Build(ctx, sorted)
}

// buildOne builds one tool into the cache, unless another process has done so meanwhile. parts are the paths of built parts by name.
func (b *Builder) buildOne(ctx context.Context, source, goVersion string, item Item, parts map[string]string) (Record, error) {
	t := item.Tool
	if err := ctx.Err(); err != nil {
		return Record{}, fmt.Errorf("tool %s: %w", t.Name, context.Cause(ctx))
	}
	dir := toolDir(b.Cache, t, item.Key)
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return Record{}, fmt.Errorf("tool %s: %w", t.Name, err)
	}
	defer unlock()
	if record, err := readRecord(dir); err == nil {
		return record, nil
	}
	// The lock is held, so an existing folder is left over from a build that was killed.
	work := dir + ".tmp"
	if err := errors.Join(os.RemoveAll(work), os.RemoveAll(dir), os.MkdirAll(work, 0o755)); err != nil {
		return Record{}, fmt.Errorf("tool %s: %w", t.Name, err)
	}
	defer os.RemoveAll(work)

	began := time.Now()
	cpu, err := assemble(ctx, source, work, logFile(b.Cache, t, item.Key), t)
	if err == nil && t.Compose != nil {
		var more time.Duration
		more, err = b.compose(ctx, filepath.Join(work, "out"), logFile(b.Cache, t, item.Key), t, parts)
		cpu += more
	}
	if err != nil {
		return Record{}, fmt.Errorf("tool %s: %w", t.Name, err)
	}
	out := filepath.Join(work, "out")
	var saved int64
	if t.Compose != nil {
		saved, err = share(b.Cache, filepath.Join(out, dataFolder))
	}
	bytes, errUsage := diskUsage(out)
	if err := errors.Join(err, errUsage); err != nil {
		return Record{}, fmt.Errorf("tool %s: %w", t.Name, err)
	}
	record := Record{Name: t.Name, Version: t.Version, Go: goVersion, Wall: time.Since(began), CPU: cpu, Bytes: bytes - saved}
	if err := errors.Join(writeRecord(out, record), os.Rename(out, dir)); err != nil {
		return Record{}, fmt.Errorf("tool %s: %w", t.Name, err)
	}
	return record, nil
}

// assemble builds the tool in work/out, from a copy of its folder in work/src.
func assemble(ctx context.Context, source, work, logPath string, t Tool) (cpu time.Duration, err error) {
	src, out := filepath.Join(work, "src"), filepath.Join(work, "out")
	folder := filepath.Join(source, t.folder())
	err = errors.Join(
		os.MkdirAll(out, 0o755),
		walkSources(folder, func(path string) error {
			return copyFile(filepath.Join(folder, path), filepath.Join(src, path))
		}),
	)
	if err != nil {
		return 0, err
	}
	for _, o := range t.Overlays {
		if err := o.apply(ctx, src); err != nil {
			return 0, err
		}
	}
	if err := copyAll(ctx, src, src, t, t.Embed); err != nil {
		return 0, err
	}
	if t.Package != "" {
		binary := filepath.Join(out, t.binary())
		if len(t.Packages) > 0 {
			binary = out + string(filepath.Separator)
		}
		if cpu, err = compile(ctx, src, binary, logPath, t); err != nil {
			return cpu, err
		}
	}
	for _, link := range t.Links {
		if err := os.Symlink(t.binary(), filepath.Join(out, link)); err != nil {
			return cpu, err
		}
	}
	return cpu, copyAll(ctx, src, filepath.Join(out, dataFolder), t, t.Data)
}

// GoFlags builds without debug information, which takes a sixth of the compiler's time and a quarter of its cache, and with compilers
// that collect garbage only beyond 3 GiB, which saves a fifth. The latter is in no key of Go's cache, and does not reach the programs
// that are built. The Makefile exports the same flags, so the lab, Pulumi's program and the tests share compiled packages with the tools.
const GoFlags = "-gcflags=all=-dwarf=false '-toolexec=env GOGC=off GOMEMLIMIT=3GiB'"

// compile runs go build.
func compile(ctx context.Context, src, binary, logPath string, t Tool) (cpu time.Duration, err error) {
	args := []string{"build", "-mod=readonly", "-buildvcs=false", "-o", binary}
	if t.ModFile != "" {
		args = append(args, "-modfile", t.ModFile)
	}
	if len(t.LDFlags) > 0 {
		args = append(args, "-ldflags", strings.Join(t.LDFlags, " "))
	}
	if len(t.Tags) > 0 {
		args = append(args, "-tags", strings.Join(t.Tags, ","))
	}
	args = append(append(args, t.Package), t.Packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = src
	cmd.Env = append(goEnvironment(), "GOFLAGS="+GoFlags)
	if t.Static {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	}
	return runLogged(ctx, cmd, logPath)
}

// compose runs the tool's program in out, which fills the tool's data folder.
func (b *Builder) compose(ctx context.Context, out, logPath string, t Tool, parts map[string]string) (cpu time.Duration, err error) {
	args := append(slices.Clone(t.Compose), "-out", filepath.Join(out, dataFolder), "-cache", b.Cache)
	for _, flag := range slices.Sorted(maps.Keys(t.Parts)) {
		args = append(args, "-"+flag, parts[t.Parts[flag].Name])
	}
	return runLogged(ctx, exec.CommandContext(ctx, filepath.Join(out, t.binary()), args...), logPath)
}

// runLogged runs a command that starts others, and returns their CPU time. Its log is kept only if it fails.
func runLogged(ctx context.Context, cmd *exec.Cmd, logPath string) (cpu time.Duration, err error) {
	log, err := os.Create(logPath)
	if err != nil {
		return 0, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	// go starts compilers. They all end with it when the build is cancelled.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	runErr := cmd.Run()
	if cmd.ProcessState != nil {
		cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if err := log.Close(); err != nil {
		return cpu, err
	}
	if ctx.Err() != nil {
		return cpu, context.Cause(ctx)
	}
	if runErr != nil {
		return cpu, fmt.Errorf("%s %s: %w; all of it is in %s:\n%s", filepath.Base(cmd.Path), strings.Join(cmd.Args[1:], " "), runErr, logPath,
			tail(logPath, logTail))
	}
	return cpu, os.Remove(logPath)
}

// tail returns the last lines of a file.
func tail(path string, lines int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}

func (b *Builder) source() (string, error) {
	if b.Source != "" {
		return b.Source, nil
	}
	return SourceDir()
}
