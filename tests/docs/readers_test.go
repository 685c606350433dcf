package docs

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// opening returns the first paragraph of a document below its title.
func opening(text string) string {
	_, below, _ := strings.Cut(text, "\n")
	paragraph, _, _ := strings.Cut(strings.TrimLeft(below, "\n"), "\n\n")
	return strings.ReplaceAll(paragraph, "\n", " ")
}

func TestDocuments_OpenWithWhoReadsThemWhen(t *testing.T) {
	looked := 0
	for name, text := range documents(t) {
		folder := path.Dir(name)
		if folder != "." && folder != "docs" && path.Base(name) != "README.md" {
			continue
		}
		looked++
		assert.True(t, strings.HasPrefix(text, "# "), "%s: begins without a title", name)
		assert.Contains(t, opening(text), "Read this ", "%s: the first paragraph says who reads it when", name)
	}
	assert.Greater(t, looked, 9)
}
