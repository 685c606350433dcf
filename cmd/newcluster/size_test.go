package newcluster

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/internal/engines/flux/tree"
)

// documented returns the number that a text gives, once. A line may end at each space of the pattern.
func documented(t *testing.T, text, pattern string) int {
	t.Helper()
	found := regexp.MustCompile(strings.ReplaceAll(pattern, " ", `\s+`)).FindAllStringSubmatch(text, -1)
	require.Len(t, found, 1, pattern)
	number, err := strconv.Atoi(found[0][1])
	require.NoError(t, err)
	return number
}

// A user decides by the figure whether to look at each file. So his own are counted exactly, and are few. Those that the command keeps up
// to date are about as many as the documents say: an area may get a file without a change of the documents.
func TestNew_WritesAsManyFilesAsTheDocumentsSay(t *testing.T) {
	const most = 25 // as many as one looks through in a quarter of an hour
	documents := files(t, "../../docs")
	_, folder, _ := newRepository(t, "home", "--domain", "")
	assert.Len(t, files(t, folder), documented(t, documents["updating.md"], `a folder .home. of (\d+) files`))
	code, folder, problems := newRepository(t, "home")
	require.Equal(t, command.Done, code, problems)
	record, err := tree.ReadWritten(os.DirFS(folder))
	require.NoError(t, err)
	all := len(files(t, folder))
	own := all - len(record.Files) - 1 // that file itself
	assert.LessOrEqual(t, own, most)
	for _, name := range []string{"updating.md", "quickstart.md"} {
		assert.InDelta(t, documented(t, documents[name], `about (\d+) files`), all, 5, "%s: there are %d", name, all)
		assert.Equal(t, own, documented(t, documents[name], `(\d+) of them are yours`), name)
	}
}
