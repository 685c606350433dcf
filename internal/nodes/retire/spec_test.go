package retire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
)

func TestSpec_ARunHasTimeForTheDeclaredReturnOfANode(t *testing.T) {
	s := of(nodes("cp-1"))
	s.SetDefaults()
	longer := of(nodes("cp-1"))
	longer.ReturnTimeout = probe.Duration(12 * time.Hour)
	longer.SetDefaults()
	assert.Equal(t, 12*time.Hour-turn.Limits{}.Return(), longer.Timeout.Or(0)-s.Timeout.Or(0))
	assert.Equal(t, Longest(turn.Limits{ReturnTimeout: longer.ReturnTimeout}), longer.Timeout.Or(0))

	longer.ReturnTimeout = -1
	assert.ErrorContains(t, longer.Validate(), "returnTimeout")
}
