package config

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
	"github.com/slipway-platform/slipway/tests/golden"
)

const schemaFile = "schema.json"

func TestSchema_IsGeneratedFromTheModel(t *testing.T) {
	text, err := json.MarshalIndent(newReference(t).schema(), "", "  ")
	require.NoError(t, err)
	golden.File(t, schemaFile, string(text)+"\n")
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(schemaFile) // also checks it against its draft
	require.NoError(t, err)
	return schema
}

// instance decodes a stack file in the way of editors.
func instance(t *testing.T, text string) any {
	t.Helper()
	var tree any
	require.NoError(t, yaml.Unmarshal([]byte(text), &tree))
	return tree
}

func TestSchema_AcceptsWhatIsValid(t *testing.T) {
	schema := compiled(t)
	for _, one := range fixtures.Valid() {
		assert.NoError(t, schema.Validate(instance(t, one.Text)), one.Name)
	}
	committed, err := filepath.Glob(filepath.Join(samples, "Pulumi.*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, committed)
	for _, file := range committed {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.NoError(t, schema.Validate(instance(t, string(text))), file)
	}
}

// openKeys are keys whose values may have any key.
var openKeys = []string{
	"labels", "taints", "sysctls", "registryMirrors", "extraArgs", "settings", "patches", "all", "controlPlanes", "values",
	"pulumi:disable-default-providers",
}

func TestSchema_RefusesUnknownKeysEverywhere(t *testing.T) {
	schema := compiled(t)
	tree := instance(t, fixtures.Get("everything").Text)
	require.NoError(t, schema.Validate(tree))
	tried := 0
	var visit func(path string, at any)
	visit = func(path string, at any) {
		switch value := at.(type) {
		case map[string]any:
			value["surplus"] = "text"
			assert.Error(t, schema.Validate(tree), path)
			delete(value, "surplus")
			tried++
			for _, key := range slices.Sorted(maps.Keys(value)) {
				if !slices.Contains(openKeys, key) {
					visit(cluster.KeyPath(path, key), value[key])
				}
			}
		case []any:
			for i, item := range value {
				visit(cluster.ItemPath(path, i), item)
			}
		}
	}
	visit("", tree)
	assert.Greater(t, tried, 40)
}

func TestSchema_RefusesEncryptionWhereNothingIsSecretAndPlainTextWhereSomethingIs(t *testing.T) {
	schema := compiled(t)
	for _, name := range []string{"section-is-encrypted", "secret-in-plain-text", "api-token-in-plain-text"} {
		assert.Error(t, schema.Validate(instance(t, fixtures.Get(name).Text)), name)
	}
}

// The schema finds faults in a single key, which an editor shows while the file is written. The program finds the faults that
// involve two keys. The golden file lists the faults that the schema finds, so that a change of the schema shows which it gains
// and loses.
func TestSchema_FindsTheFaultsThatOneKeyShows(t *testing.T) {
	schema := compiled(t)
	var found, all []string
	for _, one := range fixtures.Invalid() {
		var tree any
		if yaml.Unmarshal([]byte(one.Text), &tree) != nil {
			continue // an editor reports that without a schema
		}
		all = append(all, one.Name)
		if schema.Validate(tree) != nil {
			found = append(found, one.Name)
		}
	}
	golden.File(t, "testdata/schema.golden", strings.Join(found, "\n")+"\n")
	for _, name := range all {
		if strings.Contains(name, "unknown") && strings.HasPrefix(name, "key-") ||
			strings.HasSuffix(name, "-malformed") && !strings.Contains(name, "label") {
			assert.Contains(t, found, name)
		}
	}
	assert.Greater(t, len(found), 200)
}
