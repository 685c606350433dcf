package docs

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// repository is the folder of all documents.
const repository = "../.."

var (
	link    = regexp.MustCompile(`\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	anchor  = regexp.MustCompile(`<a (?:id|name)="([^"]+)">`)
	spans   = regexp.MustCompile("`[^`]*`")
)

// documents returns the Markdown files of the repository by their paths.
func documents(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(repository, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"bin", "testdata", ".git"}, entry.Name()):
			return fs.SkipDir
		case path.Ext(name) != ".md":
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(repository, name)
		found[filepath.ToSlash(below)] = string(text)
		return err
	}))
	return found
}

// prose returns the lines of a document that are no blocks of code, with their numbers.
func prose(text string) map[int]string {
	lines, fence := map[int]string{}, ""
	for i, line := range strings.Split(text, "\n") {
		mark := strings.TrimLeft(line, " ")
		switch {
		case fence == "" && (strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~")):
			fence = mark[:3]
		case fence != "" && strings.HasPrefix(mark, fence):
			fence = ""
		case fence == "":
			lines[i+1] = line
		}
	}
	return lines
}

// anchors returns the anchors of a document, as GitHub makes them of headings.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	lines := prose(text)
	for i := range len(strings.Split(text, "\n")) {
		line := lines[i+1]
		for _, one := range anchor.FindAllStringSubmatch(line, -1) {
			found[one[1]] = true
		}
		if title := heading.FindStringSubmatch(line); title != nil {
			slug := slugOf(title[1])
			for n, base := 1, slug; found[slug]; n++ {
				slug = fmt.Sprintf("%s-%d", base, n)
			}
			found[slug] = true
		}
	}
	return found
}

// slugOf returns the anchor of a heading: in lower case, without punctuation, with - for each blank.
func slugOf(title string) string {
	title = link.ReplaceAllStringFunc(title, func(text string) string { return text[1:strings.LastIndex(text, "](")] })
	return strings.Map(func(char rune) rune {
		switch {
		case char == ' ':
			return '-'
		case char == '-' || char == '_' || unicode.IsLetter(char) || unicode.IsDigit(char):
			return unicode.ToLower(char)
		}
		return -1
	}, title)
}

// broken returns the links of a document that lead nowhere.
func broken(all map[string]string, name string) (problems []string, looked int) {
	for number, line := range prose(all[name]) {
		for _, one := range link.FindAllStringSubmatch(spans.ReplaceAllString(line, "code"), -1) {
			target, err := url.Parse(one[1])
			if err != nil {
				problems = append(problems, fmt.Sprintf("%s:%d: %s cannot be read", name, number, one[1]))
				continue
			}
			if target.Scheme != "" || target.Host != "" {
				continue // of another site
			}
			looked++
			at := name
			if target.Path != "" {
				at = path.Join(path.Dir(name), target.Path)
			}
			text, is := all[at]
			if _, err := os.Stat(filepath.Join(repository, filepath.FromSlash(at))); err != nil && !is {
				problems = append(problems, fmt.Sprintf("%s:%d: there is no %s", name, number, at))
				continue
			}
			if target.Fragment != "" && is && !anchors(text)[target.Fragment] {
				problems = append(problems, fmt.Sprintf("%s:%d: %s has no heading #%s", name, number, at, target.Fragment))
			}
		}
	}
	return problems, looked
}

func TestDocuments_LinkToWhatExists(t *testing.T) {
	all := documents(t)
	looked := 0
	for name := range all {
		problems, links := broken(all, name)
		looked += links
		for _, problem := range problems {
			t.Error(problem)
		}
	}
	assert.Greater(t, len(all), 20)
	assert.Greater(t, looked, 40)
}

func TestDocuments_ABrokenLinkIsFound(t *testing.T) {
	all := map[string]string{"docs/one.md": "# The `first`, of two\n\n## Same\n## Same\n" +
		"[a](#the-first-of-two) [b](#same-1) `[c](nowhere.md)`\n" +
		"```\n[d](nowhere.md)\n# No heading\n```\n[e](#no-heading)\n[f](nowhere.md)\n[g](https://example.com/#x) [h](lab.md#what-is-real)\n",
		"docs/lab.md": "# What is real\n"}
	problems, looked := broken(all, "docs/one.md")
	assert.ElementsMatch(t, []string{
		"docs/one.md:10: docs/one.md has no heading #no-heading", "docs/one.md:11: there is no docs/nowhere.md",
	}, problems)
	assert.Equal(t, 5, looked)
}
