//go:build e2e || matrix

package e2e

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// settings are the settings of a stack file, by key.
type settings map[string]any

// editStackFile changes the settings of a stack file.
func editStackFile(t *testing.T, path string, edit func(settings)) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var file map[string]any
	require.NoError(t, yaml.Unmarshal(text, &file))
	edit(file["config"].(map[string]any))
	text, err = yaml.Marshal(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o600))
}

// set adds values to a setting.
func (s settings) set(key string, values map[string]any) {
	section, _ := s["slipway:"+key].(map[string]any)
	if section == nil {
		section = map[string]any{}
	}
	for k, v := range values {
		section[k] = v
	}
	s["slipway:"+key] = section
}

// pool returns a node pool by its index.
func (s settings) pool(i int) map[string]any {
	return s["slipway:nodePools"].([]any)[i].(map[string]any)
}

// withoutStorage declares no storage, and no disks for it.
func (s settings) withoutStorage() {
	s["slipway:storage"] = map[string]any{"role": "none"}
	delete(s.pool(1), "dataDisks")
}

// withoutProviders declares neither storage nor providers of secrets.
func (s settings) withoutProviders() {
	s.withoutStorage()
	s["slipway:secrets"] = map[string]any{}
}

// node returns a node by its name.
func (s settings) node(name string) map[string]any {
	for i := range s["slipway:nodePools"].([]any) {
		for _, node := range s.pool(i)["nodes"].([]any) {
			if node := node.(map[string]any); node["name"] == name {
				return node
			}
		}
	}
	return nil
}

// widen adds workers to a stack until it has a number of nodes.
func widen(s settings, nodes int) {
	var list []any
	for i := range nodes - len(s.pool(0)["nodes"].([]any)) {
		address := 21 + i
		if address >= 100 { // the load balancers' pool begins there
			address += 51
		}
		list = append(list, map[string]any{
			"name": fmt.Sprintf("infra-worker-%d", i+1), "host": fmt.Sprintf("pve%d", i%3+1), "vmId": 2000 + i,
			"mac": fmt.Sprintf("BC:24:11:00:09:%02X", i), "address": fmt.Sprintf("10.25.11.%d", address),
		})
	}
	s.pool(1)["nodes"] = list
}
