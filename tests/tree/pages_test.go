package tree

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/stacks/config"
	"github.com/slipway-platform/slipway/tests/docs"
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, name))
	require.NoError(t, err)
	return string(text)
}

// blocksOf returns the blocks of YAML of a page, in order.
func blocksOf(t *testing.T, name string) (texts []string) {
	t.Helper()
	for _, block := range docs.Blocks(name, page(t, name)) {
		if block.Language == "yaml" {
			texts = append(texts, strings.Join(block.Lines, "\n")+"\n")
		}
	}
	return texts
}

// keepsItsRules builds a tree as Flux does, and checks its objects.
func keepsItsRules(t *testing.T, files filesys.FileSystem, folder string, settings map[string]string) []Layer {
	t.Helper()
	layers, err := Build(files, folder, settings)
	require.NoError(t, err)
	known, err := schemas()
	require.NoError(t, err)
	for _, layer := range layers {
		for _, object := range layer.Objects {
			assert.NoError(t, known.Validate(object), "%s: %s", layer.Name, object.Title())
		}
	}
	for _, rule := range rules {
		one := tree{layers: layers}
		rule.check(&one)
		assert.Empty(t, one.problems, rule.name)
	}
	return layers
}

// quickStart returns the cluster of the quick start's stack file, with the setting that its last part adds.
func quickStart(t *testing.T, file string) *cluster.Cluster {
	t.Helper()
	const url = "public: true, "
	require.Contains(t, file, url)
	require.Contains(t, page(t, "docs/quickstart.md"), "`settings: {DOMAIN: home.example.com}`")
	file = strings.Replace(file, url, url+"settings: {DOMAIN: home.example.com}, ", 1)
	source, err := config.ParseFile("Pulumi.home.yaml", []byte(file))
	require.NoError(t, err)
	stack, err := config.Load(source)
	require.NoError(t, err)
	return stack
}

// TestQuickStart_TheFirstAppIsBuiltFromItsCommands runs the commands of the page that copy manifests, beside a folder with the name of the
// clone, in a repository of the template.
func TestQuickStart_TheFirstAppIsBuiltFromItsCommands(t *testing.T) {
	const name = "docs/quickstart.md"
	blocks := blocksOf(t, name)
	require.Len(t, blocks, 2, "the stack file and the kustomization")
	stack, folder := quickStart(t, blocks[0]), t.TempDir()
	root, err := filepath.Abs(repository)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(root, filepath.Join(folder, "slipway")))
	home := filepath.Join(folder, "home")
	require.NoError(t, os.CopyFS(home, os.DirFS(filepath.Join(repository, "templates", "cluster"))))
	steps, err := docs.Steps(t.Name(), name, page(t, name))
	require.NoError(t, err)
	require.Len(t, steps, 1)
	command := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", steps[0].Commands)
	command.Dir = home
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	list := filepath.Join(home, filepath.FromSlash(stack.GitOps.Path), "kustomization.yaml")
	require.FileExists(t, list)
	require.NoError(t, os.WriteFile(list, []byte(blocks[1]), 0o600))

	files := filesys.MakeFsInMemory()
	require.NoError(t, filepath.WalkDir(filepath.Join(home, "kubernetes"), func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(home, name)
		if err != nil {
			return err
		}
		return files.WriteFile(filepath.ToSlash(below), text)
	}))
	layers := keepsItsRules(t, files, stack.GitOps.Path, stack.Settings())
	named(t, layers, "Kustomization", "podinfo")
	named(t, layers, "HTTPRoute", "podinfo")
}
