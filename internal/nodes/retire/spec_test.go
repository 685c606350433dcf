package retire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSpec_ARunHasTimeForTheDeclaredReturnOfANode(t *testing.T) {
	spec, longer := of(nodes("cp-1")), of(nodes("cp-1"))
	longer.ReturnTimeout.Duration = 12 * time.Hour
	assert.Equal(t, 12*time.Hour-spec.ReturnTimeout.Duration, longer.Longest()-spec.Longest())
}
