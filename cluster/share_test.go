package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestShare_IsANumberOrARoundedPartOfAllAndOneAtLeast(t *testing.T) {
	for text, want := range map[string][2]int{"1": {1, 1}, "2": {2, 2}, "10%": {1, 10}, "100%": {3, 104}, "33%": {1, 34}} {
		var share Share
		require.NoError(t, share.UnmarshalText([]byte(text)))
		assert.Equal(t, want, [2]int{share.Of(3), share.Of(104)}, text)
	}
	for _, text := range []string{"0", "0%", "101%", "1001", "1.5", "-1", "%", "10 %", "all", ""} {
		require.Error(t, new(Share).UnmarshalText([]byte(text)), text)
	}
	assert.Zero(t, Share("").Of(3))
}
