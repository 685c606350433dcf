package charts

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/machineconfig"
	"github.com/slipway-platform/slipway/tests/clusters"
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

// denied matches a flag that Talos merges with no other value: it would render no static pod, or start no kubelet.
var denied = regexp.MustCompile(`"([a-z-]+)":\s+argsbuilder\.MergeDenied`)

func TestPatches_MayNotHaveTheFlagsThatTalosDenies(t *testing.T) {
	dir, err := moduleOf("../../lab", "github.com/siderolabs/talos")
	require.NoError(t, err)
	source := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, "internal/app/machined/pkg/controllers/k8s", name))
		require.NoError(t, err)
		return string(text)
	}
	apiServer, rest, _ := strings.Cut(source("control_plane_static_pod.go"), "Controller) manageControllerManager(")
	manager, scheduler, _ := strings.Cut(rest, "Controller) manageScheduler(")
	for part, text := range map[string]string{
		"cluster.apiServer": apiServer, "cluster.controllerManager": manager, "cluster.scheduler": scheduler,
		"machine.kubelet": source("kubelet_spec.go"),
	} {
		flags := denied.FindAllStringSubmatch(text, -1)
		require.NotEmpty(t, flags, part)
		for _, flag := range flags {
			section, component, _ := strings.Cut(part, ".")
			patch := fmt.Sprintf("%s: {%s: {extraArgs: {%s: x}}}", section, component, flag[1])
			violations := machineconfig.CheckPatches(clusters.Infra(t, func(c *cluster.Cluster) {
				c.Talos.Patches.ControlPlanes = []cluster.Patch{cluster.Patch(patch)}
			}))
			require.NotEmpty(t, violations, patch)
			require.Contains(t, violations[0].Error(), "Slipway", patch)
		}
	}
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
