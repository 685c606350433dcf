package observe

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNewTalos_QuotesNothingOfTheTalosconfig(t *testing.T) {
	for _, text := range []string{"s3cret: [", "context: x\ncontexts: s3cret", "context: x\ncontexts:\n  x: {endpoints: [a], ca: s3cret}"} {
		_, err := NewTalos(t.Context(), text, nil)
		require.ErrorContains(t, err, "talosconfig: ")
		assert.NotContains(t, err.Error(), "s3cret")
	}
}
