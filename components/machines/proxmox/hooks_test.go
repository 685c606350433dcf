package proxmox

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
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
