package workload

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCSI_ADriverOfANodeThatWasDownRegistersAgain(t *testing.T) {
	var drivers CSI
	stops := 0
	register := func() func() { return drivers.Register("worker-1", "rbd", "/csi.sock", func() { stops++ }) }
	unregister := register()
	drivers.NodeDown("worker-1")
	unregister()
	assert.Empty(t, drivers.Drivers("worker-1"))
	register()
	assert.Equal(t, map[string]string{"rbd": "/csi.sock"}, drivers.Drivers("worker-1"))
	drivers.NodeDown("worker-1")
	assert.Equal(t, 2, stops)
}
