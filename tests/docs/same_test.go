package docs

import (
	"errors"
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

// labTests are the functions of tests/e2e by name, and the methods by a point and their name; methods with the same name are one.
var labTests = sync.OnceValues(func() (map[string][]*ast.BlockStmt, error) {
	all := map[string][]*ast.BlockStmt{}
	var unread []error
	err := eachFile(func(name, text string) {
		if path.Dir(name) == "tests/e2e" {
			unread = append(unread, addFunctions(all, text))
		}
	}, ".go")
	return all, errors.Join(append(unread, err)...)
})

func addFunctions(all map[string][]*ast.BlockStmt, source string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, declared := range parsed.Decls {
		if function, is := declared.(*ast.FuncDecl); is && function.Body != nil {
			name := function.Name.Name
			if function.Recv != nil {
				name = "." + name
			}
			all[name] = append(all[name], function.Body)
		}
	}
	return nil
}

// testSource is what the source of a test says, with the functions that it can reach.
type testSource struct {
	commands [][]string      // words of each call that runs a command; one with % has a value that is not in the source
	literals map[string]bool // all string literals
}

// running are the functions of the tests that run commands in a lab, with the words that they put before their arguments.
var running = map[string][]string{
	"pulumi": {"pulumi"}, "pulumiSays": {"pulumi"}, "engine": {"pulumi"}, "kubectl": {"kubectl"},
	"Steps": {"Steps"}, "in": nil, "try": nil, "secret": nil, "background": nil, "cmd": nil, "Command": nil, "CommandContext": nil,
}

// sourceOf returns what a test says, and whether it exists.
func sourceOf(all map[string][]*ast.BlockStmt, test string) (testSource, bool) {
	source := testSource{literals: map[string]bool{}}
	reached, queue := map[string]bool{}, []string{}
	reach := func(name string) {
		if !reached[name] {
			reached[name] = true
			queue = append(queue, name)
		}
	}
	var visit func(node ast.Node) bool
	visit = func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.Ident:
			reach(node.Name)
		case *ast.SelectorExpr:
			reach("." + node.Sel.Name)
			ast.Inspect(node.X, visit)
			return false
		case *ast.CallExpr:
			source.call(node)
		case *ast.CompositeLit:
			source.add(nil, node.Elts)
		case *ast.BasicLit:
			source.literal(node)
		}
		return true
	}
	for reach(test); len(queue) > 0; {
		name := queue[0]
		queue = queue[1:]
		for _, body := range all[name] {
			ast.Inspect(body, visit)
		}
	}
	return source, len(all[test]) > 0
}

// call adds a call of a function that runs a command.
func (s *testSource) call(call *ast.CallExpr) {
	name := ""
	switch function := call.Fun.(type) {
	case *ast.Ident:
		name = function.Name
	case *ast.SelectorExpr:
		name = function.Sel.Name
	}
	if before, is := running[name]; is {
		s.add(before, call.Args)
	}
}

func (s *testSource) add(before []string, expressions []ast.Expr) {
	words := slices.Clone(before)
	for _, expression := range expressions {
		word, is := joined(expression)
		if !is {
			word = "%s"
		}
		words = append(words, word)
	}
	s.commands = append(s.commands, words)
}

// literal adds a string literal, and the commands in it if it is a script.
func (s *testSource) literal(node *ast.BasicLit) {
	text, err := strconv.Unquote(node.Value)
	if err != nil || node.Kind != token.STRING {
		return
	}
	s.literals[text] = true
	if strings.Contains(text, " ") {
		for line := range strings.Lines(text) {
			s.commands = append(s.commands, Simple(strings.TrimSuffix(line, "\n"))...)
		}
	}
}

// runs reports whether one of the calls has all words of a command.
func (s *testSource) runs(words []string) bool {
	return slices.ContainsFunc(s.commands, func(call []string) bool {
		rest := slices.Clone(call)
		for _, word := range words {
			i := slices.IndexFunc(rest, func(one string) bool { return s.is(one, word) })
			if i < 0 {
				return false
			}
			rest = slices.Delete(rest, i, i+1)
		}
		return true
	})
}

// standsFor matches a word of a document that stands for a value.
var standsFor = regexp.MustCompile(`…|^[A-Z][A-Z-]+$|\$`)

// is reports whether a word of a call is that of a document. A value that the call computes must be a literal elsewhere in the test, unless
// the document's word stands for a value, too.
func (s *testSource) is(call, word string) bool {
	if call == word {
		return true
	}
	fixed, _, computed := strings.Cut(strings.ReplaceAll(call, "$", "%s$"), "%s")
	value, begins := strings.CutPrefix(word, fixed)
	return computed && begins && (s.literals[value] || standsFor.MatchString(value))
}

func TestSame_FindsTheWordsOfACommandInTheTestThatRunsIt(t *testing.T) {
	all := map[string][]*ast.BlockStmt{}
	require.NoError(t, addFunctions(all, `package e2e
func TestOne(t *testing.T) {
	l.pulumi("up", "--yes", "--stack", "infra")
	for _, stack := range []string{"edge"} { helper(l, stack) }
	l.in("sh", "-c", "cd x; bin/probe gate --to \"$1\"")
}
func helper(l *lab, stack string) {
	l.try("pulumi", "config", "set", "slipway:" + "a", "--stack", stack, "STATE=" + folder)
}
func (l *lab) helper() { l.pulumi("destroy", "--stack", "infra") }
func TestTwo(t *testing.T) { l.pulumi("destroy", "--stack", "infra") }
`))
	one, exists := sourceOf(all, "TestOne")
	require.True(t, exists)
	for line, want := range map[string]bool{
		"pulumi up --stack infra":                    true,
		"pulumi up --stack edge":                     false,
		"pulumi config set --stack edge slipway:a":   true,
		"pulumi config set --stack other slipway:a":  false,
		"pulumi config set --stack edge STATE=$HOME": true,
		"pulumi config set --stack edge slipway:b":   false,
		"pulumi destroy --stack infra":               false,
		"bin/probe gate --to FILE":                   true,
		"bin/probe gate --from FILE":                 false,
	} {
		assert.Equal(t, want, one.runs(Simple(line)[0]), line)
	}
	_, exists = sourceOf(all, "TestThree")
	assert.False(t, exists)
}
