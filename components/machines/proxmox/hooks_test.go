package proxmox

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/components/machines/proxmox/reclaim"
)

func TestReboots_LooksBelowSecrets(t *testing.T) {
	inputs := func(memory int, tag string) resource.PropertyMap {
		return resource.NewPropertyMapFromMap(map[string]any{"memory": map[string]any{"dedicated": memory}, "tags": []any{tag}, "nodeName": tag})
	}
	secret := inputs(4096, "a")
	secret["memory"] = resource.MakeSecret(resource.NewProperty(resource.PropertyMap{
		"dedicated": resource.MakeSecret(resource.NewProperty(4096.0)),
	}))
	assert.Empty(t, reboots(&pulumi.ResourceHookArgs{OldInputs: inputs(4096, "a"), NewInputs: secret}))
	assert.Empty(t, reboots(&pulumi.ResourceHookArgs{OldInputs: inputs(4096, "a"), NewInputs: inputs(4096, "b")}), "tags and host")
	assert.Equal(t, []string{"memory"}, reboots(&pulumi.ResourceHookArgs{OldInputs: secret, NewInputs: inputs(8192, "a")}))
}

func TestSilent_SaysThatAVMWithAnotherMACAddressNeedsAReboot(t *testing.T) {
	card := func(mac string) resource.PropertyMap {
		return resource.NewPropertyMapFromMap(map[string]any{"networkDevices": []any{map[string]any{"macAddress": mac}}})
	}
	says := silent(&pulumi.ResourceHookArgs{OldInputs: card("BC:24:11:00:01:29"), NewInputs: card("BC:24:11:00:01:39")})
	assert.Contains(t, says, "BC:24:11:00:01:39")
	assert.Contains(t, says, "reboot the VM in Proxmox VE")
	assert.Empty(t, silent(&pulumi.ResourceHookArgs{OldInputs: card("BC:24:11:00:01:29"), NewInputs: card("BC:24:11:00:01:29")}))
}

func TestForeign_LooksAtTheVMForAnUpdateOfItsDisks(t *testing.T) {
	answers := map[string]string{
		"resources": `{"data":[{"vmid":1121,"node":"pve1","type":"qemu"}]}`,
		"config":    `{"data":{"scsi0":"local-lvm:vm-1121-disk-0,size=64G","scsi1":"local-lvm:vm-9999-pvc-1,size=9G"}}`,
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, answers[path.Base(r.URL.Path)])
	}))
	t.Cleanup(server.Close)
	of := foreign(reclaim.API{Endpoint: server.URL, Token: "root@pam!slipway=s3cret", Insecure: true}, worker1(declared(t)))
	is := hardware(8192, 0, 64)
	change := func(to resource.PropertyMap) *pulumi.ResourceHookArgs {
		return &pulumi.ResourceHookArgs{OldInputs: is, OldOutputs: is, NewInputs: to}
	}
	assert.Nil(t, of(change(hardware(4096, 0, 64))), "the disks stay")
	looks := of(change(hardware(8192, 0, 64, 9)))
	require.NotNil(t, looks)
	assert.Contains(t, looks(t.Context()), "VM 1121 has a disk scsi1")
	answers["config"] = `{"data":{"scsi0":"local-lvm:vm-1121-disk-0,size=64G"}}`
	assert.Empty(t, looks(t.Context()))
	answers["config"] = "?"
	assert.NotEmpty(t, looks(t.Context()), "what is not seen may be there")
}
