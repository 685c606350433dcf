package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
)

func placeholders(t *testing.T) Placeholders {
	t.Helper()
	all, err := NewPlaceholders()
	require.NoError(t, err)
	return all
}

func TestPlaceholders_ExistForEverySecretOfTheModel(t *testing.T) {
	all := placeholders(t)
	for _, key := range secretKeys {
		assert.NotEmpty(t, all[key], key)
	}
	assert.Len(t, all, len(secretKeys))
	assert.Greater(t, len(secretKeys), 10)
}

// The program checks the shapes of secrets, so a placeholder with a wrong one would fail every preview.
func TestPlaceholders_PassTheChecksOfTheProgram(t *testing.T) {
	all := placeholders(t)
	looked := map[string]bool{}
	for _, one := range fixtures.Valid() {
		source, err := ParseFile("Pulumi.home.yaml", []byte(one.Text))
		if err != nil {
			continue // of a form that no file has
		}
		declared, err := loadText(nil, fixtures.Write(t, one.Name, "home"), []byte(one.Text))
		require.NoError(t, err, one.Name)
		source.Tree, source.SecretsElsewhere = fixtures.Tree(), false
		for _, missing := range declared.MissingSecrets() {
			source.Values["slipway:"+missing] = Value{Encrypted: true, Secret: true}
		}
		for key, value := range source.Values {
			if value.Encrypted {
				name := strings.TrimPrefix(key, "slipway:")
				looked[name] = true
				source.Values[key] = Value{Tree: all[name], Secret: true}
			}
		}
		_, err = Load(source)
		assert.NoError(t, err, one.Name)
	}
	for name := range all {
		assert.True(t, looked[name], "%s is in no fixture", name)
	}
}
