package proxmox

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

// interfaces returns the names of interfaces of a node.
func (w *world) interfaces(query string) []string {
	w.t.Helper()
	names := []string{}
	for _, one := range w.get("nodes/pve1/network" + query).([]any) {
		names = append(names, one.(map[string]any)["iface"].(string))
	}
	return names
}

func TestNetwork_ListsTheBridgesOfTheNode(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Nodes[0].Bridges = []string{"vmbr0", "vmbr1"} })
	assert.Equal(t, []string{"vmbr0", "vmbr1"}, w.interfaces("?type=any_bridge"))
	assert.Equal(t, []string{"vmbr0", "vmbr1"}, w.interfaces("?type=bridge"))
	assert.Equal(t, []string{"eno1", "vmbr0", "vmbr1"}, w.interfaces(""))
	assert.Equal(t, []string{"eno1"}, w.interfaces("?type=eth"))
	assert.Empty(t, w.interfaces("?type=OVSBridge"))

	bridge := w.get("nodes/pve1/network?type=bridge").([]any)[0].(map[string]any)
	assert.Equal(t, "bridge", bridge["type"])
	assert.Equal(t, 1.0, bridge["active"])
	assert.Equal(t, []any{"inet"}, bridge["families"])
	assert.Len(t, w.get("nodes/pve2/network?type=any_bridge"), 1, "each node has its own")
	r := w.call(http.MethodGet, "nodes/pve1/network?type=bridges", nil)
	assert.Equal(t, http.StatusBadRequest, r.code)
	assert.Contains(t, r.errors["type"], "does not have a value in the enumeration")
}

func TestNetwork_OmitsBridgesThatTheTokenMayNotUse(t *testing.T) {
	for _, tc := range []struct {
		privileges []string
		sees       []string
	}{
		{[]string{"SDN.Use"}, []string{"vmbr0"}}, {[]string{"SDN.Audit"}, []string{"vmbr0"}}, {[]string{"Sys.Audit", "Sys.Modify"}, []string{}},
	} {
		w := newWorld(t, func(c *Config) { c.Tokens = []Token{{ID: "root@pam!lab", Secret: "secret", Privileges: tc.privileges}} })
		assert.Equal(t, tc.sees, w.interfaces("?type=any_bridge"), tc.privileges)
		assert.Equal(t, append([]string{"eno1"}, tc.sees...), w.interfaces(""), tc.privileges)
	}
}
