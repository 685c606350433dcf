package reclaim

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const schematic = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"

// volumes lists files of a storage as Proxmox VE does.
func volumes(storage string, files ...string) string {
	var list []string
	for _, file := range files {
		list = append(list, `{"volid":"`+storage+":iso/"+file+`","content":"iso"}`)
	}
	return "[" + strings.Join(list, ",") + "]"
}

// deleting are the paths under which images are deleted.
func deleting(node, storage string, files ...string) (paths []string) {
	for _, file := range files {
		paths = append(paths, "DELETE /api2/json/nodes/"+node+"/storage/"+storage+"/content/"+storage+":iso%2F"+file)
	}
	return paths
}

func TestRemove_RemovesTheImagesOfEarlierReleasesThatNoMachineHas(t *testing.T) {
	image := func(version, owner string) string {
		return ImageFile(schematic, version, "infra", owner, "nocloud-amd64")
	}
	old, rc := image("v1.12.7", "pve1"), image("v1.13.0-rc.1", "pve1")
	secure := ImageFile(schematic, "v1.14.1", "infra", "pve1", "nocloud-amd64-secureboot"+OtherKind)
	kept, unnamed := image("v1.13.9", "pve1"), image("v1.11.0", "")
	others := []string{
		"debian.iso", image("v1.12.7", "pve2"),
		ImageFile(schematic, "v1.12.7", "infra-2", "pve1", "nocloud-amd64"), ImageFile(schematic, "v1.12.7", "my-infra", "pve1", "nocloud-amd64"),
	}
	shared := image("v1.12.7", "pve2")
	answers := emptyHost("9.1.7")
	for path, answer := range map[string]string{
		"GET /api2/json/nodes": `[{"node":"pve1","status":"online"},{"node":"pve2","status":"online"},{"node":"pve3","status":"offline"}]`,
		"GET /api2/json/nodes/pve1/storage": `[{"storage":"local","active":1,"shared":0},{"storage":"nas","active":1,"shared":1},
			{"storage":"usb","active":0,"shared":0}]`,
		"GET /api2/json/nodes/pve2/storage":               `[{"storage":"nas","active":1,"shared":1}]`,
		"GET /api2/json/nodes/pve1/storage/local/content": volumes("local", append(others, old, rc, secure, kept, unnamed)...),
		"GET /api2/json/nodes/pve1/storage/nas/content":   volumes("nas", shared),
		"GET /api2/json/nodes/pve2/storage/nas/content":   volumes("nas", shared),
		"GET /api2/json/cluster/tasks":                    `[]`,
		"GET /api2/json/cluster/resources": `[{"vmid":1111,"node":"pve1","type":"qemu"},{"vmid":7,"node":"pve1","type":"lxc"},
			{"vmid":8,"node":"pve3","type":"qemu"}]`,
		"GET /api2/json/nodes/pve1/qemu/1111/config":  `{"name":"infra-cp-1","ide0":"local:iso/` + kept + `,media=cdrom,size=100M","cores":4}`,
		"GET /api2/json/nodes/pve1/tasks/UPID/status": `{"status":"stopped","exitstatus":"OK"}`,
	} {
		answers[path] = answer
	}
	for _, file := range []string{old, rc, secure, unnamed} {
		answers["DELETE /api2/json/nodes/pve1/storage/local/content/local:iso/"+file] = `"UPID"`
	}
	answers["DELETE /api2/json/nodes/pve1/storage/nas/content/nas:iso/"+shared] = `"UPID"`
	api, changes := proxmoxAPI(t, answers)

	var said []string
	require.NoError(t, Remove(t.Context(), &Leftovers{API: api, ImagesOf: "infra"}, func(line string) { said = append(said, line) }))
	assert.ElementsMatch(t, append(deleting("pve1", "local", old, rc, secure, unnamed), deleting("pve1", "nas", shared)...), *changes)
	assert.Contains(t, said, "removed image local:iso/"+old+" on Proxmox node pve1")
	assert.Contains(t, said, "stays: image local:iso/"+kept+" on Proxmox node pve1: VM 1111 has it in a drive; remove it with that VM")
	assert.Contains(t, said, "stay: images of infra on Proxmox node pve3, which is offline; remove them by hand")
}

// The API of a destroyed cluster's Proxmox VE may deny what is not needed.
func TestRemove_LooksForNoImagesOfAClusterThatASpecDoesNotName(t *testing.T) {
	api, changes := proxmoxAPI(t, emptyHost("9.1.7"))
	require.NoError(t, Remove(t.Context(), &Leftovers{API: api}, func(line string) { assert.Fail(t, line) }))
	assert.Empty(t, *changes)
}

func TestImageFile_NamesSchematicVersionOwnerAndKind(t *testing.T) {
	assert.Equal(t, "talos-376567988ad3-v1.12.7-infra-pve1-nocloud-amd64.iso",
		ImageFile(schematic, "v1.12.7", "infra", "pve1", "nocloud-amd64"))
	assert.Equal(t, "talos-376567988ad3-v1.12.7-infra-nocloud-amd64.iso", ImageFile(schematic, "v1.12.7", "infra", "", "nocloud-amd64"))
}
