package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// pathSpan matches a path in prose. Names in upper case and <names> stand for any.
var (
	pathSpan = regexp.MustCompile(`^[a-zA-Z0-9_.<>*-]+(?:/[a-zA-Z0-9_.<>*-]+)*/?$`)
	anyName  = regexp.MustCompile(`<[a-z]+>|[A-Z]{2,}`)
	source   = regexp.MustCompile(`\.(go|yaml|yml|md|json|mod|txt)$`)
)

// written are files that do not exist before a command has written them.
var written = regexp.MustCompile(
	`^(bin/|1password/|kubernetes/(slipway-manifests\.yaml$|clusters/STACK/platform/|apps/notes/))|private-key|-credentials\.json$`)

// inRepository reports whether a path of a document exists, and whether it is one of the repository's at all.
func inRepository(document, span string) (exists, ours bool) {
	if !pathSpan.MatchString(span) || written.MatchString(span) || !strings.Contains(span, "/") {
		return false, false
	}
	pattern := anyName.ReplaceAllString(strings.TrimSuffix(span, "/"), "*")
	first, _, _ := strings.Cut(pattern, "/")
	_, err := os.Stat(filepath.Join(repository, first))
	ours = err == nil || source.MatchString(span)
	// Documents of a part name its files from there.
	for _, from := range []string{
		"", path.Dir(document), "lab", "kubernetes", "kubernetes/infrastructure", "tests/clusters", "lab/registry", "templates/cluster",
	} {
		if found, err := filepath.Glob(filepath.Join(repository, from, pattern)); err == nil && len(found) > 0 {
			return true, true
		}
	}
	return false, ours
}

func TestPaths_InTheDocumentsExist(t *testing.T) {
	looked := 0
	for name, text := range documents(t) {
		if strings.HasPrefix(name, "docs/decisions/") {
			continue // a record may name what was
		}
		for line, prose := range prose(text) {
			for _, span := range spans.FindAllString(prose, -1) {
				span = strings.Trim(span, "`")
				exists, ours := inRepository(name, span)
				if !ours {
					continue
				}
				looked++
				assert.True(t, exists, "%s:%d: there is no %s", name, line, span)
			}
		}
	}
	t.Logf("%d paths", looked)
	assert.Greater(t, looked, 80)
}

func TestPaths_OneThatDoesNotExistIsFound(t *testing.T) {
	for span, want := range map[string]bool{
		"cluster/cluster.go": true, "cluster/SECTION.go": true, "cluster/nothing.go": false, "internal/nothing": false,
	} {
		exists, ours := inRepository("README.md", span)
		assert.True(t, ours, span)
		assert.Equal(t, want, exists, span)
	}
	_, ours := inRepository("README.md", "topology.kubernetes.io/zone")
	assert.False(t, ours)
}
