package fault

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the tables into the document")

const (
	document = "../../docs/lab.md"
	begin    = "<!-- faults: written by go -C lab test ./fault -update -->\n"
	end      = "<!-- end of faults -->\n"
)

// tables returns the kinds as Markdown tables, one per group.
func tables() string {
	var b strings.Builder
	group := ""
	for _, d := range Kinds {
		if d.Group != group {
			group = d.Group
			fmt.Fprintf(&b, "\n%s:\n\n| kind | target | what happens | when switched off |\n| --- | --- | --- | --- |\n", group)
		}
		target := d.Target
		if target == "" {
			target = "–"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Kind, target, d.WhenOn, d.WhenOff)
	}
	return b.String() + "\n"
}

// tests/e2e/faults has a similar test for docs/faults.md.
func TestKinds_AreTheTablesOfTheDocument(t *testing.T) {
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found, "the document has no place for the tables")
	shown, after, found := strings.Cut(rest, end)
	require.True(t, found, "the tables have no end")
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(before+begin+tables()+end+after), 0o644))
		return
	}
	assert.Equal(t, tables(), shown, "run make golden")
}

func TestKinds_AreDescribed(t *testing.T) {
	for _, d := range Kinds {
		assert.NotEmpty(t, d.Group, d.Kind)
		assert.NotEmpty(t, d.WhenOn, d.Kind)
		assert.NotEmpty(t, d.WhenOff, d.Kind)
	}
}

// A person who looks for a fault finds it in the faults.go of a simulator.
func TestKinds_AreLookedUpInFilesNamedFaultsOnly(t *testing.T) {
	source, err := os.ReadFile("kinds.go")
	require.NoError(t, err)
	declared := regexp.MustCompile(`(?m)^\t(\w+) +Kind = "`).FindAllStringSubmatch(string(source), -1)
	require.Len(t, declared, len(Kinds), "each kind has a constant and a description")
	unused := map[string]bool{}
	for _, d := range declared {
		unused[d[1]] = true
	}
	use := regexp.MustCompile(`\bfault\.(\w+)\b`)
	require.NoError(t, filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range use.FindAllStringSubmatch(string(text), -1) {
			if _, isKind := unused[m[1]]; isKind {
				unused[m[1]] = false
				assert.Equal(t, "faults.go", filepath.Base(path), "%s: move the lookup of fault.%s to faults.go", path, m[1])
			}
		}
		return err
	}))
	for name, is := range unused {
		assert.False(t, is, "fault.%s: no simulator looks it up", name)
	}
}
