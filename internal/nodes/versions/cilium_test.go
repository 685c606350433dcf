package versions

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCilium_RefusesWhatSkipsAMinorReleaseOrGoesDown(t *testing.T) {
	for want, test := range map[string]struct {
		declared Cilium
		running  []string
	}{
		"cilium.version: 1.19.0 skips minor releases after 1.17.12, which runs; declare one minor release after the other, " +
			"each in a run of its own": {
			Cilium{Version: "1.19.0"}, []string{"v1.18.7", "v1.17.12"}},
		"cilium.version: 1.18.6 is older than 1.18.7, which runs; roll back by hand, as Cilium's upgrade guide describes, and then declare " +
			"what runs, or declare 1.18.7 or a later one": {Cilium{Version: "1.18.6"}, []string{"v1.18.7"}},
		"cilium.version: 1.17.12 is older than 1.18.7, which runs; roll back by hand, as Cilium's upgrade guide describes, and then declare " +
			"what runs, or declare 1.18.7 or a later one": {Cilium{Version: "1.17.12", Flux: true}, []string{"v1.18.7"}},
		"cilium.version: Cilium 1.18.7 runs: v2.0.0 is of another major release than v1.18.7": {Cilium{Version: "2.0.0"}, []string{"v1.18.7"}},
		"cilium.version: Cilium latest runs: \"latest\" is not a version":                     {Cilium{Version: "1.18.7"}, []string{"latest"}},
	} {
		require.EqualError(t, test.declared.Problem(test.running), want)
	}
}

func TestCilium_AllowsTheNextMinorReleaseAndWhatRuns(t *testing.T) {
	for _, test := range []struct {
		declared Cilium
		running  []string
	}{
		{Cilium{Version: "1.19.0"}, []string{"v1.18.7"}},
		{Cilium{Version: "1.18.7"}, []string{"v1.18.7"}},
		{Cilium{Version: "1.18.7"}, []string{"v1.17.12", "v1.18.7"}}, // an upgrade that was interrupted
		{Cilium{Version: "1.18.7"}, nil},                             // not installed yet
		{Cilium{}, []string{"v1.18.7"}},
		{Cilium{Version: "1.18.6", Flux: true}, []string{"v1.18.7"}}, // Git is ahead of this checkout
	} {
		require.NoError(t, test.declared.Problem(test.running), "%v over %v", test.declared, test.running)
	}
}

func TestCilium_DemandsWhatTheNotesOfTheCrossedReleasesDemand(t *testing.T) {
	of := func(declared string, running ...string) map[string]int {
		found := map[string]int{}
		for _, demand := range (Cilium{Version: declared}).Demanded(running) {
			found[demand.Into]++
		}
		return found
	}
	assert.Equal(t, map[string]int{"v1.18": 1}, of("1.18.7", "v1.17.12"))
	assert.Equal(t, map[string]int{"v1.18": 1}, of("1.18.7", "v1.18.7", "v1.17.12"), "an upgrade that was interrupted")
	assert.Equal(t, map[string]int{"v1.19": 7}, of("1.19.0", "v1.18.7"))
	assert.Equal(t, map[string]int{"v1.20": 5}, of("1.20.2", "v1.19.6"))
	assert.Empty(t, of("1.18.7", "v1.18.6"))
	assert.Empty(t, of("1.19.1", "v1.19.0"))
}

func TestDemand_FindsAKeyAtAnyDepthOfAPolicy(t *testing.T) {
	demand := Demand{Key: "fromRequires"}
	rule := map[string]any{"ingress": []any{map[string]any{"fromRequires": []any{}}}}
	assert.True(t, demand.Fails(map[string]any{"spec": rule}))
	assert.True(t, demand.Fails(map[string]any{"specs": []any{map[string]any{}, rule}}))
	assert.False(t, demand.Fails(map[string]any{"spec": map[string]any{"ingress": []any{map[string]any{"fromEndpoints": []any{}}}}}))
	assert.False(t, demand.Fails(map[string]any{"metadata": map[string]any{"fromRequires": ""}}))
	pattern := Demand{Key: "matchPattern", Value: "**."}
	dns := func(pattern string) map[string]any {
		return map[string]any{"spec": map[string]any{"egress": []any{map[string]any{"toFQDNs": []any{map[string]any{"matchPattern": pattern}}}}}}
	}
	assert.True(t, pattern.Fails(dns("**.example.com")))
	assert.False(t, pattern.Fails(dns("*.example.com")))
	assert.True(t, Demand{}.Fails(nil), "the kind itself is removed")
}

func TestDemand_AsksForTheKeyOfARuleAndNotForALabel(t *testing.T) {
	demand := Demand{Below: "rules", Key: "kafka"}
	ports := []any{map[string]any{"rules": map[string]any{"kafka": []any{}}}}
	assert.True(t, demand.Fails(map[string]any{"spec": map[string]any{"ingress": []any{map[string]any{"toPorts": ports}}}}))
	labels := map[string]any{"matchLabels": map[string]any{"kafka": "broker"}}
	assert.False(t, demand.Fails(map[string]any{"spec": map[string]any{"endpointSelector": labels}}))
}

func TestCilium_DemandsNothingOfRoutesThatTheDeclaredCRDsKeep(t *testing.T) {
	of := func(c Cilium) (resources []string) {
		for _, demand := range c.Demanded([]string{"v1.19.6"}) {
			resources = append(resources, demand.Resource.Resource)
		}
		return resources
	}
	assert.Contains(t, of(Cilium{Version: "1.20.2"}), "tlsroutes")
	assert.NotContains(t, of(Cilium{Version: "1.20.2", OwnGatewayAPI: true}), "tlsroutes")
}

func TestDemand_NamesTheFirstObjectsThatFailIt(t *testing.T) {
	demand := Demands[1]
	require.NoError(t, demand.Failed(nil))
	require.ErrorContains(t, demand.Failed([]string{"a", "b", "c", "d", "e", "f", "g"}),
		"ciliumbgppeeringpolicies a, b, c, d, e and 2 more: with Cilium 1.19, BGP by this kind is removed; write CiliumBGPClusterConfig")
}
