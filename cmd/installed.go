package cmd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/components"
	"github.com/slipway-platform/slipway/internal/engines/flux/tree"
	"github.com/slipway-platform/slipway/stacks"
	"github.com/slipway-platform/slipway/stacks/config"
)

// deploy is the Pulumi program. If the project names a binary instead of a source, the commands in the graph run that binary.
func deploy(ctx *pulumi.Context) error {
	if err := tree.CheckVersion(config.Checkout("."), command.Version()); err != nil {
		return err
	}
	installed, err := namesBinary(".")
	if err != nil {
		return err
	}
	if installed {
		if err := checkInstalled("."); err != nil {
			return err
		}
		if err := components.RunInstalled(ctx); err != nil {
			return err
		}
	}
	return stacks.Deploy(ctx)
}

// namesBinary reports whether the project in a folder has runtime.options.binary. That is part of Git, so all users of a stack write the
// same commands into its state.
func namesBinary(folder string) (bool, error) {
	path, err := workspace.DetectProjectPathFrom(folder)
	if err != nil {
		return false, err
	}
	project, err := workspace.LoadProject(path)
	if err != nil {
		return false, err
	}
	return project.Runtime.Options()["binary"] != nil, nil
}

// checkInstalled returns an error unless the commands, which run in the folder, would find the running binary: another version may not
// understand this one.
func checkInstalled(folder string) error {
	running, err := os.Executable()
	if err != nil {
		return err
	}
	found := filepath.Join(folder, "bin", program)
	if _, err := os.Stat(found); err != nil {
		found, err = exec.LookPath(program)
		if err != nil && !errors.Is(err, exec.ErrDot) {
			return fmt.Errorf("runtime.options.binary: runs %s, but there is no bin/%s in the project's folder, and no %s on PATH; "+
				"put the binary there", running, program, program)
		}
	}
	if !same(running, found) {
		return fmt.Errorf("runtime.options.binary: runs %s, but the commands of the stack would run %s; keep one of the two", running, found)
	}
	return nil
}

// same reports whether two paths are one file.
func same(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}
