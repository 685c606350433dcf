package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/encoding"
	pulumiconfig "github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
)

// readAsPulumi loads a stack file with Pulumi's own loader, and returns the texts that the engine passes to a program.
func readAsPulumi(t *testing.T, text string) Source {
	t.Helper()
	project := &workspace.Project{Name: tokens.PackageName(Namespace), Runtime: workspace.NewProjectRuntimeInfo("go", nil)}
	stack, err := workspace.LoadProjectStackBytes(nil, project, []byte(text), "Pulumi.home.yaml", encoding.YAML)
	require.NoError(t, err)
	values, err := stack.Config.Decrypt(pulumiconfig.NopDecrypter)
	require.NoError(t, err)

	source := Source{Stack: "home", Values: map[string]Value{}, SecretsElsewhere: true}
	for key, text := range values {
		source.Values[key.String()] = Value{Tree: text, Secret: stack.Config[key].Secure()}
	}
	return source
}

// config-check must report the same problems as the program.
func TestReadFile_ReadsAStackFileAsPulumiDoes(t *testing.T) {
	texts := map[string]string{}
	for _, one := range fixtures.Valid() {
		texts[one.Name] = one.Text
	}
	files, err := filepath.Glob(filepath.Join(samples, "Pulumi.*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[filepath.Base(file)] = string(text)
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			ours, err := sourceOf(text)
			require.NoError(t, err)
			if stack, committed := strings.CutPrefix(name, "Pulumi."); committed {
				ours.Stack, ours.Tree = strings.TrimSuffix(stack, ".yaml"), os.DirFS(samples)
			}
			theirs := readAsPulumi(t, text)
			theirs.Stack, theirs.Tree = ours.Stack, ours.Tree

			for key, value := range theirs.Values {
				assert.Equal(t, value.Secret, ours.Values[key].Secret, key)
				assert.Contains(t, ours.Values, key)
			}
			assert.Len(t, theirs.Values, len(ours.Values))

			want, err := Load(ours)
			require.NoError(t, err)
			for _, secret := range secretKeys { // not decrypted, so not of their form
				delete(theirs.Values, Namespace+":"+secret)
			}
			got, err := Load(theirs)
			require.NoError(t, err)
			want.Secrets, got.Secrets = cluster.Secrets{}, cluster.Secrets{}
			assert.Equal(t, want, got)
		})
	}
}
