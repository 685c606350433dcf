package rook

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWords_LeaveTheFlagsOfThePluginOut(t *testing.T) {
	line, id := words([]string{"ceph", "osd", "out", "3", "--connect-timeout=10", "--conf=/var/lib/rook/rook-ceph/rook-ceph.config"})
	assert.Equal(t, "ceph osd out ID", line)
	assert.Equal(t, 3, id)
	line, id = words([]string{"rook", "ceph", "osd", "remove", "--osd-ids=12", "--force-osd-removal=false"})
	assert.Equal(t, "rook ceph osd remove ID", line)
	assert.Equal(t, 12, id)
	line, _ = words([]string{"rook", "ceph", "osd", "remove", "--osd-ids=1,2"})
	assert.Equal(t, "rook ceph osd remove", line)
}
