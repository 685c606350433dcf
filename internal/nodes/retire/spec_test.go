package retire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSpec_ARunHasTimeForTheDeclaredReturnOfANode(t *testing.T) {
	s := of(nodes("cp-1"))
	s.SetDefaults()
	longer := of(nodes("cp-1"))
	longer.ReturnTimeout.Duration = 12 * time.Hour
	longer.SetDefaults()
	assert.Equal(t, 12*time.Hour-s.ReturnTimeout.Duration, longer.Timeout.Or(0)-s.Timeout.Or(0))
	assert.Equal(t, Longest(longer.TurnLimits), longer.Timeout.Or(0))
}
