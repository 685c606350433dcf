package charts

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster/machineconfig"
)

// The plugin that the lab builds has the machinery of the released one, so both parse the same documents.
func TestMachinery_OfTheTalosPluginParsesWhatAPatchMayHave(t *testing.T) {
	program, plugin := schemaOf(t, "../.."), schemaOf(t, "../../lab/tools/bridged")
	later := map[string][]string{}
	for kind, keys := range program {
		known, exists := plugin[kind]
		if !exists {
			later[kind] = nil
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if !known[key] {
				later[kind] = append(later[kind], key)
			}
		}
	}
	require.Greater(t, len(plugin), 30)
	require.Equal(t, machineconfig.ParsedLater, later)
}

// schemaOf returns the dotted keys of each kind of document that the machinery of a Go module in a folder knows.
func schemaOf(t *testing.T, folder string) map[string]map[string]bool {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/siderolabs/talos/pkg/machinery")
	command.Dir = folder
	output, err := command.Output()
	require.NoError(t, err)
	var module struct{ Dir string }
	require.NoError(t, json.Unmarshal(output, &module))
	text, err := os.ReadFile(filepath.Join(module.Dir, "config", "schemas", "config.schema.json"))
	require.NoError(t, err)
	var s documentSchema
	require.NoError(t, json.Unmarshal(text, &s))
	kinds := map[string]map[string]bool{}
	for _, document := range s.OneOf {
		definition, keys := s.Defs[document.name()], map[string]bool{}
		kind := ""
		if names := definition.Properties["kind"].Enum; len(names) > 0 {
			kind = names[0]
		}
		s.collect(keys, "", definition, nil)
		kinds[kind] = keys
	}
	return kinds
}

// documentSchema is the part of a JSON schema that Talos's uses.
type documentSchema struct {
	Ref        string                    `json:"$ref"`
	Defs       map[string]documentSchema `json:"$defs"`
	OneOf      []documentSchema          `json:"oneOf"`
	Properties map[string]documentSchema `json:"properties"`
	Enum       []string                  `json:"enum"`
}

func (s documentSchema) name() string { return strings.TrimPrefix(s.Ref, "#/$defs/") }

// collect adds the keys below a path. Definitions that contain themselves are followed once. What is below lists and free keys is left
// out.
func (s documentSchema) collect(keys map[string]bool, path string, of documentSchema, above []string) {
	if name := of.name(); name != "" && !slices.Contains(above, name) {
		s.collect(keys, path, s.Defs[name], append(slices.Clone(above), name))
	}
	for key, value := range of.Properties {
		below := strings.TrimPrefix(path+"."+key, ".")
		keys[below] = true
		s.collect(keys, below, value, above)
	}
}
