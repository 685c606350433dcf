package machineconfig

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLines_HaveThePathOfEachValue(t *testing.T) {
	text, secrets := Lines(map[string]any{
		"machine": map[string]any{
			"token": Secret("hidden"), "empty": "", "none": map[string]any{}, "nobody": []any{},
			"files": []any{map[string]any{"content": "two\nlines\n"}, map[string]any{"permissions": 420}},
		},
		"HostnameConfig": map[string]any{"auto": "off"},
		"persist":        true,
	})
	assert.Equal(t, `HostnameConfig.auto = off
machine.empty = ""
machine.files[0].content = "two\nlines\n"
machine.files[1].permissions = 420
machine.nobody = []
machine.none = {}
machine.token = [secret]
persist = true
`, text)
	assert.Equal(t, map[string]string{"machine.token": "hidden"}, secrets)
}
