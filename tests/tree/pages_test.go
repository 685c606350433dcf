package tree

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/cmd/newcluster"
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

// ofQuickStart is the repository that the command of the quick start writes, and its cluster.
func ofQuickStart(t *testing.T) (filesys.FileSystem, *cluster.Cluster) {
	t.Helper()
	here, err := os.Getwd()
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	defer t.Chdir(here) // the pages and the schemas are below it
	require.Zero(t, command.Run(t.Context(), newcluster.Command("v0.1.0"), []string{"home", "--public", "--domain", "home.example.com"}))
	text, err := os.ReadFile("home/Pulumi.home.yaml")
	require.NoError(t, err)
	source, err := config.ParseFile("Pulumi.home.yaml", text)
	require.NoError(t, err)
	stack, err := config.Load(source)
	require.NoError(t, err)
	files := filesys.MakeFsInMemory()
	require.NoError(t, fs.WalkDir(os.DirFS("home"), "kubernetes", func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join("home", name))
		if err != nil {
			return err
		}
		return files.WriteFile(name, text)
	}))
	return files, stack
}

func TestQuickStart_TheRepositoryWithADomainIsBuiltAndKeepsTheRules(t *testing.T) {
	files, stack := ofQuickStart(t)
	layers := keepsItsRules(t, files, stack.GitOps.Path, stack.Settings())
	named(t, layers, "Gateway", "gateway")
	named(t, layers, "Kustomization", "podinfo")
	named(t, layers, "HTTPRoute", "podinfo")
}
