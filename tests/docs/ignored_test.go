package docs

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writes finds the files of this folder that a command in a document writes.
var writes = regexp.MustCompile("(?: >|-keyout |-out |(?:age-keygen|gen secrets) [^`\n]*-o |ssh-keygen [^`\n]*-f |" +
	"stack export [^`\n]*--file )([a-z][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_.-]+)?)")

func TestGitignore_HasEveryFileThatADocumentTellsOneToWrite(t *testing.T) {
	documents, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	require.NoError(t, err)
	written := map[string]string{}
	for _, document := range append(documents, filepath.Join(repository, "README.md")) {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, match := range writes.FindAllStringSubmatch(string(text), -1) {
			written[match[1]] = filepath.Base(document)
		}
	}
	delete(written, "sealed-secret.yaml") // it is for Git
	require.Subset(t, slices.Collect(maps.Keys(written)), []string{
		"infra.kubeconfig", "mesh-ca.pem", "sealing.key", "age-key", "token", "secrets.yaml", "infra-state.json", "states/infra.json",
	})
	ofUsers := filepath.Join(t.TempDir(), "home") // a repository of slipway new
	require.NoError(t, os.CopyFS(ofUsers, os.DirFS(filepath.Join(repository, "templates", "cluster"))))
	require.NoError(t, exec.CommandContext(t.Context(), "git", "init", "--quiet", ofUsers).Run())
	for name, document := range written {
		for _, folder := range []string{repository, ofUsers} {
			command := exec.CommandContext(t.Context(), "git", "-C", folder, "check-ignore", "--quiet", "--no-index", name)
			assert.NoError(t, command.Run(), "%s, which %s writes, in %s", name, document, filepath.Base(folder))
		}
	}
}
