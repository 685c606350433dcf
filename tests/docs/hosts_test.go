package docs

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	listedHost = regexp.MustCompile("(?m)^\\| `([a-z0-9.-]+)` \\| ([^|]+) \\|")
	manifestIn = regexp.MustCompile(`(?m)^\s*(?:- )?(?:url: (?:https|oci)://|image(?:Name)?: )([a-z0-9-]+(?:\.[a-z0-9-]+)+)/`)
)

// downloads returns the hosts from which the committed stacks download by their defaults and by the tree, each with an example.
func downloads(t *testing.T) map[string]string {
	t.Helper()
	from := map[string]string{}
	add := func(text string) {
		parsed, err := url.Parse(text)
		require.NoError(t, err)
		from[parsed.Host] = text
	}
	for _, stack := range stackFiles(t) {
		add(stack.Talos.Factory)
		add(stack.Cilium.Repository)
		add("oci://" + stack.GitOps.Flux.Registry)
		for _, release := range append(stack.Releases(), stack.ArgoCDService()) {
			if release.Repository != "" {
				add(release.Repository)
			} else {
				add(release.Chart)
			}
		}
		for _, set := range stack.CRDs.Sets() {
			add(set.Source.URL)
		}
	}
	require.Greater(t, len(from), 8)
	for _, folder := range []string{"kubernetes", filepath.Join("cluster", "machineconfig", "testdata")} {
		files := 0
		require.NoError(t, filepath.WalkDir(filepath.Join(repository, folder), func(name string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(name)
			for _, found := range manifestIn.FindAllStringSubmatch(string(text), -1) {
				files++
				from[found[1]] = name
			}
			return err
		}))
		require.Greater(t, files, 5, folder)
	}
	return from
}

func TestAirGap_ListsTheHostsOfAllDownloads(t *testing.T) {
	_, table, found := strings.Cut(documents(t)["docs/air-gap.md"], "## Hosts\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	listed := map[string]string{}
	for _, row := range listedHost.FindAllStringSubmatch(table, -1) {
		listed[row[1]] = row[2]
	}
	assert.Contains(t, listed["factory.talos.dev"], "your computer", "there, the Talos plugin asks the factory for the schematic's id")
	from := downloads(t)
	for host, example := range from {
		assert.Contains(t, listed, host, "docs/air-gap.md does not list the host of %s", example)
		delete(listed, host)
	}
	assert.Empty(t, listed, "nothing is downloaded from these hosts")
}
