//go:build e2e

package e2e

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPreview_OfTheStateOfAReleaseShowsOnlyRunsOfTheProbe runs `make preview` with the stack files and the states of each kept release. The
// real engine and the real plugins compare them with what the program of this checkout registers; nothing else of the lab is asked.
func TestPreview_OfTheStateOfAReleaseShowsOnlyRunsOfTheProbe(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("..", "graph", "states", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	l := startLab(t, "preview-state")
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) { onlyRunsOfTheProbe(t, l, folder) })
	}
}

func onlyRunsOfTheProbe(t *testing.T, l *lab, folder string) {
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
		assert.Greater(t, stack.Existing.Same, 40, stack.Name)
		for _, one := range append(stack.Existing.Operations, stack.Existing.OfBase...) {
			assert.Equal(t, "command:local:Command", one.Type, "%s: %s %s", stack.Name, one.Op, one.Name)
			assert.NotContains(t, []string{"create", "delete"}, one.Op, "%s: %s", stack.Name, one.Name)
		}
		t.Logf("%s: %d resources stay, %d runs of the probe", stack.Name, stack.Existing.Same, len(stack.Existing.OfBase))
	}
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
