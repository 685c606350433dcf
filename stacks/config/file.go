package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// fileKeys are the keys that Pulumi knows at the top of a stack file.
var fileKeys = []string{"config", "encryptedkey", "encryptionsalt", "environment", "secretsprovider"}

var fileForm = regexp.MustCompile(`^Pulumi\.([A-Za-z0-9._-]+)\.ya?ml$`)

// LoadFile loads a stack file, Pulumi.STACK.yaml, without Pulumi. Encrypted values are not decrypted: they count as
// set. Secrets may be missing, for they may be set only where the stack is used.
func LoadFile(path string) (*Stack, error) {
	source, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Load(source)
}

// ReadFile reads the raw configuration out of a stack file.
func ReadFile(path string) (Source, error) {
	if !fileForm.MatchString(filepath.Base(path)) {
		return Source{}, fmt.Errorf("%s: not a stack file's name; name it Pulumi.STACK.yaml", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Source{}, err
	}
	return ParseFile(path, text)
}

// ParseFile is ReadFile for a text that is read already. The stack's name is that of the file, Pulumi.STACK.yaml; a file
// with another name may hold a stack as well, and is taken for the stack of that name.
func ParseFile(path string, text []byte) (Source, error) {
	base := filepath.Base(path)
	stack := strings.TrimSuffix(base, filepath.Ext(base))
	if name := fileForm.FindStringSubmatch(base); name != nil {
		stack = name[1]
	}
	values, err := parseFile(text)
	if err != nil {
		return Source{}, fmt.Errorf("%s: %w", path, err)
	}
	return Source{Stack: stack, Values: values, SecretsElsewhere: true}, nil
}

// parseFile reads the values out of a stack file's text.
func parseFile(text []byte) (map[string]Value, error) {
	tree, err := parseYAML(text)
	if err != nil {
		return nil, err
	}
	top, ok := tree.(*object)
	if !ok {
		return nil, fmt.Errorf("is %s and must be a mapping; write its keys below the key config", kind(tree))
	}
	for _, key := range top.keys {
		if !slices.Contains(fileKeys, key) {
			return nil, fmt.Errorf("%s: is not a key of a stack file; %s", key, oneOf(key, fileKeys))
		}
	}
	config, ok := top.values["config"].(*object)
	if !ok {
		return nil, fmt.Errorf("config: is %s and must be a mapping; write the stack's keys below it", kind(top.values["config"]))
	}
	for _, key := range slices.Concat(top.twice, config.twice) {
		return nil, fmt.Errorf("%s: is given twice; keep one", key)
	}
	values := map[string]Value{}
	for _, key := range config.keys {
		full := key
		if !strings.Contains(key, ":") {
			full = Namespace + ":" + key // as Pulumi reads it
		}
		if _, known := values[full]; known {
			return nil, fmt.Errorf("%s: is given twice, with its namespace and without; keep one", full)
		}
		if values[full], err = fileValue(config.values[key]); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return values, nil
}

// fileValue turns a value of the file into what the engine would make of it.
func fileValue(tree any) (Value, error) {
	if sealed(tree) {
		return Value{Secret: true, Sealed: true}, nil
	}
	switch scalar := tree.(type) {
	case nil:
		return Value{}, nil
	case string:
		return Value{Text: scalar}, nil
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return Value{}, err
	}
	return Value{Text: string(text), Secret: holdsSealed(tree)}, nil
}

// sealed reports whether the tree is an encrypted value: a mapping of the one key "secure".
func sealed(tree any) bool {
	o, ok := tree.(*object)
	return ok && len(o.keys) == 1 && o.keys[0] == "secure"
}

// holdsSealed reports whether any part of the tree is encrypted.
func holdsSealed(tree any) bool {
	switch t := tree.(type) {
	case *object:
		if sealed(t) {
			return true
		}
		for _, value := range t.values {
			if holdsSealed(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(t, holdsSealed)
	}
	return false
}
