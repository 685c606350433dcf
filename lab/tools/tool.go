// Package tools builds and finds the real programs that the lab runs: Pulumi and its plugins, Kubernetes, Flux, talosctl.
//
// Each is declared once, in Table, and has a small Go module of its own in a folder beside this file, so that versions do
// not clash; go.sum there pins everything. What is built lands in a cache outside the checkout, under a key made of all
// that went into it. A program that the machine already has in exactly the declared version is taken from there instead.
package tools

import (
	"path/filepath"
	"time"
)

// Tool declares one program, or one set of data files, that the lab needs.
type Tool struct {
	Name    string // unique; also the name of its folder in the cache
	Version string // the version it calls itself, without a leading v
	Folder  string // folder beside this file that holds go.mod, go.sum and sources; default Name
	Package string // what to build: an import path, or ./x in Folder; "" means data files only
	Binary  string // file name of the program; default Name
	Plugin  string // name of the Pulumi resource plugin that this is; "" for none

	Module        string // module whose version the folder's go.mod has to pin
	ModuleVersion string // that version, with its leading v

	LDFlags []string // given to the linker
	Embed   []Copy   // files that are put into the sources before the build
	Data    []Copy   // files that are put beside the program
	Overlay *Overlay // module whose sources are copied and amended before the build; nil for none
	Links   []string // more names for the program, as links beside it

	Installed *Installed // how to recognise the machine's own; nil means it is always built

	// CPU is what building it cold took on the project's kind of machine, in CPU time. It feeds the estimate only.
	CPU time.Duration
}

// Copy takes files out of a module.
type Copy struct {
	Module string // module path; its version is the one in the folder's go.mod, or the Overlay's
	From   string // file or folder inside the module
	To     string // file or folder it becomes, relative to the destination
}

// Overlay makes a module's sources the folder To of the build, for modules that do not build as they are published.
type Overlay struct {
	Module  string
	Version string
	Sum     string            // what go.sum would hold, h1:...; a replaced module is not checked by go itself
	To      string            // folder in the sources, as in the replace directive of go.mod
	Go      string            // go directive to set in the module's go.mod; "" leaves it alone
	Files   map[string]string // files to add: path inside To, and content
}

// Installed says how to ask the machine's own program for its version.
type Installed struct {
	Args   []string // arguments that make the program print its version
	Prefix string   // what precedes the version in the output
	Beside string   // look in the folder of this tool's program instead of PATH, once that has the right version
}

func (t Tool) folder() string {
	if t.Folder != "" {
		return t.Folder
	}
	return t.Name
}

func (t Tool) binary() string {
	if t.Binary != "" {
		return t.Binary
	}
	return t.Name
}

// result is what Build reports for a tool that is in dir: its program, or its data folder where it has no program.
func (t Tool) result(dir string) string {
	if t.Package == "" {
		return filepath.Join(dir, dataFolder)
	}
	return filepath.Join(dir, t.binary())
}

// pluginFolder is where Pulumi looks for a plugin, relative to PULUMI_HOME.
func (t Tool) pluginFolder() string {
	return filepath.Join("plugins", "resource-"+t.Plugin+"-v"+t.Version)
}
