// Package golden compares what tests make with files of the repository, and with parts of its documents. With -update, it writes them.
package golden

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Update is whether files are written instead of compared.
var Update = flag.Bool("update", false, "write the golden files, and the parts of documents that tests make")

// File compares text with a file.
func File(t *testing.T, path, text string) {
	t.Helper()
	assert.Equal(t, read(t, path, text), text, "run make golden")
}

// Cases compares texts by name with the sections of one file. Each section begins with "== name".
func Cases(t *testing.T, path string, cases map[string]string) {
	t.Helper()
	var all strings.Builder
	for _, title := range slices.Sorted(maps.Keys(cases)) {
		all.WriteString("== " + title + "\n" + cases[title])
	}
	want := map[string]string{}
	for section := range strings.SplitSeq("\n"+read(t, path, all.String()), "\n== ") {
		if title, text, found := strings.Cut(section, "\n"); found {
			want[title] = strings.TrimSuffix(text, "\n") + "\n"
		}
	}
	for title, text := range cases {
		t.Run(title, func(t *testing.T) { assert.Equal(t, want[title], text) })
		delete(want, title)
	}
	assert.Empty(t, want, "%s has sections without a case", path)
}

// Part compares text with a part of a document, which stands between the comments "NAME", or "NAME: written by …", and "end of NAME".
func Part(t *testing.T, document, name, text string) {
	t.Helper()
	content, err := os.ReadFile(document)
	require.NoError(t, err)
	name = regexp.QuoteMeta(name)
	form := `(?s)^(.*<!-- ` + name + `(?:: written by [^\n]*)? -->\n)(.*)(<!-- end of ` + name + ` -->.*)$`
	parts := regexp.MustCompile(form).FindSubmatch(content)
	require.Len(t, parts, 4, "%s has no part %s", document, name)
	if *Update {
		require.NoError(t, os.WriteFile(document, slices.Concat(parts[1], []byte(text), parts[3]), 0o644))
		return
	}
	assert.Equal(t, string(parts[2]), text, "run make golden")
}

// read returns the text of a golden file, which is written first if that is wanted.
func read(t *testing.T, path, text string) string {
	t.Helper()
	if *Update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run make golden")
	return string(want)
}
