package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSuggest_FindsWhatWasMeant(t *testing.T) {
	keys := []string{"podCIDR", "serviceCIDR", "nodeCIDR", "vip", "gateway"}
	for given, want := range map[string]string{
		"podCidr": "podCIDR", "serviceCIDRs": "serviceCIDR", "vpi": "vip", "gatway": "gateway", "podsCIDR": "podCIDR",
		"completelyElse": "", "x": "",
	} {
		assert.Equal(t, want, suggest(given, keys), given)
	}
	assert.Equal(t, "write one of podCIDR, serviceCIDR, nodeCIDR, vip, gateway", oneOf("zzz", keys))
	assert.Equal(t, "remove it", oneOf("zzz", nil))
}

func TestDistance_CountsASwapOnce(t *testing.T) {
	assert.Equal(t, 0, distance("vip", "vip"))
	assert.Equal(t, 1, distance("vpi", "vip"))
	assert.Equal(t, 1, distance("vips", "vip"))
	assert.Equal(t, 3, distance("", "vip"))
	assert.Equal(t, 3, distance("vip", ""))
}
