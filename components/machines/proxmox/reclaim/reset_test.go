package reclaim

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReset_PressesTheResetButtonOfTheDeclaredVM(t *testing.T) {
	h := &fakeHost{vm: leftover()}
	require.NoError(t, wanted.reset(t.Context(), h))
	assert.Equal(t, []string{"POST /status/reset"}, h.done)
}

func TestReset_TouchesNoOtherVM(t *testing.T) {
	another, off := leftover(), leftover()
	another.name, off.status = "mail", "stopped"
	for _, tc := range []struct {
		vm   *machine
		says string
	}{
		{nil, "VM 1111 (infra-cp-1) is not on Proxmox VE any more"},
		{another, "VM 1111 (infra-cp-1) is not on Proxmox VE any more"},
		{off, "VM 1111 (infra-cp-1) on Proxmox node pve1 is stopped"},
	} {
		h := &fakeHost{vm: tc.vm}
		require.EqualError(t, wanted.reset(t.Context(), h), tc.says)
		assert.Empty(t, h.done)
	}
}

func TestReset_NamesThePrivilegeThatTheTokenLacks(t *testing.T) {
	h := &fakeHost{vm: leftover(), onRun: func(action string) error {
		return &statusError{http.MethodPost, "nodes/pve1/qemu/1111" + action, "403 Permission check failed (/vms/1111, VM.PowerMgmt)", 403}
	}}
	require.ErrorContains(t, wanted.reset(t.Context(), h), "Permission check failed (/vms/1111, VM.PowerMgmt)")
}
