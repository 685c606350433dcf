package graph

import (
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/stacks"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// lines returns the command lines of a command that are declared.
func lines(reg mocks.Registration) map[string]string {
	found := map[string]string{}
	for _, key := range []string{"create", "update", "delete"} {
		if text, is := reg.Input(key).(string); is {
			found[key] = text
		}
	}
	return found
}

// The text is part of the state: another one would run the probe again.
func TestInstalled_AllCommandsRunTheBinaryAndNothingElseChanges(t *testing.T) {
	eachStack(t, func(t *testing.T, stack *cluster.Cluster, source *mocks.Recorder) {
		binary := newRecorder(t, stack.Stack)
		require.NoError(t, binary.Run(func(ctx *pulumi.Context) error {
			require.NoError(t, components.RunInstalled(ctx))
			return stacks.Deploy(ctx)
		}))
		assert.Equal(t, source.Names(), binary.Names())
		looked := 0
		for _, reg := range source.OfType(typeCommand) {
			other := binary.Resource(t, reg.Name)
			want := lines(reg)
			for key, line := range want {
				if rest, runs := strings.CutPrefix(line, probe.Program); runs {
					want[key], looked = `PATH="$PWD/bin:$PATH" slipway probe`+rest, looked+1
				}
			}
			assert.Equal(t, want, lines(other), reg.Name)
			assert.Equal(t, reg.Dependencies, other.Dependencies, reg.Name)
			assert.Equal(t, reg.AdditionalSecretOutputs, other.AdditionalSecretOutputs, reg.Name)
			assert.Equal(t, reg.SecretInput("stdin"), other.SecretInput("stdin"), reg.Name)
		}
		assert.Greater(t, looked, 8)
	})
}
