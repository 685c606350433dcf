// Package tools builds and finds the real programs that the lab runs: Pulumi and its plugins, Kubernetes, Flux,
// talosctl.
//
// Each is declared once, in Table. Each is built from a small Go module in a folder here, whose go.sum pins everything.
// Tools whose dependencies can have the same versions share a module, because a shared package is compiled once; others
// have a module of their own, so that versions do not conflict. Builds are stored in a cache outside the checkout, under
// a key that is computed from all inputs. If the machine already has a program in exactly the declared version, that is
// used instead.
package tools

import (
	"cmp"
	"path/filepath"
	"time"
)

// Tool declares a program, or a set of data files, that the lab needs.
type Tool struct {
	Name    string // unique; also the name of its folder in the cache
	Version string // the version that it prints, without a leading v
	Folder  string // folder beside this file that holds go.mod, go.sum and sources; default Name
	Package string // what to build: an import path, or ./x in Folder; "" means data files only
	Binary  string // file name of the program; default Name
	Plugin  string // name of the Pulumi resource plugin; "" if it is none

	// ModFile is used instead of the folder's go.mod, with the .sum beside it; "" means go.mod.
	ModFile string `json:",omitempty"`

	Module        string // module whose version the folder's go.mod must pin
	ModuleVersion string // that version, with its leading v

	// Packages are built together with Package. Each of the programs, that of Package too, has the name of its package's folder.
	Packages []string `json:",omitempty"`
	Tags     []string `json:",omitempty"` // build tags
	Static   bool     `json:",omitempty"` // without cgo, so that the programs run without any library

	LDFlags  []string  // given to the linker
	Embed    []Copy    // files that are copied into the sources before the build
	Data     []Copy    // files that are copied into the cache beside the program
	Overlays []Overlay // modules whose sources are copied and changed before the build
	Links    []string  // additional names of the program, as links beside it

	// Compose runs the tool's program with these arguments when it is built. The program gets the paths of the data folder, which it fills,
	// and of the parts, as flags: -out FOLDER -cache FOLDER -PART PATH. nil means that nothing is composed.
	Compose []string `json:",omitempty"`
	// Parts are the tools that are composed, by the names of their flags. They are built first. The key contains their keys.
	Parts map[string]Tool `json:"-"`
	// Host maps the programs and the files that the machine needs for the build, or to run what is built, to their Debian packages. A
	// program is a name, a file is an absolute path.
	Host map[string]string `json:"-"`

	// Start is a shell script that a lab runs under the program's name. It runs the program as "$PROGRAM" "$@". "" means that the lab runs
	// the program itself.
	Start string `json:"-"` // no part of the build

	// Pinned is the newer release that Slipway pins, which the lab cannot have: the lab serves the chart and the CRDs of Version under
	// this version, too. "" means that Slipway pins Version.
	Pinned string `json:"-"` // no part of the build

	Installed *Installed // how to recognise the machine's own program; nil: it is always built

	// CPU is the CPU time of a cold build on the project's kind of machine. Only the estimate uses it.
	CPU time.Duration
}

// Copy copies files out of a module.
type Copy struct {
	Module string // module path; its version is the one in the folder's go.mod, or the Overlay's
	From   string // file or folder inside the module
	To     string // destination file or folder, relative

	// Executable marks files that are run. Modules do not keep that.
	Executable bool `json:",omitempty"`
}

// Overlay copies a module's sources to the folder To of the build, for modules that cannot or need not be built as they
// are published. All tools of a folder have the same overlays, because they share its go.mod.
type Overlay struct {
	Module  string
	Version string
	Sum     string            // its line in go.sum, h1:...; go itself does not check a replaced module
	To      string            // folder in the sources, as in the replace directive of go.mod
	Go      string            // go directive to set in the module's go.mod; "": not changed
	Files   map[string]string // files to add: path inside To, and content
	Replace map[string]string // files to replace: path inside To, and path of the other file in the tool's folder
	Patches []string          `json:",omitempty"` // files in the tool's folder, for patch -p1 inside To
}

// overlay returns the tool's overlay of a module; nil if it has none.
func (t Tool) overlay(module string) *Overlay {
	for i := range t.Overlays {
		if t.Overlays[i].Module == module {
			return &t.Overlays[i]
		}
	}
	return nil
}

// Installed tells how to ask the machine's own program for its version.
type Installed struct {
	Args   []string // arguments that make the program print its version
	Prefix string   // text before the version in the output
	Beside string   // look in the folder of this tool's program instead of PATH, if that has the right version
}

// Served returns the versions under which the lab serves the tool's chart and CRDs.
func (t Tool) Served() []string {
	if t.Pinned == "" {
		return []string{t.Version}
	}
	return []string{t.Version, t.Pinned}
}

func (t Tool) folder() string {
	return cmp.Or(t.Folder, t.Name)
}

func (t Tool) modFile() string {
	return cmp.Or(t.ModFile, "go.mod")
}

func (t Tool) binary() string {
	return cmp.Or(t.Binary, t.Name)
}

// result is what Build returns for a tool in dir: its program, or its data folder if it has no program or is composed.
func (t Tool) result(dir string) string {
	if t.Package == "" || t.Compose != nil {
		return filepath.Join(dir, dataFolder)
	}
	return filepath.Join(dir, t.binary())
}

// pluginFolder is the folder of a plugin, relative to PULUMI_HOME.
func (t Tool) pluginFolder() string {
	return filepath.Join("plugins", "resource-"+t.Plugin+"-v"+t.Version)
}
