package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQuantity_ReadsAndWritesBinaryUnits(t *testing.T) {
	for text, want := range map[string]struct {
		mib, gib int
		again    string
	}{
		"512MiB":  {512, 0, "512MiB"},
		"8GiB":    {8192, 8, "8GiB"},
		"8192MiB": {8192, 8, "8GiB"},
		"1TiB":    {1 << 20, 1024, "1TiB"},
		"1025GiB": {1025 * 1024, 1025, "1025GiB"},
	} {
		var q Quantity
		require.NoError(t, q.UnmarshalText([]byte(text)), text)
		assert.Equal(t, want.mib, q.MiB(), text)
		assert.Equal(t, want.gib, q.GiB(), text)
		assert.Equal(t, want.again, q.String(), text)
	}
}

func TestQuantity_RefusesAmbiguousSizes(t *testing.T) {
	for _, text := range []string{"", "8", "8G", "8GB", "8gib", "8 GiB", "-8GiB", "1.5GiB", "8GiBs", "0x8GiB", "0GiB", "08GiB"} {
		var q Quantity
		assert.Error(t, q.UnmarshalText([]byte(text)), text)
	}
	for _, text := range []string{"9999999999TiB", "99999999999999999999MiB"} {
		var q Quantity
		assert.Error(t, q.UnmarshalText([]byte(text)), text)
	}
}
