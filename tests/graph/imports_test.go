package graph

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The SDK's helm and yaml packages import every Kubernetes kind there is: minutes of CPU and gigabytes of memory, at
// each cold compile of the program, in each PR check.
func TestProgram_ImportsNoPackageThatTakesMinutesToCompile(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	list.Dir = "../.."
	out, err := list.Output()
	require.NoError(t, err)
	deps := strings.Fields(string(out))

	const kubernetes = "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	assert.Contains(t, deps, kubernetes+"/core/v1", "the list is that of the program")
	for _, path := range deps {
		for _, heavy := range []string{kubernetes + "/helm/", kubernetes + "/yaml", kubernetes + "/kustomize"} {
			assert.False(t, strings.HasPrefix(path, heavy), "%s is imported; components/helm and apiextensions do without", path)
		}
	}
}

// module is the path that all of the product's packages begin with.
const module = "github.com/slipway-platform/slipway/"

// imports lists what each of the product's packages imports itself, tests aside.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./components/...", "./stacks/...")
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

// Outputs pass from one component to the next by way of stacks. What may be shared is what holds no component: the
// release resource, the form of the probe's specifications, and its vocabulary.
func TestComponents_KnowNeitherStacksNorEachOther(t *testing.T) {
	shared := map[string]bool{"components/helm": true, "components/probe": true, "components/probe/step": true, "components/readiness/health": true}
	looked := 0
	for path, imported := range imports(t) {
		component, found := strings.CutPrefix(path, "components/")
		if !found || strings.Contains(path, "/cmd/") {
			continue // a command is put together from whatever it needs
		}
		looked++
		component, _, _ = strings.Cut(component, "/")
		for _, other := range imported {
			other, ours := strings.CutPrefix(other, module)
			if !ours || shared[other] || other == "components/"+component || strings.HasPrefix(other, "components/"+component+"/") {
				continue
			}
			t.Errorf("%s imports %s; pass what it needs as an argument", path, other)
		}
	}
	assert.GreaterOrEqual(t, looked, 6)
}

// What is pure runs in milliseconds, and in the probe, which has no engine.
func TestPurePackages_ImportNoPulumi(t *testing.T) {
	packages := imports(t)
	for _, path := range []string{
		"stacks/config", "stacks/contract", "components/readiness/health", "components/talos/machineconfig", "components/talos/bootstrap",
		"components/talos/reclaim", "components/talos/turn", "components/helm/leftover", "components/core/pins", "components/core/crds",
		"components/core/crds/apply", "components/cilium/chart", "components/probe", "components/talos/direct",
	} {
		imported, found := packages[path]
		require.True(t, found, path)
		for _, other := range imported {
			assert.NotContains(t, other, "pulumi", path)
		}
	}
}
