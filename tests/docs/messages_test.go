package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ofOthers are messages of programs that are not in this repository, with where their words come from.
var ofOthers = map[string]string{
	"the stack is currently locked by …":                                          "Pulumi",
	"Server-Side Apply field conflict detected":                                   "the Kubernetes plugin",
	"404 Integration not found":                                                   "GitHub's API",
	"… access_tokens: 404 Not Found":                                              "GitHub, through ghinstallation",
	"GitOperationFailed: … status code: 500":                                      "go-git",
	"BuildFailed: build failed: downgrading from …":                               "flux-operator",
	"OCIPullFailed: … UNAUTHORIZED":                                               "registries, through go-containerregistry",
	"BucketOperationFailed: … The request signature we calculated does not match": "S3",
	"BucketOperationFailed: … The AWS Access Key Id you provided does not exist":  "S3",
	"… x509: certificate signed by unknown authority":                             "Go's crypto/x509",
}

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
		case inTable && !strings.HasPrefix(line, "| ---"):
			cells := strings.SplitN(strings.TrimPrefix(line, "|"), " | ", 2)
			for _, span := range spans.FindAllString(cells[0], -1) {
				all = append(all, quote{document, i + 1, strings.Trim(span, "`")})
			}
		}
	}
	compared := false // by the test that runs the commands above it
	for _, block := range Blocks(document, text) {
		if block.Language != "" || compared {
			compared = strings.HasPrefix(block.Tag, "runs: Test")
			continue
		}
		for i, line := range block.Lines {
			if strings.TrimSpace(line) != "" {
				all = append(all, quote{document, block.Line + 1 + i, strings.TrimSpace(line)})
			}
		}
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

// words returns all texts of the repository that programs print: the string literals of the sources, those that are joined with + as one,
// and the recorded outputs of the tests.
var words = sync.OnceValues(func() ([]printable, error) {
	var all []printable
	err := eachFile(func(name, text string) {
		if !strings.HasSuffix(name, ".go") {
			if strings.Contains(name, "/testdata/") || strings.Contains(name, "/fixtures/") {
				all = append(all, newPrintable(text))
			}
			return
		}
		if path.Dir(name) == "tests/docs" {
			return // this list itself
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return
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
	}, ".go", ".txt", ".golden", ".json", ".yaml", ".html")
	return all, err
})

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
	looked, elsewhere := 0, 0
	for name, text := range documents(t) {
		for _, one := range quotes(name, text) {
			looked++
			switch {
			case ofOthers[one.text] != "":
				elsewhere++
			default:
				assert.True(t, printed(all, one.text), "%s:%d: no program prints %q", one.document, one.line, one.text)
			}
		}
	}
	t.Logf("%d quoted messages, %d of them of programs that are not here", looked, elsewhere)
	assert.Greater(t, looked, 60)
}

func TestMessages_OneThatNobodyPrintsIsFound(t *testing.T) {
	var all []printable
	for _, text := range []string{"%s: is registered as %s instead of %s", "kubelet is Failed: pulling", "not a message"} {
		all = append(all, newPrintable(text))
	}
	for _, message := range []string{"is registered as X instead of NAME", "kubelet is Failed", "infra-cp-1: is registered as a instead of b"} {
		assert.True(t, printed(all, message), message)
	}
	for _, message := range []string{"is registered as X in place of NAME", "kubelet is Waiting", "X", "instead of NAME is registered as X"} {
		assert.False(t, printed(all, message), message)
	}
}
