package check

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"golang.org/x/mod/modfile"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/internal/engines/flux/tree"
	"github.com/slipway-platform/slipway/stacks/config"
)

// foldersOf returns the folders of files, each once.
func foldersOf(paths []string) (folders []string) {
	for _, path := range paths {
		folders = append(folders, filepath.Dir(path))
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// ofNewer returns an error if manifests in folders with stack files need a newer program than this version.
func ofNewer(folders []string, version string) error {
	var errs []error
	for _, folder := range folders {
		errs = append(errs, tree.CheckVersion(config.Checkout(folder), version))
	}
	return errors.Join(errs...)
}

const goMod = "go.mod"

// warnOfVersion warns if go.mod of a folder with stack files requires another release of Slipway than this one: the workflow, which builds
// the program by go.mod, would check and preview something else than this binary runs.
func warnOfVersion(folders []string, version string, to io.Writer) {
	for _, folder := range folders {
		required, line := requiredRelease(config.Checkout(folder))
		if required == "" || tree.Release(version) == "" || required == version {
			continue
		}
		_, _ = fmt.Fprintf(to, "%s:%d: warning: requires slipway %s, and this is %s; install %[3]s, or run: go get %[5]s@%[4]s\n",
			filepath.Join(folder, goMod), line, required, version, command.Module)
	}
}

// requiredRelease returns the release of Slipway that go.mod of a repository requires, and its line; "" without go.mod, if that is no
// release, and if a folder or another module replaces it.
func requiredRelease(repository fs.FS) (release string, line int) {
	text, err := fs.ReadFile(repository, goMod)
	if err != nil {
		return "", 0
	}
	file, err := modfile.Parse(goMod, text, nil)
	if err != nil { // go names what is wrong there
		return "", 0
	}
	for _, replaced := range file.Replace {
		if replaced.Old.Path == command.Module {
			return "", 0
		}
	}
	for _, one := range file.Require {
		if one.Mod.Path == command.Module {
			return tree.Release(one.Mod.Version), one.Syntax.Start.Line
		}
	}
	return "", 0
}
