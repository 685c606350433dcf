package plugins

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// The SDK that the program is compiled with, and the one of the plugin that it asks for.
const (
	programs = "github.com/muhlba91/pulumi-proxmoxve/sdk/v6"
	plugins  = "github.com/muhlba91/pulumi-proxmoxve/sdk/v7"
)

// field is an input or output of a type.
type field struct {
	Type       string // of Go: a pointer is optional
	Deprecated string // what to use instead; "" if it is not deprecated
}

// sdk is what the sources of a package of an SDK say.
type sdk struct {
	Types  map[string]map[string]field // by the name in Go, and by the name in Pulumi
	Tokens []string                    // of its resources
}

// moduleFolder returns the folder with the sources of a module that go.mod requires, and its version.
func moduleFolder(module string) (folder, version string, err error) {
	out, err := exec.Command("go", "mod", "download", "-json", module).Output()
	if err != nil {
		return "", "", fmt.Errorf("go mod download %s: %w: %s", module, err, out)
	}
	var found struct{ Dir, Version string }
	err = json.Unmarshal(out, &found)
	return found.Dir, found.Version, err
}

// readSDK reads a package of an SDK, such as vm; "" is the package of the provider.
func readSDK(module, name string) (sdk, error) {
	read := sdk{Types: map[string]map[string]field{}}
	folder, _, err := moduleFolder(module)
	if err != nil {
		return read, err
	}
	paths, err := filepath.Glob(filepath.Join(folder, "go", "proxmoxve", name, "*.go"))
	if err != nil {
		return read, err
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return read, err
		}
		ast.Inspect(file, read.add)
	}
	return read, nil
}

// add notes the structs and tokens in the sources.
func (s *sdk) add(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.TypeSpec:
		if list, isStruct := node.Type.(*ast.StructType); isStruct {
			s.Types[node.Name.Name] = fields(list)
		}
	case *ast.CallExpr:
		if called, isMethod := node.Fun.(*ast.SelectorExpr); isMethod && called.Sel.Name == "RegisterResource" {
			if text, isText := node.Args[0].(*ast.BasicLit); isText {
				token, _ := strconv.Unquote(text.Value)
				s.Tokens = append(s.Tokens, token)
			}
		}
	}
	return true
}

// fields returns the fields of a struct that have a name in Pulumi.
func fields(list *ast.StructType) map[string]field {
	found := map[string]field{}
	for _, one := range list.Fields.List {
		if one.Tag == nil {
			continue
		}
		tag, _ := strconv.Unquote(one.Tag.Value)
		name := reflect.StructTag(tag).Get("pulumi")
		if name == "" {
			continue
		}
		_, deprecated, _ := strings.Cut(one.Doc.Text(), "Deprecated: ")
		found[name] = field{Type: types.ExprString(one.Type), Deprecated: deprecated}
	}
	return found
}
