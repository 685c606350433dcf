package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
)

func TestExplain_LoadsToTheSameCluster(t *testing.T) {
	for _, one := range fixtures.Valid() {
		t.Run(one.Name, func(t *testing.T) {
			source, err := sourceOf(one.Text)
			require.NoError(t, err)
			c, err := Load(source)
			require.NoError(t, err)
			explained, err := Explain(source, c)
			require.NoError(t, err)
			assert.NotRegexp(t, `(?m)^ *secure:`, string(explained))

			again, err := loadText(fixtures.Tree(), "Pulumi.home.yaml", []byte(withSecretsOf(t, one.Text, string(explained))))
			require.NoError(t, err, string(explained))
			want, err := yaml.Marshal(c)
			require.NoError(t, err)
			got, err := yaml.Marshal(again)
			require.NoError(t, err)
			assert.Equal(t, string(want), string(got))
			for i, machine := range c.Machines() {
				assert.Equal(t, machine.Pinned(), again.Machines()[i].Pinned(), machine.Name)
				assert.Equal(t, machine.Home(), again.Machines()[i].Home(), machine.Name)
			}
		})
	}
}

// withSecretsOf adds to a stack file what another one has of secrets.
func withSecretsOf(t *testing.T, other, explained string) string {
	t.Helper()
	var from, to map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(other), &from))
	require.NoError(t, yaml.Unmarshal([]byte(explained), &to))
	for key, value := range from {
		if key != "config" {
			to[key] = value
		}
	}
	for key, value := range from["config"].(map[string]any) {
		if section, is := value.(map[string]any); is && section["secure"] != nil {
			to["config"].(map[string]any)[key] = value
		}
	}
	text, err := yaml.Marshal(to)
	require.NoError(t, err)
	return string(text)
}

func TestExplain_ShowsWhatTheFileLeavesOut(t *testing.T) {
	source, err := sourceOf(fixtures.Get("machines-by-count").Text)
	require.NoError(t, err)
	c, err := Load(source)
	require.NoError(t, err)
	explained, err := Explain(source, c)
	require.NoError(t, err)
	for _, line := range []string{
		"serviceCIDR: 10.245.0.0/16", "- name: home-all-1", "vmId: 111012", `mac: "BC:24:11:60:4F:E5"`, "disks: local-lvm",
		"path: kubernetes/clusters/home", "timeout: 10m18s",
	} {
		assert.Contains(t, string(explained), line+"\n")
	}
	assert.NotContains(t, string(explained), "firstAddress")
	assert.NotContains(t, string(explained), "host: pve1", "a machine that is not pinned stays so")
}
