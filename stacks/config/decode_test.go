package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
)

func decodeInto(t *testing.T, into any, text string) error {
	t.Helper()
	tree, problems, err := parseJSON("at", text)
	require.NoError(t, err)
	d := &decoder{}
	for _, problem := range problems {
		d.Include(problem)
	}
	d.decode("at", tree, reflect.ValueOf(into).Elem())
	return d.Err()
}

func TestDecode_TakesAWholeNumberInEveryFormThatJSONHas(t *testing.T) {
	for text, want := range map[string]int{"1111": 1111, "1e+06": 1000000, "9.99999999e+08": 999999999, "-1": -1, "2.0": 2} {
		var got int
		require.NoError(t, decodeInto(t, &got, text), text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"1.5", "1e-3", "1e+30"} {
		var got int
		assert.EqualError(t, decodeInto(t, &got, text), "at: "+text+" is not a whole number; write one")
	}
}

func TestDecode_ConvertsNothing(t *testing.T) {
	var text string
	assert.EqualError(t, decodeInto(t, &text, "true"), "at: true is a boolean and must be text; put it in quotes")
	assert.EqualError(t, decodeInto(t, &text, "{}"), "at: is a mapping and must be text; see docs/configuration.md for its form")
	assert.EqualError(t, decodeInto(t, &text, `" x"`), `at: " x" has white space around it; remove it`)
	var list []string
	assert.EqualError(t, decodeInto(t, &list, `["a", null]`), "at[1]: has no value; give it a value, or remove the key")
	var section cluster.Identity
	assert.EqualError(t, decodeInto(t, &section, `{"Name":"x","id":1}`), "at.Name: is not a key; did you mean name?")
	var labels map[string]string
	assert.EqualError(t, decodeInto(t, &labels, `{"a":1}`), `at["a"]: 1 is a number and must be text; put it in quotes`)
}

// A section has no example.
func TestDecode_ShowsTheExampleOfAKeyThatIsMissing(t *testing.T) {
	var share cluster.LoadBalancers
	assert.EqualError(t, decodeInto(t, &share, `{"start":"10.0.0.1"}`), "at.stop: is missing; add it, such as 10.25.11.150")
	var sharding cluster.FluxSharding
	assert.EqualError(t, decodeInto(t, &sharding, `{}`), "at.shards: is missing; add it, such as [shard1, shard2]")
	var check cluster.Check
	assert.ErrorContains(t, decodeInto(t, &check, `{}`), "at.objects: is missing; add it, see docs/configuration.md for its form\n")
}

func TestDecode_KeepsAPatchAsItWasWritten(t *testing.T) {
	var patch cluster.Patch
	require.NoError(t, decodeInto(t, &patch, `{"z": 1.50, "a": [null, {"$patch": "delete"}], "n": 12345678901234567890}`))
	assert.Equal(t, `{"z":1.50,"a":[null,{"$patch":"delete"}],"n":12345678901234567890}`, patch.String())
	assert.Error(t, decodeInto(t, &patch, `{}`))
	assert.EqualError(t, decodeInto(t, &patch, `{"a":[{"b":1,"b":2}]}`), "at.a[0].b: is given twice; keep one")
}

// decode panics on a type that it cannot fill, so a fixture must give every key of the model. Some keys exclude each other, so
// that several files are needed to give them all. A default does not count: no text is decoded for it, or it makes no difference.
func TestDecode_CoversTheWholeModel(t *testing.T) {
	given := map[string][]string{}
	for _, one := range fixtures.Valid() {
		file := instance(t, one.Text).(map[string]any)
		for name, section := range file["config"].(map[string]any) {
			record(given, strings.TrimPrefix(name, Namespace+":"), section)
		}
	}
	for _, k := range newReference(t).keys {
		preset := k.field.Tag.Get("default")
		choices, chosen := reflect.Zero(k.field.Type).Interface().(interface{ Choices() []string })
		if chosen && len(choices.Choices()) == 1 {
			continue
		}
		assert.True(t, slices.ContainsFunc(given[k.path], func(value string) bool { return value != preset }),
			"no valid fixture gives %s another value than its default", k.path)
	}
}

// record notes each value in a tree by its path, in the reference's form.
func record(given map[string][]string, path string, tree any) {
	given[path] = append(given[path], fmt.Sprint(tree))
	switch tree := tree.(type) {
	case map[string]any:
		for key, value := range tree {
			record(given, cluster.KeyPath(path, key), value)
		}
	case []any:
		for _, item := range tree {
			record(given, path+"[]", item)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(`{"name":"home","id":1}`, `{"nodeCIDR":"10.25.11.0/24","vip":"10.25.11.10"}`, `[{"nodes":[{"address":"10.25.11.11"}]}]`, `{}`)
	f.Add(`null`, `{"nodeCIDR":"::/0","podCIDR":"0.0.0.0/0","loadBalancers":{"start":"::1","stop":"1.1.1.1"}}`, `[null]`, `null`)
	f.Add(`{}`, `{"ipv6":{"nodeCIDR":"fd00::/64","gateway":"fe80::1%x","podCIDR":"::ffff:1.1.1.1/96","loadBalancers":{"start":"1.1.1.1"}}}`,
		`[{"role":"controlplane","hosts":["a","b"],"vlan":1,"dataDisks":[{"name":"x"}],"nodes":[{"host":"a","address6":"::"},{}]},`+
			`{"role":"worker","nodes":[{"taints":{"a":":"}}]}]`,
		`{"patches":{"all":[{"machine":{"kubelet":1}},{"kind":[]},[{"op":1,"path":2}]]},`+
			`"kubelet":{"extraArgs":{"--":""}},"extensions":["siderolabs/"]}`)
	f.Fuzz(func(t *testing.T, identity, network, pools, talos string) {
		_, err := Load(Source{Stack: "fuzz", Values: map[string]Value{
			"slipway:cluster": {Tree: identity}, "slipway:network": {Tree: network},
			"slipway:nodePools": {Tree: pools}, "slipway:talos": {Tree: talos},
		}})
		if err == nil {
			t.Fatal("required sections are missing")
		}
		if source, err := ParseFile("Pulumi.fuzz.yaml", []byte(pools)); err == nil {
			_ = source.Line(network)
		}
	})
}
