package retire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSpec_ARunHasTimeForTheDeclaredReturnOfANode(t *testing.T) {
	limits := of(nodes("cp-1")).TurnLimits
	longer := limits
	longer.ReturnTimeout.Duration = 12 * time.Hour
	assert.Equal(t, 12*time.Hour-limits.ReturnTimeout.Duration, Longest(longer)-Longest(limits))
}
