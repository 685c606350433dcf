package plugins

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// used are the types of the SDK that the program uses, by their packages. Types of their fields are compared, too.
var used = map[string][]string{
	"":         {"providerArgs"},
	"download": {"fileArgs", "fileState"},
	"vm":       {"virtualMachineArgs", "virtualMachineState"},
}

// known are the differences that do not matter, because the program does not set these inputs: for the deprecated input, a test of package
// proxmox shows it.
var known = map[string]string{
	"VirtualMachineInitialization.upgrade":   "is missing",
	"VirtualMachineInitializationDns.server": "is missing",
	"VirtualMachineCdrom.enabled":            "is deprecated",
}

func TestPlugin_TakesWhatTheProgramIsCompiledWith(t *testing.T) {
	found, compared := map[string]string{}, 0
	for name, kinds := range used {
		program, err := readSDK(programs, name)
		require.NoError(t, err)
		plugin, err := readSDK(plugins, name)
		require.NoError(t, err)
		assert.Subset(t, plugin.Tokens, tokensOf(kinds), name)
		assert.Subset(t, program.Tokens, tokensOf(kinds), name)
		seen := map[string]bool{}
		for len(kinds) > 0 {
			kind := kinds[0]
			kinds = kinds[1:]
			if seen[kind] {
				continue
			}
			seen[kind] = true
			require.NotEmpty(t, program.Types[kind], "%s.%s", name, kind)
			compared += len(program.Types[kind])
			for input, was := range program.Types[kind] {
				if problem := was.problem(plugin.Types[kind], input); problem != "" {
					found[kind+"."+input] = problem
				}
				if below := strings.Trim(was.Type, "*[]"); program.Types[below] != nil {
					kinds = append(kinds, below)
				}
			}
			for input, is := range plugin.Types[kind] {
				if _, has := program.Types[kind][input]; !has && is.isRequired() {
					found[kind+"."+input] = "is required"
				}
			}
		}
	}
	assert.Equal(t, known, found)
	assert.Greater(t, compared, 250)
}

// tokensOf returns the tokens of the resources with these arguments.
func tokensOf(kinds []string) []string {
	return map[string][]string{
		"fileArgs": {"proxmoxve:Download/file:File"}, "virtualMachineArgs": {"proxmoxve:VM/virtualMachine:VirtualMachine"},
	}[kinds[0]]
}

// problem says what the plugin has another way, "" if it is the same.
func (f field) problem(plugin map[string]field, name string) string {
	is, has := plugin[name]
	switch {
	case !has:
		return "is missing"
	case is.Type != f.Type:
		return "is " + is.Type + ", not " + f.Type
	case is.Deprecated != "" && f.Deprecated == "":
		return "is deprecated"
	}
	return ""
}

// isRequired reports whether an input must be set: every other one is a pointer, a list or a map.
func (f field) isRequired() bool {
	return !strings.HasPrefix(f.Type, "*") && !strings.HasPrefix(f.Type, "[]") && !strings.HasPrefix(f.Type, "map[")
}

func TestPlugin_IsThatOfTheComparedSDK(t *testing.T) {
	source, err := os.ReadFile("../../components/internal/component/plugins.go")
	require.NoError(t, err)
	pinned := regexp.MustCompile(`proxmoxVersion = "(.+)"`).FindSubmatch(source)
	require.NotNil(t, pinned)
	_, version, err := moduleFolder(plugins)
	require.NoError(t, err)
	assert.Equal(t, version, "v"+string(pinned[1]))

	program, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	_, version, err = moduleFolder(programs)
	require.NoError(t, err)
	assert.Contains(t, string(program), programs+" "+version+"\n")
}
