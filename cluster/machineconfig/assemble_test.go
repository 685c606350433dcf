package machineconfig

import (
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
)

// The Talos provider generates the machine configurations with Talos's default, and Flux is told the domain.
func TestDNSDomain_IsTalossDefault(t *testing.T) {
	assert.Equal(t, constants.DefaultDNSDomain, cluster.DNSDomain)
}
