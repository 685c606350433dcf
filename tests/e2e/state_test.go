//go:build e2e

package e2e

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/graph"
)

// TestPreview_OfTheStateOfAReleaseShowsOnlyWhatIsMeant runs `make preview` with the stack files and the states of each kept release. The
// real engine and the real plugins compare them with what the program of this checkout registers; nothing else of the lab is asked.
func TestPreview_OfTheStateOfAReleaseShowsOnlyWhatIsMeant(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("..", "graph", "states", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	l := startLab(t, "preview-state")
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) { onlyWhatIsMeant(t, l, folder) })
	}
}

func onlyWhatIsMeant(t *testing.T, l *lab, folder string) {
	clone, states := cloneOf(t), t.TempDir()
	packed, err := filepath.Glob(filepath.Join(folder, "*.json.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, packed)
	for _, file := range packed {
		stack := strings.TrimSuffix(filepath.Base(file), ".json.gz")
		unpack(t, file, filepath.Join(states, stack+".json"))
		text, err := os.ReadFile(filepath.Join(folder, "Pulumi."+stack+".yaml"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(clone, "Pulumi."+stack+".yaml"), text, 0o600))
	}
	commitAll(t, clone, "the stack files of "+filepath.Base(folder))
	out, err := l.try("make", "-C", clone, "preview", "BASE=HEAD", "STATE="+states)
	require.NoError(t, err, end(out))

	text, err := os.ReadFile(filepath.Join(clone, "bin", "preview", "preview.json"))
	require.NoError(t, err)
	var report struct {
		Stacks []struct {
			Name     string
			Existing *struct {
				Operations, OfBase []existing
				Same               int
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &report))
	require.Len(t, report.Stacks, len(packed))
	for _, stack := range report.Stacks {
		require.NotNil(t, stack.Existing, stack.Name)
		assert.Greater(t, stack.Existing.Same, 30, stack.Name)
		for _, one := range append(stack.Existing.Operations, stack.Existing.OfBase...) {
			assert.True(t, meant(one), "%s: %s %s %s: %v", stack.Name, one.Op, one.Type, one.Name, one.Lines)
		}
		t.Logf("%s: %d resources stay, %d runs of the probe", stack.Name, stack.Existing.Same, len(stack.Existing.OfBase))
	}
}

// meant reports whether the program makes a change of a kept state on purpose. Only runs of the probe are replaced.
func meant(one existing) bool {
	key := one.Type + " " + one.Name
	switch one.Op {
	case "create":
		return slices.Contains(graph.Created, key)
	case "update":
		parts := slices.Concat(graph.Intended, graph.OfPlugins)
		return one.Type == "command:local:Command" ||
			slices.ContainsFunc(parts, func(change string) bool { return strings.HasPrefix(change, key+": ") }) ||
			len(one.Lines) > 0 && !slices.ContainsFunc(one.Lines, func(line string) bool {
				return !slices.ContainsFunc(slices.Concat(parts, stored), func(part string) bool { return strings.Contains(line, part) })
			})
	}
	return one.Type == "command:local:Command" && one.Op != "delete"
}

// stored are settings of Proxmox VE's plugin 7 that its first run stores in the state of each VM, or removes from it.
var stored = []string{
	"amdSev = null", "cpu.units = 1024", "deleteUnreferencedDisksOnDestroy = true", `].importFrom = ""`, "].queues = 0", `DataFileId = ""`,
	`initialization.type = ""`, "].enabled = true", "purgeOnDestroy = true", "rebootAfterUpdate = true", "rngs = []", `vga.clipboard = ""`,
	"vga.memory = 16", "vga.type = std", "virtiofs = []",
}

func TestMeant_LetsNothingElsePassBesideWhatIsMeant(t *testing.T) {
	update := func(lines ...string) existing {
		return existing{Op: "update", Type: "proxmoxve:VM/virtualMachine:VirtualMachine", Name: "talos-infra-cp-1-vm", Lines: lines}
	}
	require.True(t, meant(update("- cdrom.enabled = true", "- vga.memory = 16")))
	require.False(t, meant(update("- cdrom.enabled = true", "- memory.dedicated = 8192")))
	require.False(t, meant(update()))
	require.False(t, meant(existing{Op: "replace", Type: "tls:index/selfSignedCert:SelfSignedCert", Name: "secrets-sealing-key-1"}))
	require.True(t, meant(existing{Op: "replace", Type: "command:local:Command", Name: "gate-probe"}))
	require.False(t, meant(existing{Op: "delete", Type: "command:local:Command", Name: "gate-probe"}))
}

func unpack(t *testing.T, from, to string) {
	t.Helper()
	file, err := os.Open(from)
	require.NoError(t, err)
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	require.NoError(t, err)
	text, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, text, 0o600))
}
