package graph

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The SDK's helm and yaml packages import all Kubernetes kinds, which costs minutes of CPU and gigabytes of memory at each cold
// compilation of the program, in each PR check. Helm's own packages take 51 CPU-seconds and 33 MB.
func TestProgram_ImportsNoPackageThatTakesMinutesToCompile(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	list.Dir = checkout
	out, err := list.Output()
	require.NoError(t, err)
	deps := strings.Fields(string(out))

	const kubernetes = "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	assert.Contains(t, deps, kubernetes+"/core/v1", "the list is that of the program")
	for _, path := range deps {
		for _, heavy := range []string{kubernetes + "/helm/", kubernetes + "/yaml", kubernetes + "/kustomize", "helm.sh/"} {
			assert.False(t, strings.HasPrefix(path, heavy), "%s is imported; components/internal/helm and apiextensions do without", path)
		}
	}
}

// module is the prefix of the paths of all the product's packages.
const module = "github.com/slipway-platform/slipway/"

// imports returns the direct imports of each of the product's packages, without tests.
func imports(t *testing.T) map[string][]string { return listed(t, ".Imports") }

// links returns all that each of the product's packages imports, directly or not, without tests.
func links(t *testing.T) map[string][]string { return listed(t, ".Deps") }

// listed returns a field of each of the product's packages that go list knows.
func listed(t *testing.T, field string) map[string][]string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join `+field+` " "}}`, "./...")
	list.Dir = checkout
	out, err := list.Output()
	require.NoError(t, err)
	packages := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		packages[strings.TrimPrefix(fields[0], module)] = fields[1:]
	}
	return packages
}

// component returns the component that a package belongs to: the folder below components, or below components/machines, which has a folder
// for each hypervisor. "" means none.
func component(path string) string {
	below, is := strings.CutPrefix(path, "components/")
	if !is {
		return ""
	}
	parts := strings.Split(below, "/")
	if parts[0] == "machines" && len(parts) > 1 {
		return "machines/" + parts[1]
	}
	return parts[0]
}

// Another program can take the components, and nothing of internal.
func TestComponents_EachConstructorHasAnExampleWithoutInternalPackages(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(checkout, "components", "*", "*.go"))
	require.NoError(t, err)
	constructor := regexp.MustCompile(`(?m)^func (New\w+)\(\s*ctx \*pulumi\.Context, name string, args `)
	looked := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range constructor.FindAllStringSubmatch(string(text), -1) {
			looked++
			example, err := os.ReadFile(filepath.Join(filepath.Dir(file), "example_test.go"))
			require.NoError(t, err)
			assert.Contains(t, string(example), "func Example"+found[1]+"() {", file)
			assert.NotContains(t, string(example), module+"internal/", file)
		}
	}
	assert.Greater(t, looked, 8)
}

// Package stacks passes outputs from one component to the next.
func TestComponents_KnowNeitherStacksNorEachOther(t *testing.T) {
	looked := 0
	for path, imported := range imports(t) {
		own := component(path)
		if own == "" {
			continue
		}
		looked++
		for _, other := range imported {
			other, ours := strings.CutPrefix(other, module)
			shared := component(other) == "" || component(other) == own || component(other) == "internal"
			if ours && (strings.HasPrefix(other, "stacks") || !shared) {
				t.Errorf("%s imports %s; pass what it needs as an argument", path, other)
			}
		}
	}
	assert.GreaterOrEqual(t, looked, 6)
}

// A second hypervisor is another folder beside proxmox.
func TestComponents_OnlyTheHypervisorKnowsProxmox(t *testing.T) {
	const sdk = "github.com/muhlba91/pulumi-proxmoxve"
	linked := links(t)
	knows := func(path string) bool {
		return slices.ContainsFunc(linked[path], func(other string) bool { return strings.HasPrefix(other, sdk) })
	}
	assert.True(t, knows("components/machines/proxmox"))
	for _, path := range []string{"components/talos", "components/internal/machines", "components/internal/component"} {
		require.NotEmpty(t, linked[path], path)
		assert.False(t, knows(path), path)
	}
}

// The layers are, from below: cluster, internal, components, stacks.
func TestCluster_KnowsOnlyTheFormsOfText(t *testing.T) {
	for path, may := range map[string][]string{
		"cluster/secrecy": nil, "cluster/syntax": {"cluster/secrecy"}, "cluster": {"cluster/releases", "cluster/secrecy", "cluster/syntax"},
		"cluster/releases": nil,
	} {
		imported := imports(t)[path]
		require.NotEmpty(t, imported, path)
		var ours []string
		for _, other := range imported {
			if other, own := strings.CutPrefix(other, module); own {
				ours = append(ours, other)
			}
		}
		assert.Equal(t, may, ours, path)
	}
}

func TestSharedPackages_KnowNoComponent(t *testing.T) {
	looked := 0
	for path, imported := range imports(t) {
		if !strings.HasPrefix(path, "internal/") && !strings.HasPrefix(path, "cluster") {
			continue
		}
		looked++
		for _, other := range imported {
			other, ours := strings.CutPrefix(other, module)
			if ours && (strings.HasPrefix(other, "stacks") || strings.HasPrefix(other, "components")) {
				t.Errorf("%s imports %s; what they share belongs below both", path, other)
			}
		}
	}
	assert.GreaterOrEqual(t, looked, 8)
}

// Fakes, mocks and other helpers of tests are no part of the product.
func TestProduct_ImportsNothingOfTests(t *testing.T) {
	looked := 0
	for path, imported := range imports(t) {
		if strings.HasPrefix(path, "tests/") || strings.HasSuffix(path, "test") {
			continue
		}
		looked++
		for _, other := range imported {
			assert.False(t, strings.HasPrefix(other, module+"tests/"), "%s imports %s", path, other)
		}
	}
	assert.Greater(t, looked, 60)
}

// isPure reports whether a package must do without Pulumi: the model, the commands below cmd, all of internal, and each package below a
// component or below stacks. What registers resources for several components is in components/internal.
func isPure(path string) bool {
	layer, below, nested := strings.Cut(path, "/")
	switch layer {
	case "cluster", "internal":
		return true
	case "components":
		return below != component(path) && (component(path) != "internal" || strings.Count(below, "/") > 1)
	case "cmd", "stacks":
		return nested
	}
	return false
}

// The commands run without a Pulumi engine, and the tests of the model take milliseconds.
func TestPurePackages_LinkNoPulumi(t *testing.T) {
	looked := map[string]bool{}
	for path, linked := range links(t) {
		if !isPure(path) {
			continue
		}
		looked[path] = true
		for _, other := range linked {
			assert.NotContains(t, other, "pulumi", path)
			if other, ours := strings.CutPrefix(other, module); ours {
				looked[other] = true
			}
		}
	}
	for _, path := range []string{"cluster", "cmd/slipway-probe", "cmd/config-check", "internal/observe", "internal/nodes/live",
		"stacks/config"} {
		assert.Contains(t, looked, path)
	}
	assert.Contains(t, links(t)["components/talos"], "github.com/pulumi/pulumi/sdk/v3/go/pulumi", "the list has the packages of others")
}
