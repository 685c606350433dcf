package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// key is one key of the model: its path as the document writes it, and the field it is.
type key struct {
	path  string
	field reflect.StructField
	value reflect.Value // in a stack that has nothing but the defaults
}

// keysOf lists every key below a struct that holds a value, or a list or mapping of values.
func keysOf(path string, value reflect.Value) []key {
	var keys []key
	for field := range fieldsOf(value.Type()) {
		at, inner := join(path, keyOf(field)), value.FieldByIndex(field.Index)
		text := reflect.PointerTo(field.Type).Implements(textType) || field.Type == secretType
		switch {
		case field.Type.Kind() == reflect.Pointer && field.Type.Elem().Kind() == reflect.Struct:
			keys = append(keys, keysOf(at, reflect.Zero(field.Type.Elem()))...)
		case field.Type.Kind() == reflect.Struct && !text:
			keys = append(keys, keysOf(at, inner)...)
		case field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() == reflect.Struct && len(keysOf("", reflect.Zero(field.Type.Elem()))) > 0:
			keys = append(keys, keysOf(at+"[]", reflect.Zero(field.Type.Elem()))...)
		default:
			keys = append(keys, key{at, field, inner})
		}
	}
	return keys
}

// row is a key's line in the document.
type row struct{ fallback, example, meaning string }

var rowForm = regexp.MustCompile("^\\| `([A-Za-z0-9.\\[\\]]+)` \\| (.+?) \\| (.+?) \\| `(.+?)` \\| (.+) \\|$")

func documented(t *testing.T) map[string]row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "configuration.md"))
	require.NoError(t, err)
	rows := map[string]row{}
	for line := range strings.Lines(string(text)) {
		if match := rowForm.FindStringSubmatch(strings.TrimSpace(line)); match != nil {
			assert.NotContains(t, rows, match[1], "stands in the document twice")
			rows[match[1]] = row{fallback: match[3], example: match[4], meaning: match[5]}
		}
	}
	return rows
}

func model() []key {
	defaults := Stack{Name: "STACK"}
	defaults.applyDefaults()
	return keysOf("", reflect.ValueOf(defaults))
}

func TestDocument_HasEveryKeyOfTheModelAndNoOther(t *testing.T) {
	var inModel, inDocument []string
	for _, k := range model() {
		inModel = append(inModel, k.path)
	}
	for path := range documented(t) {
		inDocument = append(inDocument, path)
	}
	require.Greater(t, len(inModel), 100)
	assert.ElementsMatch(t, inModel, inDocument)
}

// followed are the keys whose default is another key's value.
var followed = map[string]string{
	"network.nameservers":               "network.gateway",
	"nodePools[].hosts":                 "proxmox.nodes",
	"nodePools[].datastore":             "proxmox.datastores.disks",
	"nodePools[].bridge":                "proxmox.bridge",
	"nodePools[].vlan":                  "proxmox.vlan",
	"nodePools[].dataDisks[].datastore": "nodePools[].datastore",
	"nodePools[].dataDisks[].use":       string(DiskRaw), // an item of a list has no default before it is there
	"cilium.hubble.relay":               "cilium.hubble.enabled",
	"crds.certManager.version":          "certManager.version",
}

func TestDocument_StatesTheDefaultsThatAreApplied(t *testing.T) {
	rows := documented(t)
	for _, k := range model() {
		want := "–"
		switch {
		case isRequired(k.field) || k.path == "gitPassword":
			want = "required"
		case followed[k.path] != "":
			want = "`" + followed[k.path] + "`"
		case k.value.Type() == reflect.TypeFor[Duration]():
			want = "`" + strings.TrimSuffix(fmt.Sprint(k.value), "0s") + "`"
		case !k.value.IsZero():
			want = fmt.Sprintf("`%v`", k.value)
		}
		assert.Equal(t, want, rows[k.path].fallback, k.path)
	}
}

func TestDocument_GivesExamplesThatCanBeWrittenSo(t *testing.T) {
	rows := documented(t)
	for _, k := range model() {
		if k.field.Type == secretType {
			continue // never part of a file
		}
		asJSON, err := yaml.YAMLToJSONStrict([]byte(rows[k.path].example))
		require.NoError(t, err, k.path)
		tree, err := parseTree(string(asJSON))
		require.NoError(t, err, k.path)
		d := newDecoder()
		d.decode(k.path, tree, reflect.New(k.field.Type).Elem())
		assert.NoError(t, d.err(), k.path)
	}
}

// The two messages that the document quotes are what the program says.
func TestDocument_QuotesMessagesAsTheyAre(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "configuration.md"))
	require.NoError(t, err)
	for path, change := range map[string][2]string{
		"network.podCIDR": {"podCIDR: 10.244.0.0/16", "podCIDR: 10.244.1.0/16"},
		"nodePools":       {"vmId: 1111", "host: pev1, vmId: 1111"},
	} {
		stack, err := os.ReadFile(filepath.Join(root, "Pulumi.infra.yaml"))
		require.NoError(t, err)
		changed := strings.Replace(string(stack), change[0], change[1], 1)
		require.NotEqual(t, string(stack), changed, path)
		values, err := parseFile([]byte(changed))
		require.NoError(t, err)
		_, err = Load(Source{Stack: "infra", Values: values, SecretsElsewhere: true})
		require.Error(t, err)
		assert.Contains(t, string(text), "\n"+err.Error()+"\n")
	}
}
