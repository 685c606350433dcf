package clusters

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
)

// meshSection is the section of a stack file that declares its peers.
var meshSection = regexp.MustCompile(`(?m)^  slipway:mesh:.*\n(    .*\n)*`)

// Three returns a folder with the copies of the stack files and a third one, all of them peers in a mesh, and the names of the stacks.
// change, if not nil, changes the text of the third.
func Three(t testing.TB, change func(text string) string) (folder string, stacks []string) {
	t.Helper()
	folder = t.TempDir()
	texts := map[string]string{"edge": fixtures.Third()}
	if change != nil {
		texts["edge"] = change(texts["edge"])
	}
	stacks = []string{"infra", "apps", "edge"}
	for _, stack := range stacks[:2] {
		text, err := os.ReadFile(Sample(t, stack))
		require.NoError(t, err)
		texts[stack] = string(text)
	}
	for _, stack := range stacks {
		var peers []string
		for _, other := range stacks {
			if other != stack {
				peers = append(peers, other)
			}
		}
		text := meshSection.ReplaceAllString(texts[stack], "") + fmt.Sprintf("  slipway:mesh: {peers: [%s]}\n", strings.Join(peers, ", "))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "Pulumi."+stack+".yaml"), []byte(text), 0o600))
	}
	return folder, stacks
}
