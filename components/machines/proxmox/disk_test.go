package proxmox

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/components/machines/proxmox/vmchange"
)

func TestDisk_DeclaresExactlyThePropertiesWhoseChangesAreCompared(t *testing.T) {
	declared := reflect.ValueOf(disk(1, "local-lvm", 20))
	var properties []string
	for i := range declared.NumField() {
		if !declared.Field(i).IsZero() {
			properties = append(properties, declared.Type().Field(i).Tag.Get("pulumi"))
		}
	}
	assert.ElementsMatch(t, vmchange.DiskProperties, properties)
}
