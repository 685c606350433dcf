package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/internal/engines/flux/tree"
	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
)

func TestConfigCheck_NamesTheVersionThatTheManifestsNeed(t *testing.T) {
	file := fixtures.Write(t, fixtures.Minimal, "home")
	written := filepath.Join(filepath.Dir(file), filepath.FromSlash(tree.WrittenFile))
	require.NoError(t, os.MkdirAll(filepath.Dir(written), 0o750))
	for version, want := range map[string]int{"v0.1.7": command.Done, "v0.2.0": command.Failed} {
		require.NoError(t, os.WriteFile(written, []byte("version: "+version), 0o600))
		code, _, problems := checked(t, filepath.Dir(file))
		assert.Equal(t, want, code, problems)
		const said = "those of slipway v0.2.0, and this is v0.1.0; install v0.2.0"
		assert.Equal(t, want == command.Failed, strings.Contains(problems, said), problems)
	}
}

func TestConfigCheck_WarnsIfGoModRequiresAnotherReleaseThanThisOne(t *testing.T) {
	file := fixtures.Write(t, fixtures.Minimal, "home")
	folder := filepath.Dir(file)
	const requires = "module home\n\ngo 1.26.6\n\nrequire github.com/slipway-platform/slipway "
	const warning = "go.mod:5: warning: requires slipway v0.2.0, and this is v0.1.0; install v0.2.0, " +
		"or run: go get github.com/slipway-platform/slipway@v0.1.0\n"
	for text, want := range map[string]string{
		requires + "v0.2.0\n": warning,
		requires + "v0.1.0\n": "",
		requires + "v0.2.0\n\nreplace github.com/slipway-platform/slipway => ../slipway\n": "",
		requires + "v0.1.1-0.20260101000000-0123456789ab\n":                                "",
		"module home\n\nrequire example.com/other v0.2.0\n":                                "",
		"module github.com/slipway-platform/slipway\n":                                     "",
		"what\n": "",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte(text), 0o600))
		code, _, problems := checked(t, folder)
		assert.Equal(t, valid, code, problems)
		said, _, _ := strings.Cut(problems, "Pulumi.home.yaml")
		assert.Equal(t, want, said, text)
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte(requires+"v0.2.0\n"), 0o600))
	for _, other := range []string{"(devel)", "v0.1.0+dirty", "v0.1.1-0.20260101000000-0123456789ab", "v0.2.0"} {
		_, _, problems := execute(t, newCommand("check", day, other), folder)
		assert.NotContains(t, problems, "go.mod", other)
	}
}
