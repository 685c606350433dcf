package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/modfile"

	"github.com/slipway-platform/slipway/lab/home"
	"github.com/slipway-platform/slipway/lab/project"
	"github.com/slipway-platform/slipway/lab/tools"
	"github.com/slipway-platform/slipway/lab/world"
)

// tools is the command that only builds.
func (o *options) tools() *cobra.Command {
	return &cobra.Command{
		Use: "tools [NAME...]", Short: "Build what the lab runs, as far as it is missing, or the named tools",
		Long: "Build what the lab runs, as far as it is missing, or only the named tools.\n\n" +
			"These are built only if they are named: " + onDemand(),
		RunE: func(c *cobra.Command, names []string) error {
			if len(names) > 0 {
				return buildNamed(c.Context(), names, c.OutOrStdout())
			}
			checkout, err := o.checkout()
			if err != nil {
				return err
			}
			_, err = build(c.Context(), checkout, c.OutOrStdout())
			return err
		},
	}
}

// onDemand are the names of the tools that are built only if they are named.
func onDemand() string {
	var names []string
	for _, tool := range tools.OnDemand {
		names = append(names, tool.Name)
	}
	return strings.Join(names, ", ")
}

// buildNamed builds tools.
func buildNamed(ctx context.Context, names []string, out io.Writer) error {
	cache, err := tools.DefaultCache()
	if err != nil {
		return err
	}
	var named []tools.Tool
	for _, name := range names {
		tool, err := tools.Find(name)
		if err != nil {
			return err
		}
		named = append(named, tool)
	}
	_, err = (&tools.Builder{Cache: cache, Progress: out}).Build(ctx, named)
	return err
}

// build builds everything that the lab runs, unless cached: the tools, and the program with its probe.
// Pulumi compiles those inside the namespace, where no module can be downloaded.
func build(ctx context.Context, checkout string, out io.Writer) (world.Tools, error) {
	cache, err := tools.DefaultCache()
	if err != nil {
		return world.Tools{}, err
	}
	builder := &tools.Builder{Cache: cache, Progress: out}
	built, err := builder.Build(ctx, tools.Table)
	if err != nil {
		return world.Tools{}, err
	}
	others, err := builder.Built(ctx, tools.OnDemand)
	if err != nil {
		return world.Tools{}, err
	}
	maps.Copy(built, others)
	if err := compile(ctx, checkout, out); err != nil {
		return world.Tools{}, err
	}
	t := world.Tools{Programs: built, Data: map[string]string{}}
	for _, tool := range slices.Concat(tools.Table, tools.OnDemand) {
		if len(tool.Data) == 0 || built[tool.Name] == "" {
			continue
		}
		if t.Data[tool.Name], err = tools.DataDir(ctx, cache, tool.Name); err != nil {
			return world.Tools{}, err
		}
	}
	return t, nil
}

// compile compiles the program and the probe into Go's cache, so that the first run need not. It does nothing for a project whose program
// is a binary.
func compile(ctx context.Context, checkout string, out io.Writer) error {
	binary, err := project.Binary(checkout)
	if err != nil || binary != "" {
		return err
	}
	start, probe := time.Now(), "./cmd/slipway-probe"
	if _, err := os.Stat(filepath.Join(checkout, probe)); err != nil { // a repository of one's own, compiled from a checkout
		probe = "github.com/slipway-platform/slipway/cmd/slipway-probe"
	}
	// `go list -export` compiles and does not link. Pulumi links where something has changed since its last run.
	c := exec.CommandContext(ctx, "go", "list", "-export", "-f", "", ".", probe)
	c.Dir = checkout
	text, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("compile the program: %w: %s", err, strings.TrimSpace(string(text)))
	}
	if took := time.Since(start); took > 5*time.Second {
		fmt.Fprintf(out, "compiled the program and its probe in %.0f s\n", took.Seconds())
	}
	return lookUpModules(ctx, checkout)
}

// lookUpModules downloads what Go says about the modules that the program's go.mod requires. Pulumi's language host asks for it at each
// run, of modules, too, of which nothing is compiled.
func lookUpModules(ctx context.Context, checkout string) error {
	path := filepath.Join(checkout, "go.mod")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	required, err := modfile.Parse(path, text, nil)
	if err != nil {
		return err
	}
	arguments := []string{"list", "-m", "-json"}
	for _, module := range required.Require {
		arguments = append(arguments, module.Mod.Path)
	}
	c := exec.CommandContext(ctx, "go", arguments...)
	c.Dir = checkout
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("look up the program's modules: %w: %s", err, strings.TrimSpace(string(text)))
	}
	return nil
}

// link creates links to the tools in a lab's folder, and writes their paths there for the daemon.
func link(h *home.Home, t world.Tools) error {
	if err := tools.LayOut(t.Programs, h.Bin(), h.PulumiHome()); err != nil {
		return err
	}
	return t.Save(h)
}
