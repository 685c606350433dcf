package tree

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

func TestCheckStack_NamesASettingThatIsNoTextWhereAManifestHasOne(t *testing.T) {
	const at = "kubernetes/clusters/infra/object.yaml:3"
	for _, one := range []struct{ manifest, value, says string }{
		{`"${OWN}"`, "on", "gitops.settings.OWN: on is no text after substitution in " + at},
		{`'${OWN:=a}'`, "123", "gitops.settings.OWN: 123 is no text after substitution in " + at},
		{`"${OWN:=a}"`, "*/30 * * * *", "gitops.settings.OWN: \"*/30 * * * *\" is no YAML after substitution in " + at},
		{`${OWN}`, "@daily", "gitops.settings.OWN: the value is no YAML after substitution in " + at},
		{`"${OWN}"`, "a", ""},
		{`${OWN}`, "123", ""},         // possibly a number is meant
		{`"a-${OWN}"`, "123", ""},     // which is a text
		{`": ${OWN}"`, "@daily", ""},  // whose quotes kustomize keeps
		{`"${METRICS_SIZE}"`, "", ""}, // a quantity, which may be a number
		{`'${QUOTE:="}${OWN:=a}${QUOTE:="}'`, "@daily", ""},
		{`'${QUOTE:="}${OWN:=a}${QUOTE:="}'`, "123", ""},
		{`"${NOBODY:=1}"`, "", ""}, // which the manifest says itself
	} {
		settings := map[string]string{"OWN": one.value, "METRICS_SIZE": "10737418240"}
		if one.value == "" {
			delete(settings, "OWN")
		}
		_, problems, err := CheckStack(withTree(t, "kind: ConfigMap\ndata:\n  a: "+one.manifest+"\n"), given(t, settings))
		require.NoError(t, err)
		if one.says == "" {
			assert.Empty(t, problems, "%s: %s", one.manifest, one.value)
			continue
		}
		assert.ErrorContains(t, problems, one.says)
		assert.ErrorContains(t, problems, "; write '${QUOTE:=\"}${OWN}${QUOTE:=\"}' there, or another value")
	}
	_, problems, err := CheckStack(withTree(t, "kind: ConfigMap\ndata:\n  a: '${CLUSTER_NAME}'\n"),
		given(t, nil, func(c *cluster.Cluster) { c.Identity.Name = "on" }))
	require.NoError(t, err)
	assert.ErrorContains(t, problems, "cluster.name: on is no text after substitution in "+at)
}
