package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSuggest_FindsTheMostSimilarName(t *testing.T) {
	keys := []string{"podCIDR", "serviceCIDR", "nodeCIDR", "vip", "gateway"}
	for given, want := range map[string]string{
		"podCidr": "podCIDR", "serviceCIDRs": "serviceCIDR", "vpi": "vip", "gatway": "gateway", "podsCIDR": "podCIDR",
		"completelyElse": "", "x": "",
	} {
		assert.Equal(t, want, Suggest(given, keys), given)
	}
	assert.Equal(t, "write one of podCIDR, serviceCIDR, nodeCIDR, vip, gateway", OneOf("zzz", keys))
	assert.Equal(t, "remove it", OneOf("zzz", nil))
}
