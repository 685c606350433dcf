package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
)

// stackFiles returns the copies of the stack files by their names.
func stackFiles(t *testing.T) map[string]*cluster.Cluster {
	t.Helper()
	stacks := map[string]*cluster.Cluster{}
	for _, file := range clusters.Samples(t) {
		stacks[filepath.Base(file)] = clusters.Read(t, file)
	}
	return stacks
}

// flags returns the values of a flag of a command, in order.
func flags(words []string, flag string) (values []string) {
	for i, word := range words[:len(words)-1] {
		if word == flag {
			values = append(values, words[i+1])
		}
	}
	return values
}

// Each stack file that declares 1Password gets a Connect server for its vaults, a token that reads its own vaults, another token for the
// storage's vault, which writes only if the stack provides the storage, and the item of its probe.
func TestOperations_MakesIn1PasswordWhatTheStackFilesDeclare(t *testing.T) {
	servers, tokens, items := map[string][]string{}, map[string][][]string{}, map[string][]string{}
	name := "docs/credentials.md"
	for _, block := range Blocks(name, documents(t)[name]) {
		for _, command := range block.Commands() {
			words := command.Words
			switch text := strings.Join(words, " "); {
			case strings.HasPrefix(text, "op connect server create "):
				servers[words[4]] = strings.Split(flags(words, "--vaults")[0], ",")
			case strings.HasPrefix(text, "op connect token create "):
				server := flags(words, "--server")[0]
				tokens[server] = append(tokens[server], flags(words, "--vault"))
			case strings.HasPrefix(text, "op item create "):
				title := flags(words, "--title")[0]
				items[title] = append(items[title], flags(words, "--vault")...)
			}
		}
	}
	looked := 0
	for file, stack := range stackFiles(t) {
		declared := stack.Providers.OnePassword
		if declared == nil {
			continue
		}
		looked++
		var reads []string
		for _, vault := range declared.Vaults {
			reads = append(reads, vault+",r")
		}
		wanted, vaults := [][]string{reads}, slices.Clone(declared.Vaults)
		if vault := stack.Storage.Vault; vault != "" {
			right := ",r"
			if stack.Storage.Role == cluster.StorageProvider {
				right = ",rw"
			}
			wanted, vaults = append(wanted, []string{vault + right}), append(vaults, vault)
		}
		assert.ElementsMatch(t, vaults, servers[stack.Stack], "%s: the vaults of its Connect server", file)
		assert.ElementsMatch(t, wanted, tokens[stack.Stack], "%s: what its tokens may do", file)
		assert.Subset(t, items[declared.Probe.Item], declared.Vaults[:1], "%s: the vault of its probe's item", file)
	}
	assert.Positive(t, looked)
}

// removal is a row of the table of what is removed together.
var removal = regexp.MustCompile("(?m)^\\| `([a-zA-Z]+)\\.([a-zA-Z]+)` \\| (.*`Pulumi\\..*) \\|$")

var fileName = regexp.MustCompile(`Pulumi\.[a-z]+\.yaml`)

func TestCredentials_NameAllThatIsRemovedTogetherWith1Password(t *testing.T) {
	_, section, found := strings.Cut(documents(t)["docs/credentials.md"], "### The committed stack files without 1Password\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	rows := removal.FindAllStringSubmatch(section, -1)
	require.NotEmpty(t, rows)
	folder, files := t.TempDir(), stackFiles(t)
	for file := range files { // all of them first, because each is compared with those that it names
		text, err := os.ReadFile(filepath.Join(filepath.Dir(clusters.Sample(t, "infra")), file))
		require.NoError(t, err)
		var content struct {
			Config map[string]any `json:"config"`
		}
		require.NoError(t, yaml.Unmarshal(text, &content))
		for _, row := range rows {
			if slices.Contains(fileName.FindAllString(row[3], -1), file) {
				section, is := content.Config["slipway:"+row[1]].(map[string]any)
				require.True(t, is, "%s: %s", file, row[1])
				require.Contains(t, section, row[2], file)
				delete(section, row[2])
			}
		}
		text, err = yaml.Marshal(content)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), text, 0o600))
	}
	for file := range files {
		stack := clusters.Read(t, filepath.Join(folder, file))
		assert.Nil(t, stack.Providers.OnePassword, file)
		assert.False(t, stack.Storage.Role == cluster.StorageConsumer && stack.Storage.IsVerified(),
			"%s: nothing connects the consumer while up waits for its volumes", file)
	}
}
