package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// State tells where a tool is.
type State string

// The states of a tool.
const (
	Cached    State = "cached"    // built earlier
	OnMachine State = "installed" // on the machine
	Missing   State = "missing"   // to be built
)

// Item is the plan for one tool.
type Item struct {
	Tool   Tool
	Key    string // names the build in the cache
	State  State
	Path   string // of the program, or of the data folder if there is no program; of a missing tool, its future path
	Record Record // of the build, if it is in the cache
}

// Plan tells where each tool is, or that Build would build it.
func (b *Builder) Plan(ctx context.Context, tools []Tool) ([]Item, error) {
	source, err := b.source()
	if err != nil {
		return nil, err
	}
	goVersion, err := toolchain(ctx)
	if err != nil {
		return nil, err
	}
	var items []Item
	var errs []error
	installed := map[string]string{}
	for _, t := range tools {
		k, err := key(goVersion, source, t)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		item := Item{Tool: t, Key: k, State: Missing, Path: t.result(toolDir(b.Cache, t, k))}
		if own := b.installed(ctx, t, installed); own != "" {
			item.State, item.Path = OnMachine, own
			installed[t.Name] = own
		} else if record, err := readRecord(toolDir(b.Cache, t, k)); err == nil {
			item.State, item.Record = Cached, record
		} else if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("tool %s: %w", t.Name, err))
		}
		items = append(items, item)
	}
	return items, errors.Join(errs...)
}

// Built returns the programs of those of the tools that need not be built, by name.
func (b *Builder) Built(ctx context.Context, tools []Tool) (map[string]string, error) {
	items, err := b.Plan(ctx, tools)
	paths := map[string]string{}
	for _, item := range items {
		if item.State != Missing {
			paths[item.Tool.Name] = item.Path
		}
	}
	return paths, err
}

// DataDir is the folder of the data files of a built tool.
func DataDir(ctx context.Context, cache, name string) (string, error) {
	t, err := Find(name)
	if err != nil {
		return "", err
	}
	if len(t.Data) == 0 {
		return "", fmt.Errorf("tool %s has no data files", name)
	}
	source, err := SourceDir()
	if err != nil {
		return "", err
	}
	goVersion, err := toolchain(ctx)
	if err != nil {
		return "", err
	}
	k, err := key(goVersion, source, t)
	if err != nil {
		return "", err
	}
	dir := toolDir(cache, t, k)
	if _, err := readRecord(dir); err != nil {
		return "", fmt.Errorf("data of tool %s: %w; build the tools first", name, err)
	}
	return filepath.Join(dir, dataFolder), nil
}

// Estimate is the CPU time of building the missing tools with an empty compile cache.
func Estimate(items []Item) time.Duration {
	var sum time.Duration
	for _, item := range items {
		if item.State == Missing {
			sum += item.Tool.CPU
		}
	}
	return sum
}
