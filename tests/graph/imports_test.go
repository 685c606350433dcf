package graph

import (
	"os/exec"
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
	list.Dir = "../.."
	out, err := list.Output()
	require.NoError(t, err)
	deps := strings.Fields(string(out))

	const kubernetes = "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	assert.Contains(t, deps, kubernetes+"/core/v1", "the list is that of the program")
	for _, path := range deps {
		for _, heavy := range []string{kubernetes + "/helm/", kubernetes + "/yaml", kubernetes + "/kustomize", "helm.sh/"} {
			assert.False(t, strings.HasPrefix(path, heavy), "%s is imported; internal/helm and apiextensions do without", path)
		}
	}
}

// module is the prefix of the paths of all the product's packages.
const module = "github.com/slipway-platform/slipway/"

// imports returns the direct imports of each of the product's packages, without tests.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	list.Dir = "../.."
	out, err := list.Output()
	require.NoError(t, err)
	packages := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		packages[strings.TrimPrefix(fields[0], module)] = fields[1:]
	}
	return packages
}

// component returns the component that a package belongs to: the folder below components. "" means none.
func component(path string) string {
	below, _ := strings.CutPrefix(path, "components/")
	if below == path {
		return ""
	}
	name, _, _ := strings.Cut(below, "/")
	return name
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
			if ours && (strings.HasPrefix(other, "stacks") || component(other) != "" && component(other) != own) {
				t.Errorf("%s imports %s; pass what it needs as an argument", path, other)
			}
		}
	}
	assert.GreaterOrEqual(t, looked, 6)
}

// The layers are, from below: cluster, internal, components, stacks.
func TestSharedPackages_KnowNoComponent(t *testing.T) {
	looked := 0
	for path, imported := range imports(t) {
		if !strings.HasPrefix(path, "internal/") && !strings.HasPrefix(path, "cluster") {
			continue
		}
		looked++
		for _, other := range imported {
			other, ours := strings.CutPrefix(other, module)
			if ours && (strings.HasPrefix(other, "stacks") || component(other) != "") {
				t.Errorf("%s imports %s; what they share belongs below both", path, other)
			}
		}
	}
	assert.GreaterOrEqual(t, looked, 8)
}

// The probe runs without a Pulumi engine, and the tests of the model take milliseconds. Only components, stacks, and the packages that
// register resources for several components import Pulumi.
func TestPurePackages_ImportNoPulumi(t *testing.T) {
	looked := 0
	for path, imported := range imports(t) {
		registers := slices.Contains([]string{"internal/component", "internal/helm", "internal/step"}, path)
		if registers || !strings.HasPrefix(path, "internal/") && !strings.HasPrefix(path, "cluster") &&
			!strings.HasPrefix(path, "cmd/") && !strings.HasPrefix(path, "stacks/") {
			continue
		}
		looked++
		for _, other := range imported {
			assert.NotContains(t, other, "pulumi", path)
		}
	}
	assert.GreaterOrEqual(t, looked, 12)
}
