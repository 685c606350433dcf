package charts

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"
)

// healthOf runs Slipway's health check of Applications as Argo CD runs it: with Lua's base and tables, and nothing else of its libraries.
// See util/lua/lua.go of Argo CD.
func healthOf(t *testing.T, application string) (status, message string) {
	t.Helper()
	data, _ := one(t, argoCD(t, ""), "ConfigMap", "argocd-cm").at("data").(map[string]any)
	script, _ := data["resource.customizations.health.argoproj.io_Application"].(string)
	require.NotEmpty(t, script)
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		require.NoError(t, state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)))
	}
	var object map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(application), &object))
	state.SetGlobal("obj", luaValue(state, object))
	require.NoError(t, state.DoString(script))
	result, is := state.Get(-1).(*lua.LTable)
	require.True(t, is, "it returns a table")
	return lua.LVAsString(result.RawGetString("status")), lua.LVAsString(result.RawGetString("message"))
}

func luaValue(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, below := range value {
			table.RawSetString(key, luaValue(state, below))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, below := range value {
			table.Append(luaValue(state, below))
		}
		return table
	case string:
		return lua.LString(value)
	case float64:
		return lua.LNumber(value)
	case bool:
		return lua.LBool(value)
	}
	return lua.LNil
}

func TestArgoCD_AnApplicationIsAsHealthyAsALaterWaveNeedsIt(t *testing.T) {
	const automated = "spec: {syncPolicy: {automated: {}}}\n"
	synced, outOfSync := automated+"status: {sync: {status: Synced}, ", automated+"status: {sync: {status: OutOfSync}, "
	for application, want := range map[string]string{
		automated: "Progressing",
		automated + "status: {health: {status: Healthy}}":                            "Progressing",
		automated + "status: {sync: {status: Synced}}":                               "Progressing",
		automated + "status: {sync: {status: OutOfSync}, health: {status: Healthy}}": "Progressing",
		automated + "status: {sync: {status: OutOfSync}, health: {status: Missing}}": "Missing",
		automated + "status: {sync: {status: Synced}, health: {status: Healthy}}":    "Healthy",
		automated + "status: {sync: {status: Synced}, health: {status: Degraded}}":   "Degraded",
		"spec: {}\nstatus: {sync: {status: OutOfSync}, health: {status: Healthy}}":   "Healthy",

		"spec: {syncPolicy: {automated: {enabled: false}}}\nstatus: {sync: {status: OutOfSync}, health: {status: Healthy}}": "Healthy",
		"spec: {syncPolicy: {automated: {enabled: true}}}\nstatus: {sync: {status: OutOfSync}, health: {status: Healthy}}":  "Progressing",
		"spec: {syncPolicy: {syncOptions: [Prune=false]}}\nstatus: {sync: {status: OutOfSync}, health: {status: Healthy}}":  "Healthy",

		outOfSync + "operationState: {phase: Failed}}":                                               "Degraded",
		outOfSync + "operationState: {phase: Running, retryCount: 2}}":                               "Degraded",
		outOfSync + "health: {status: Healthy}, operationState: {phase: Running}}":                   "Progressing",
		synced + "health: {status: Healthy}, operationState: {phase: Failed}}":                       "Healthy",
		synced + "conditions: [{type: OrphanedResourceWarning}], health: {status: Healthy}}":         "Healthy",
		outOfSync + "conditions: [{type: SyncError}], health: {status: Missing}}":                    "Degraded",
		synced + "health: {status: Progressing}, operationState: {phase: Succeeded, retryCount: 3}}": "Progressing",

		automated + "status: {sync: {status: Unknown}, conditions: [{type: ComparisonError, message: x}], health: {status: Healthy}}": "Degraded",
	} {
		status, _ := healthOf(t, application)
		assert.Equal(t, want, status, application)
	}
	_, message := healthOf(t, automated+"status: {sync: {status: Unknown}, conditions: [{type: ComparisonError, message: no such setting}]}")
	assert.Equal(t, "ComparisonError: no such setting", message)
}
