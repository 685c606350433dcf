package workflows

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ownFile is a link of a template to a file of this repository, which must be absolute, because an issue is no file.
var ownFile = regexp.MustCompile(`https://github\.com/slipway-platform/slipway/blob/main/([A-Za-z0-9_./-]+[a-z])`)

func TestTemplates_OfIssuesAndPullRequestsLinkToWhatExists(t *testing.T) {
	forms, err := filepath.Glob(filepath.Join(repository, ".github", "ISSUE_TEMPLATE", "*"))
	require.NoError(t, err)
	require.Len(t, forms, 3)
	links := 0
	for _, form := range forms {
		var content struct {
			Name, Description string
			Body              []struct{ Type string }
			ContactLinks      []struct{ Name, URL, About string } `yaml:"contact_links"`
		}
		name := filepath.Join(".github", "ISSUE_TEMPLATE", filepath.Base(form))
		parse(t, name, &content)
		if path.Base(form) != "config.yml" {
			assert.NotEmpty(t, content.Name, name)
			assert.NotEmpty(t, content.Description, name)
			assert.NotEmpty(t, content.Body, name)
		} else {
			assert.NotEmpty(t, content.ContactLinks, name)
		}
	}
	for _, name := range append(forms, filepath.Join(repository, ".github", "pull_request_template.md")) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, found := range ownFile.FindAllStringSubmatch(string(text), -1) {
			links++
			assert.FileExists(t, filepath.Join(repository, filepath.FromSlash(found[1])), name)
		}
	}
	assert.Greater(t, links, 4)
}
