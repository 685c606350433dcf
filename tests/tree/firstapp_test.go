package tree

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// encrypted stands for the file of the page that kubeseal or sops writes.
const encrypted = "apiVersion: v1\nkind: Secret\nmetadata: {name: notes}\nstringData: {password: example}\n"

func TestFirstApp_ThePageIsBuiltAndKeepsTheRules(t *testing.T) {
	pages := map[string]string{}
	for _, text := range blocksOf(t, "docs/first-app.md") {
		name, found := strings.CutPrefix(strings.SplitN(text, "\n", 2)[0], "# ")
		require.True(t, found, "the first line of each block names its file:\n%s", text)
		pages[name] = text
	}
	require.Len(t, pages, 7)
	release := pages["kubernetes/apps/notes/release.yaml"]
	require.NotEmpty(t, release)
	for _, workload := range []string{"deployment.yaml", "release.yaml"} {
		for _, stack := range stacks(t) {
			files := checkout(t)
			for name, text := range pages {
				require.NoError(t, files.WriteFile(strings.Replace(name, "STACK", stack.Stack, 1), []byte(text)))
			}
			if workload == "release.yaml" { // its chart makes the Service
				list := "kubernetes/apps/notes/kustomization.yaml"
				text := strings.Replace(pages[list], "deployment.yaml", workload, 1)
				require.NoError(t, files.WriteFile(list, []byte(strings.Replace(text, "  - route.yaml\n", "", 1))))
			}
			require.NoError(t, files.WriteFile("kubernetes/apps/notes/secret.yaml", []byte(encrypted)))
			addLine(t, files, path.Join(stack.GitOps.Path, "workloads/kustomization.yaml"), "  - notes.yaml")
			layers := keepsItsRules(t, files, stack.GitOps.Path, stack.Settings())
			named(t, layers, "Kustomization", "notes")
			named(t, layers, "PersistentVolumeClaim", "notes")
		}
	}
}
