package tree

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

func TestCheckStack_NamesASettingThatIsNoTextWhereAManifestHasOne(t *testing.T) {
	const at = "kubernetes/clusters/infra/object.yaml:3"
	const orElse = "write '${QUOTE:=\"}${OWN}${QUOTE:=\"}' there, or another value"
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
		advice, problems, err := CheckStack(withTree(t, "kind: ConfigMap\ndata:\n  a: "+one.manifest+"\n"), given(t, settings))
		require.NoError(t, err)
		switch {
		case one.says == "":
			assert.Empty(t, problems, "%s: %s", one.manifest, one.value)
			assert.NotContains(t, advice.Error(), "is no text", "%s: %s", one.manifest, one.value)
		case strings.Contains(one.says, "is no YAML"):
			assert.ErrorContains(t, problems, one.says)
			assert.ErrorContains(t, problems, "; "+orElse)
		default: // a boolean or a number may be meant
			assert.Empty(t, problems, "%s: %s", one.manifest, one.value)
			assert.ErrorContains(t, advice, one.says)
			assert.ErrorContains(t, advice, "; if it is to be one, "+orElse)
		}
	}
	advice, problems, err := CheckStack(withTree(t, "kind: ConfigMap\ndata:\n  a: '${CLUSTER_NAME}'\n"),
		given(t, nil, func(c *cluster.Cluster) { c.Identity.Name = "on" }))
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.ErrorContains(t, advice, "cluster.name: on is no text after substitution in "+at)
}
