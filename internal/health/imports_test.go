package health

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The Pulumi program imports this package for the specs. With client-go in it, every preview would compile and link that too.
func TestHealth_ImportsTheStandardLibraryAndTheSpecsOnly(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	looked := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		looked++
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			if path != "github.com/slipway-platform/slipway/internal/probe" { // itself the standard library only
				assert.NotContains(t, path, ".", "%s imports %s", name, path)
			}
		}
	}
	assert.Greater(t, looked, 10)
}
