package syntax

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/ext"

	"github.com/slipway-platform/slipway/cluster/secrecy"
)

// expressionCost is the limit of one evaluation, as of an expression in Kubernetes' own API: some tenths of a second.
const expressionCost = 1_000_000

// Expression is a CEL expression about an object of Kubernetes, which it knows as `object`. `now` is the time at which the object was read.
type Expression struct {
	program cel.Program
	root    celast.Expr
}

// environment is what expressions may use: CEL's standard library, with functions for texts, lists, sets and fields that may be missing.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("object", cel.DynType), cel.Variable("now", cel.TimestampType), cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true),
		ext.Strings(), ext.Lists(), ext.Sets(),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals()),
	)
})

// CompileExpression compiles an expression that is true or false.
func CompileExpression(text string) (*Expression, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		problem, _, _ := strings.Cut(strings.TrimSuffix(first.Message, " (in container '')"), " expecting {")
		return nil, fmt.Errorf("character %d: %s", first.Location.Column()+1, oneLine(problem))
	}
	if kind := ast.OutputType(); !kind.IsExactType(cel.BoolType) && !kind.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("its value is of type %s, not true or false", kind)
	}
	program, err := env.Program(ast, cel.CostLimit(expressionCost), cel.InterruptCheckFrequency(100))
	if err != nil {
		return nil, err
	}
	return &Expression{program, ast.NativeRep().Expr()}, nil
}

// judges reports whether the expression says something of the object. One without it is true or false of all objects, and the object alone
// is neither.
func (e *Expression) judges() bool {
	looks := false
	celast.PostOrderVisit(e.root, celast.NewExprVisitor(func(part celast.Expr) {
		looks = looks || part.Kind() == celast.IdentKind && part.AsIdent() == "object"
	}))
	return looks && e.root.Kind() != celast.IdentKind
}

// Holds reports whether the expression is true of an object.
func (e *Expression) Holds(ctx context.Context, object map[string]any) (bool, error) {
	value, _, err := e.program.ContextEval(ctx, map[string]any{"object": object, "now": time.Now()})
	if err != nil {
		return false, errors.New(oneLine(err.Error()))
	}
	holds, is := value.Value().(bool)
	if !is {
		return false, fmt.Errorf("its value is of type %s, not true or false", value.Type().TypeName())
	}
	return holds, nil
}

// oneLine returns a message of CEL without line breaks, and without what may be a secret: CEL quotes values.
func oneLine(text string) string { return secrecy.Line(strings.Join(strings.Fields(text), " ")) }

var expressionForms = []Form{{
	Name: "cel-expression", What: "a CEL expression", Words: "CEL expression about `object`, on one line, that is true or false",
	Example: "object.status.readyReplicas >= 2", Pattern: `^.+$`, anyScript: true,
	check: func(value string) *Fault {
		expression, err := CompileExpression(value)
		switch {
		case err == nil && !expression.judges():
			return because("says nothing of the object", "compare a part of it, as in object.status.readyReplicas >= 2")
		case err != nil:
			return because("is no CEL expression: "+inASCII(err.Error()),
				"correct it; the object is `object`, as in object.status.readyReplicas >= 2")
		}
		return nil
	},
}}

// inASCII replaces what is not ASCII in a text, such as a part of an expression that a message quotes.
func inASCII(text string) string {
	return strings.Map(func(letter rune) rune {
		if letter < ' ' || letter > '~' {
			return '?'
		}
		return letter
	}, text)
}
