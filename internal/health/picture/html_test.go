package picture

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// elements returns the elements of a page, in their order.
func elements(t *testing.T, page string) []*html.Node {
	t.Helper()
	document, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	var all []*html.Node
	for node := range document.Descendants() {
		if node.Type == html.ElementNode {
			all = append(all, node)
		}
	}
	return all
}

// attribute returns an attribute; "" if it is missing.
func attribute(node *html.Node, name string) string {
	for _, a := range node.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// text returns the text below an element.
func text(node *html.Node) string {
	var all strings.Builder
	for below := range node.Descendants() {
		if below.Type == html.TextNode {
			all.WriteString(below.Data)
		}
	}
	return all.String()
}

// void are the elements without an end tag.
var void = []string{"meta", "br"}

// A parser of HTML accepts everything, so the tags are counted.
func TestPages_CloseEveryElement(t *testing.T) {
	for name, page := range pages(t) {
		var open []string
		tokens := html.NewTokenizer(strings.NewReader(page))
		for kind := tokens.Next(); kind != html.ErrorToken; kind = tokens.Next() {
			tag, _ := tokens.TagName()
			switch {
			case kind == html.StartTagToken && !slices.Contains(void, string(tag)):
				open = append(open, string(tag))
			case kind == html.EndTagToken:
				require.NotEmpty(t, open, "%s: </%s> ends nothing", name, tag)
				require.Equal(t, open[len(open)-1], string(tag), "%s: %v", name, open)
				open = open[:len(open)-1]
			}
		}
		assert.Empty(t, open, name)
	}
}

func TestPages_LoadNothingFromElsewhere(t *testing.T) {
	loads := regexp.MustCompile(`url\(|@import|expression\(`)
	for name, page := range pages(t) {
		looked := 0
		for _, element := range elements(t, page) {
			assert.NotContains(t, []string{"script", "link", "img", "iframe", "object", "embed", "base", "form", "audio", "video", "use", "image"},
				element.Data, name)
			for _, a := range element.Attr {
				switch a.Key {
				case "href":
					assert.True(t, strings.HasPrefix(a.Val, "#"), "%s: %s", name, a.Val)
					looked++
				case "style":
					assert.NotRegexp(t, loads, a.Val)
				}
				assert.False(t, strings.HasPrefix(a.Key, "on"), "%s: %s", name, a.Key)
				assert.NotContains(t, []string{"src", "srcset", "action", "background", "xlink:href"}, a.Key, name)
			}
			if element.Data == "style" {
				assert.NotRegexp(t, loads, text(element))
			}
		}
		assert.Positive(t, looked, name)
		assert.Contains(t, page, `content="default-src 'none'; style-src 'unsafe-inline'"`, name)
	}
}

func TestPages_ShowEveryResourceOnce(t *testing.T) {
	for name, u := range map[string]Update{"up.html": update(t), "failed.html": failed(t)} {
		var shown, want []string
		for _, element := range elements(t, pages(t)[name]) {
			if urn := attribute(element, "data-urn"); urn != "" {
				shown = append(shown, urn)
			}
		}
		for _, r := range u.Run.Resources {
			want = append(want, r.URN)
		}
		require.Greater(t, len(want), 10)
		assert.ElementsMatch(t, want, shown, name)
	}
}

func TestPages_HaveWhatAScreenReaderNeeds(t *testing.T) {
	for name, page := range pages(t) {
		ids, level, tables, pictures := map[string]bool{}, 0, 0, 0
		all := elements(t, page)
		for _, element := range all {
			if id := attribute(element, "id"); id != "" {
				assert.False(t, ids[id], "%s: %s is there twice", name, id)
				ids[id] = true
			}
		}
		has := func(element *html.Node, want string) bool {
			for below := range element.Descendants() {
				if below.Type == html.ElementNode && below.Data == want {
					return true
				}
			}
			return false
		}
		for _, element := range all {
			switch element.Data {
			case "html":
				assert.Equal(t, "en", attribute(element, "lang"))
			case "h1", "h2", "h3":
				next := int(element.Data[1] - '0')
				assert.LessOrEqual(t, next, level+1, "%s: the heading %q leaves out a level", name, text(element))
				level = next
			case "table":
				tables++
				assert.True(t, has(element, "caption"), name)
			case "th":
				assert.Contains(t, []string{"row", "col"}, attribute(element, "scope"), "%s: %s", name, text(element))
			case "svg":
				pictures++
				assert.Equal(t, "img", attribute(element, "role"))
				assert.True(t, has(element, "title") && has(element, "desc"), name)
				for id := range strings.FieldsSeq(attribute(element, "aria-labelledby")) {
					assert.True(t, ids[id], "%s: nothing is called %s", name, id)
				}
			case "a":
				assert.True(t, ids[strings.TrimPrefix(attribute(element, "href"), "#")], "%s: %s leads nowhere", name, attribute(element, "href"))
			case "i":
				assert.Equal(t, "true", attribute(element.Parent, "aria-hidden"), "bars are also words")
			}
		}
		assert.Positive(t, tables, name)
		if name != "failed.html" {
			assert.Positive(t, pictures, name)
		}
	}
}

// Colour alone says nothing to many: each state has a character and a word beside it.
func TestPages_SayStatesInWordsToo(t *testing.T) {
	p := pages(t)
	for name, words := range map[string][]string{
		"failed.html": {
			"The update failed after 55.0 s.", "create failed", "the last lines that it printed", "infra-cp-2: Ready is False: KubeletNotReady",
		},
		"up.html": {
			"The update succeeded after 40.0 s.", "critical path", "1 unchanged", "connected", "absent", "cpu.units is deprecated &lt;b&gt;",
		},
		"gate.html": {"no voting etcd member", "2 checks fail", "failed, infra-cp-2", "&lt;script&gt;"},
	} {
		for _, word := range words {
			assert.Contains(t, strings.ToLower(p[name]), strings.ToLower(word), name)
		}
	}
}

func TestFailures_BeginWithTheCause(t *testing.T) {
	failures, _ := failed(t).failures()
	var names []string
	for _, f := range failures {
		names = append(names, f.Name)
	}
	assert.Equal(t, []string{"infra-gate-probe", "slipway-infra"}, names)
}

// Pulumi prints "exited prematurely" for plugins that it has ended itself, at the end of updates that succeeded.
func TestFailures_AreNotTheErrorsOfAnUpdateThatSucceeded(t *testing.T) {
	u := update(t)
	u.Run.Messages = append(u.Run.Messages, Message{Error: true, Lines: []string{"error: Detected that a plugin exited prematurely."}})
	failures, others := u.failures()
	assert.Empty(t, failures)
	require.Len(t, others, 2)
	assert.Equal(t, "The update", others[1].Name)
	u.Run.Complete = false
	failures, _ = u.failures()
	require.Len(t, failures, 1)
	assert.True(t, failures[0].Broken)
}

func TestWrite_OfAnEmptyClusterIsAPage(t *testing.T) {
	var page bytes.Buffer
	require.NoError(t, Cluster{}.Write(&page))
	assert.NotEmpty(t, elements(t, page.String()))
}
