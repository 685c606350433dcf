package cluster

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func TestSecret_OnlyRevealReturnsTheValue(t *testing.T) {
	stack := Cluster{Secrets: Secrets{
		GitPassword:        NewSecret("hunter2"),
		TalosSecretPatches: NewSecret("hunter2"),
		SecretPatches:      SecretPatches{Patches{All: []Patch{Patch(`"hunter2"`)}}},
	}}
	asJSON, err := json.Marshal(stack)
	require.NoError(t, err)
	asYAML, err := yaml.Marshal(stack)
	require.NoError(t, err)
	for _, shown := range []string{
		string(asJSON), string(asYAML),
		fmt.Sprint(stack), fmt.Sprintf("%+v", stack), fmt.Sprintf("%#v", stack), fmt.Sprintf("%v", &stack.GitPassword),
		fmt.Sprintf("%s %q %x %d", stack.GitPassword, stack.GitPassword, stack.GitPassword, stack.GitPassword),
		fmt.Sprint(map[string]any{"x": stack.GitPassword}), fmt.Sprintf("%+v", struct{ hidden Secret }{stack.GitPassword}),
	} {
		assert.NotContains(t, shown, "hunter2")
		assert.NotContains(t, shown, "68756e74657232", "in hexadecimal")
	}
	assert.Equal(t, "hunter2", stack.GitPassword.Reveal())
	assert.True(t, stack.GitPassword.IsSet())
	assert.False(t, stack.ProxmoxAPIToken.IsSet())
	assert.Empty(t, stack.ProxmoxAPIToken.String())
}
