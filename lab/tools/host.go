package tools

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// checkHost returns an error that names all programs and files that the machine lacks for the tool, and how to install them.
func (t Tool) checkHost() error {
	var missing []string
	packages := map[string]bool{}
	for _, need := range slices.Sorted(maps.Keys(t.Host)) {
		if present(need) {
			continue
		}
		missing = append(missing, need)
		packages[t.Host[need]] = true
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("tool %s: the machine has no %s; install: apt-get install --no-install-recommends %s",
		t.Name, strings.Join(missing, ", "), strings.Join(slices.Sorted(maps.Keys(packages)), " "))
}

// present tells whether the machine has a program, or a file if need is an absolute path. Programs of administration are in folders that
// are not in every user's PATH.
func present(need string) bool {
	if filepath.IsAbs(need) {
		_, err := os.Stat(need)
		return err == nil
	}
	if _, err := exec.LookPath(need); err == nil {
		return true
	}
	return executable(filepath.Join("/usr/sbin", need)) || executable(filepath.Join("/sbin", need))
}
