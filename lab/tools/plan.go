package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// State says where a tool comes from.
type State string

// The states of a tool.
const (
	Cached    State = "cached"    // built earlier
	OnMachine State = "installed" // the machine's own
	Missing   State = "missing"   // to be built
)

// Item is what Plan says about one tool.
type Item struct {
	Tool   Tool
	Key    string // names the build in the cache
	State  State
	Path   string // of the program, or of the data folder where there is no program; where it will be, if it is missing
	Record Record // of the build, if it is in the cache
}

// Plan says for each tool whether it is there, and where, or whether Build would build it. It builds nothing.
func Plan(ctx context.Context, cache string, tools []Tool) ([]Item, error) {
	return (&Builder{Cache: cache}).Plan(ctx, tools)
}

// Plan is what the function of that name says.
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

// DataDir is the folder with the data files of a tool that Build has built.
func DataDir(ctx context.Context, cache, name string) (string, error) {
	return (&Builder{Cache: cache}).DataDir(ctx, name)
}

// DataDir is what the function of that name says.
func (b *Builder) DataDir(ctx context.Context, name string) (string, error) {
	t, err := Find(name)
	if err != nil {
		return "", err
	}
	if len(t.Data) == 0 {
		return "", fmt.Errorf("tool %s has no data files", name)
	}
	source, err := b.source()
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
	dir := toolDir(b.Cache, t, k)
	if _, err := readRecord(dir); err != nil {
		return "", fmt.Errorf("data of tool %s: %w; build the tools first", name, err)
	}
	return filepath.Join(dir, dataFolder), nil
}

// Estimate is the CPU time that building the missing tools takes on an empty compile cache.
func Estimate(items []Item) time.Duration {
	var sum time.Duration
	for _, item := range items {
		if item.State == Missing {
			sum += item.Tool.CPU
		}
	}
	return sum
}
