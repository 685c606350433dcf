package tree

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCheckVersion_RefusesManifestsOfANewerReleaseOnly(t *testing.T) {
	for _, one := range []struct {
		written, program string
		refused          bool
	}{
		{"v0.2.0", "v0.1.9", true},
		{"v0.10.0", "v0.9.0", true},
		{"v1.0.0", "v0.9.0", true},
		{"v0.2.0-rc.1", "v0.1.0", true},
		{"v0.2.3", "v0.2.0", false}, // the last number asks for nothing
		{"v0.2.0", "v0.2.0-rc.1", false},
		{"v0.1.0", "v0.2.0", false},
		{"v0.2.0", "(devel)", false},
		{"v0.2.0", "v0.1.1-0.20260101000000-0123456789ab", false},
		{"v0.2.0", "v0.0.0-20260101000000-0123456789ab", false},
		{"v0.2.0", "v0.1.0+dirty", false},
		{`""`, "v0.1.0", false},
	} {
		err := CheckVersion(fstest.MapFS{WrittenFile: {Data: []byte("version: " + one.written + "\nfiles: {}\n")}}, one.program)
		assert.Equal(t, one.refused, err != nil, "%+v: %v", one, err)
	}
	require.NoError(t, CheckVersion(fstest.MapFS{}, "v0.1.0"), "the manifests are the user's own")
	err := CheckVersion(fstest.MapFS{WrittenFile: {Data: []byte("version: v0.2.1")}}, "v0.1.0")
	assert.EqualError(t, err, "kubernetes/slipway-manifests.yaml: the manifests are those of slipway v0.2.1, and this is v0.1.0; "+
		"install v0.2.1, also in go.mod, or go back to the manifests of this version with: slipway manifests")
}

func TestReadWritten_RefusesWhatTheCommandHasNotWritten(t *testing.T) {
	for _, text := range []string{"version: 2", "version: latest", "files: [a]", "{"} {
		_, err := ReadWritten(fstest.MapFS{WrittenFile: {Data: []byte(text)}})
		assert.ErrorContains(t, err, "; write it anew with: slipway manifests", text)
	}
}
