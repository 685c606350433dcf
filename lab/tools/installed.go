package tools

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// askTimeout is how long a program may take to print its version.
const askTimeout = 10 * time.Second

// installed returns the machine's own program if it has exactly the tool's version, else "". found holds the paths of
// the programs that were found on the machine, by name.
func (b *Builder) installed(ctx context.Context, t Tool, found map[string]string) string {
	if t.Plugin != "" {
		return b.installedPlugin(t)
	}
	switch {
	case t.Installed == nil:
		return ""
	case t.Installed.Beside != "":
		// Both programs come from the same release, so they are in the same folder.
		if neighbour, ok := found[t.Installed.Beside]; ok {
			if path := filepath.Join(filepath.Dir(neighbour), t.binary()); executable(path) {
				return path
			}
		}
		return ""
	}
	path, err := exec.LookPath(t.binary())
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, t.Installed.Args...).Output()
	if err != nil || !saysVersion(string(out), t.Installed.Prefix, t.Version) {
		return ""
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	return path
}

// installedPlugin returns the plugin that Pulumi itself has downloaded, or "".
func (b *Builder) installedPlugin(t Tool) string {
	home := b.Home
	if home == "" {
		home = os.Getenv("PULUMI_HOME")
	}
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		home = filepath.Join(user, ".pulumi")
	}
	if path := filepath.Join(home, t.pluginFolder(), t.binary()); executable(path) {
		return path
	}
	return ""
}

// saysVersion tells whether the output contains the version directly after the prefix, and not as part of another
// version (1.12.0 is not 1.12.0-beta.1, nor 1.12.01).
func saysVersion(output, prefix, version string) bool {
	return regexp.MustCompile(`(?m)(^|\s)` + regexp.QuoteMeta(prefix) + regexp.QuoteMeta(version) + `(\s|$)`).MatchString(output)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
