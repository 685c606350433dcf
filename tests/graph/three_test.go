package graph

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/stacks"
	"github.com/slipway-platform/slipway/stacks/contract"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// outputsOf returns what the stacks of the working folder have as outputs once they run.
func outputsOf(t *testing.T, names []string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, name := range names {
		all[name] = contract.Declared(load(t, name))
	}
	return all
}

// oneOf returns a recorder for a stack of the working folder, beside others with their outputs.
func oneOf(t *testing.T, name string, running map[string]map[string]any) *mocks.Recorder {
	t.Helper()
	rec := newRecorderOf(t, "Pulumi."+name+".yaml", name)
	rec.Secrets["slipway:meshCA"] = meshCA
	rec.OnCall = func(call pulumi.MockCallArgs) (resource.PropertyMap, error) {
		if call.Token != callStackOutputs {
			return answerCall(call)
		}
		asked := call.Args["name"].StringValue()
		outputs := running[asked[strings.LastIndex(asked, "/")+1:]]
		if outputs == nil {
			return nil, errUnknownStack
		}
		return resource.NewPropertyMapFromMap(map[string]any{"name": asked, "outputs": outputs}), nil
	}
	return rec
}

func TestThree_EachComesUpWithNoneOneOrBothOfTheOthersRunning(t *testing.T) {
	folder, names := clusters.Three(t, nil)
	t.Chdir(folder)
	outputs := outputsOf(t, names)
	running := map[string]map[string]any{}
	for _, order := range [][]string{names, {names[2], names[0], names[1]}} {
		clear(running)
		for _, name := range order {
			rec := oneOf(t, name, running)
			require.NoError(t, rec.Run(stacks.Deploy), "%s beside %v", name, slices.Sorted(maps.Keys(running)))
			spec := meshSpec(t, rec)
			assert.Len(t, spec.Peers, 2)
			asked := 0
			for _, call := range rec.Calls() {
				if call.Token == callStackOutputs {
					asked++
				}
			}
			assert.Equal(t, 2, asked, "both others are compared as they run")
			running[name] = outputs[name]
		}
	}
}

func TestThree_EveryCollisionWithBothOthersIsReportedAtOnce(t *testing.T) {
	folder, names := clusters.Three(t, nil)
	t.Chdir(folder)
	running := outputsOf(t, names)
	infra, apps := running[names[0]], running[names[1]]
	infra["clusterId"], apps["clusterId"] = 3, 3
	infra["vmIds"], apps["meshIp"] = "1,2,3,1311,5", "10.25.13.21"
	err := oneOf(t, "edge", running).Run(stacks.Deploy)
	for _, said := range []string{
		"cluster.id: 3 is cluster.id of apps as it runs; pick another",
		"cluster.id: 3 is cluster.id of infra as it runs; pick another",
		"nodePools[0].nodes[0].vmId: 1311 is vmId of machine infra-worker-1 of infra as it runs; pick another",
		"nodePools[1].nodes[0].address: 10.25.13.21 is network.loadBalancers.mesh of apps as it runs; pick another",
	} {
		require.ErrorContains(t, err, said)
	}
}

// A third cluster is one more stack file: nothing in the program knows which stacks there are.
func TestThree_NoCodeOfTheProgramNamesAStack(t *testing.T) {
	files := []string{filepath.Join(checkout, "main.go")}
	err := filepath.WalkDir(filepath.Join(checkout, "stacks"), func(path string, entry fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			files = append(files, path)
		}
		return err
	})
	require.NoError(t, err)
	require.Greater(t, len(files), 15)
	names := append(stackNames(t), "edge")
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(node ast.Node) bool {
			literal, is := node.(*ast.BasicLit)
			if is && literal.Kind == token.STRING && !strings.HasPrefix(literal.Value, `"github.com/`) {
				for _, word := range strings.FieldsFunc(literal.Value, func(char rune) bool { return char < 'a' || char > 'z' }) {
					assert.NotContains(t, names, word, path)
				}
			}
			return true
		})
	}
}
