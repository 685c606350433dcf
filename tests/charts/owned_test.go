package charts

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

// Pulumi renders with Helm 3, and Flux with Helm 4, which leaves out defaults that are null. Agents restart when their ConfigMap differs.
func TestOwned_HelmWithoutNullDefaultsRendersTheSameObjects(t *testing.T) {
	for _, v := range everyMinor() {
		t.Run(v.String(), func(t *testing.T) {
			archived, err := chartOf(v.version)
			require.NoError(t, err)
			defaults := archived.Values
			t.Cleanup(func() { archived.Values = defaults })
			values := v.values()
			pulumi, err := complete(values)
			require.NoError(t, err)
			values.Cilium.Owner = cluster.OwnerFlux
			flux, err := complete(values)
			require.NoError(t, err)

			helm3, err := install(v.version, pulumi)
			require.NoError(t, err)
			archived.Values = nullsLeftOut(defaults)
			helm4, err := install(v.version, flux)
			require.NoError(t, err)
			assert.Equal(t, helm3.Manifest, helm4.Manifest)

			unaware, err := install(v.version, pulumi)
			require.NoError(t, err)
			assert.NotEqual(t, helm3.Manifest, unaware.Manifest, "the difference that this is about")
		})
	}
}

// nullsLeftOut returns a copy of a tree without keys whose value is null.
func nullsLeftOut(tree map[string]any) map[string]any {
	rest := map[string]any{}
	for key, value := range tree {
		switch value := value.(type) {
		case nil:
		case map[string]any:
			rest[key] = nullsLeftOut(value)
		default:
			rest[key] = value
		}
	}
	return rest
}
