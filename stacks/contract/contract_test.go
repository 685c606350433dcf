package contract

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

func TestOutputs_ListEveryNamedConstant(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "contract.go", nil, 0)
	require.NoError(t, err)
	var declared []string
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			literal, ok := value.Values[0].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING || value.Type != nil {
				continue
			}
			name, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			declared = append(declared, name)
		}
	}
	require.NotEmpty(t, declared)

	var listed []string
	for _, output := range Outputs() {
		listed = append(listed, output.Name)
	}
	assert.Subset(t, listed, declared)
}

func TestDeclared_AnAddressThatIsNotSetIsNoOutput(t *testing.T) {
	outputs := Declared(cluster.New("home"))
	assert.NotContains(t, outputs, "meshIp")
	assert.Empty(t, outputs["clusterVip"])
}

func TestOutputs_AreFlatScalarsWithPlainNames(t *testing.T) {
	form := regexp.MustCompile(`^[a-z][A-Za-z]+6?$`)
	seen := map[string]bool{}
	for _, output := range Outputs() {
		assert.Regexp(t, form, output.Name)
		assert.False(t, seen[output.Name], output.Name)
		seen[output.Name] = true
	}
}

func TestOutputs_KeepEveryClusterCredentialSecret(t *testing.T) {
	var secret []string
	for _, output := range Outputs() {
		if output.Secret {
			secret = append(secret, output.Name)
		}
	}
	assert.Equal(t, []string{Kubeconfig, Talosconfig}, secret)
}
