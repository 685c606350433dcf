package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// quoting matches the heading of a table's first column that quotes what programs print.
var quoting = regexp.MustCompile("^\\| *(it says|message|what the run reports|`up` says|`pulumi [a-z]+` says) *\\|")

// blank matches what stands for a value in a quoted message.
var blank = regexp.MustCompile(`\.\*|\b(ADDRESS|NAME|NODE|NAMESPACE|FILE|KIND|RELEASE|STACK|PEER|KEY|X|Y|N|M|S|vX|vY)\b`)

// quote is a message of a program that a document quotes.
type quote struct {
	document string
	line     int
	text     string
}

// ofAnother marks a line that quotes a program of another repository, whose words are not known here.
const ofAnother = "<!-- words: of "

// quotes returns the messages that a document quotes: in the tables whose heading says so, and in blocks without a language. A drawing has
// the language text.
func quotes(document, text string) []quote {
	var all []quote
	lines, shown := strings.Split(text, "\n"), prose(text)
	inTable := false
	for i := range lines {
		line, is := shown[i+1]
		switch {
		case !is || !strings.HasPrefix(line, "|"):
			inTable = false
		case quoting.MatchString(line):
			inTable = true
		case inTable && !strings.HasPrefix(line, "| ---") && !strings.Contains(lines[i], ofAnother):
			cells := strings.SplitN(strings.TrimPrefix(line, "|"), " | ", 2)
			for _, span := range spans.FindAllString(cells[0], -1) {
				all = append(all, quote{document, i + 1, strings.Trim(span, "`")})
			}
		}
	}
	compared := false // by the test that runs the commands above it
	for _, block := range Blocks(document, text) {
		if block.Language == "sh" {
			run, err := block.Run()
			compared = err == nil && run.Test != "" && !run.Same
			continue
		}
		if block.Language == "" && !strings.HasPrefix(block.Tag, "words: of ") && !(compared && block.isOutput()) {
			for i, line := range block.Lines {
				if strings.TrimSpace(line) != "" {
					all = append(all, quote{document, block.Line + 1 + i, strings.TrimSpace(line)})
				}
			}
		}
		compared = false
	}
	return all
}

// printable is a text that programs print.
type printable struct {
	text   string
	format []string // what is between the values, if it is a format and says something
	fixed  int      // length of that
}

func newPrintable(text string) printable {
	p := printable{text: text}
	pieces := verb.Split(text, -1)
	if len(pieces) < 2 || len(text) > 400 {
		return p
	}
	for i, piece := range pieces {
		pieces[i] = strings.Trim(piece, " ,:;")
		p.fixed += len(pieces[i])
	}
	if p.fixed >= 10 {
		p.format = pieces
	}
	return p
}

// texts are what programs print.
type texts struct {
	product []printable
	lab     []printable // of the product and of the simulators, for documents about the lab
}

// of returns what a document may quote.
func (t texts) of(document string) []printable {
	if aboutLab(document) {
		return t.lab
	}
	return t.product
}

// aboutLab reports whether a file is of the lab, or a document about it.
func aboutLab(name string) bool {
	return strings.HasPrefix(name, "lab/") || name == "docs/lab.md"
}

// words returns all texts of the repository that programs print: the string literals of the sources, joined where + joins them, and the
// recorded outputs with which tests compare. What only a test says, nothing prints.
var words = sync.OnceValues(func() (texts, error) {
	var all texts
	err := eachFile(func(name, text string) {
		var found []printable
		switch {
		case !strings.HasSuffix(name, ".go"):
			if strings.Contains(name, "/testdata/") || strings.Contains(name, "/fixtures/") {
				found = []printable{newPrintable(text)}
			}
		case !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "tests/"):
			found = literals(text)
		}
		if all.lab = append(all.lab, found...); !aboutLab(name) {
			all.product = append(all.product, found...)
		}
	}, ".go", ".txt", ".golden", ".json", ".yaml", ".html")
	return all, err
})

// literals returns the string literals of a source, joined where + joins them.
func literals(source string) (all []printable) {
	parsed, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		if expression, is := node.(ast.Expr); is {
			if literal, is := joined(expression); is {
				all = append(all, newPrintable(literal))
				return false
			}
		}
		return true
	})
	return all
}

// joined returns the text of a string literal or of several with + between them; what is not a literal is a blank.
func joined(expression ast.Expr) (string, bool) {
	switch node := expression.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(node.Value)
		return text, err == nil && node.Kind == token.STRING
	case *ast.BinaryExpr:
		left, first := joined(node.X)
		right, second := joined(node.Y)
		switch {
		case node.Op != token.ADD || !first && !second:
			return "", false
		case !first:
			left = "%s"
		case !second:
			right = "%s"
		}
		return left + right, true
	}
	return "", false
}

var verb = regexp.MustCompile(`%[-+# 0-9.]*[a-zA-Z]`)

// printed reports whether programs print a message: the fixed parts of the message are in one of the texts, in order, or the message is a
// text with values in it. What … separates may be in different texts, because programs pass errors on.
func printed(all []printable, message string) bool {
	found := 0
	for _, piece := range strings.Split(message, "…") {
		piece = strings.Trim(piece, " ,:;.")
		if len(piece) < 4 { // such as "now"
			continue
		}
		parts := blank.Split(piece, -1)
		for i, part := range parts {
			parts[i] = strings.Trim(part, " ,:;.()`'")
		}
		if found++; !slices.ContainsFunc(all, func(one printable) bool { return inOrder(one.text, parts) || one.filled(piece) }) {
			return false
		}
	}
	return found > 0
}

// inOrder reports whether a text has the fixed parts of a message in their order.
func inOrder(text string, parts []string) bool {
	at, fixed := 0, 0
	for _, part := range parts {
		next := strings.Index(text[at:], part)
		if next < 0 || next > 300 && at > 0 {
			return false
		}
		at, fixed = at+next+len(part), fixed+len(part)
	}
	return fixed >= 4
}

// filled reports whether a message is this format with values.
func (p printable) filled(message string) bool {
	if p.format == nil || p.fixed*3 < len(message) {
		return false
	}
	for _, piece := range p.format {
		_, after, found := strings.Cut(message, piece)
		if !found {
			return false
		}
		message = after
	}
	return true
}

func TestMessages_QuotedInTheDocumentsArePrinted(t *testing.T) {
	all, err := words()
	require.NoError(t, err)
	looked := 0
	for name, text := range documents(t) {
		for _, one := range quotes(name, text) {
			looked++
			assert.True(t, printed(all.of(name), one.text), "%s:%d: no program of this repository prints %q; if another one does, "+
				"add <!-- words: of PROGRAM -->", one.document, one.line, one.text)
		}
	}
	assert.Greater(t, looked, 50)
}

func TestMessages_WhatOnlyATestOrTheLabSaysIsNotPrinted(t *testing.T) {
	all, err := words()
	require.NoError(t, err)
	const onlyHere = "a sentence that only this test says"
	assert.False(t, printed(all.lab, onlyHere))
	const ofLab = "Unauthorized Request, token does not have write access to the Vault"
	assert.False(t, printed(all.of("docs/operations.md"), ofLab))
	assert.True(t, printed(all.of("docs/lab.md"), ofLab))
}

func TestMessages_OneThatNobodyPrintsIsFound(t *testing.T) {
	var all []printable
	for _, text := range []string{"%s: is registered as %s instead of %s", "kubelet is Failed: pulling", "not a message"} {
		all = append(all, newPrintable(text))
	}
	for _, message := range []string{
		"is registered as X instead of NAME", "kubelet is Failed", "infra-cp-1: is registered as a instead of b",
	} {
		assert.True(t, printed(all, message), message)
	}
	for _, message := range []string{"is registered as X in place of NAME", "kubelet is Waiting", "X", "instead of NAME is registered as X"} {
		assert.False(t, printed(all, message), message)
	}
}
