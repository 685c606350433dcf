package config

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"reflect"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/cluster"
)

// Namespace is the Pulumi project's name, the prefix of its configuration keys: "slipway:cluster".
const Namespace = "slipway"

// Source is the text of one stack's configuration: from its file, or as the Pulumi engine passes it to a program.
type Source struct {
	Stack  string           // the stack's name
	Values map[string]Value // by full key, such as "slipway:cluster"; every key that is set

	// Tree is the checkout: the stack files of a mesh's other clusters, and what Flux applies; nil means an empty checkout.
	Tree fs.FS

	// SecretsElsewhere means that required secrets may be missing, because they are set where the stack is used.
	SecretsElsewhere bool

	// OwnedLater means that files of components that Flux owns may be missing in the checkout, because they are still to be written.
	OwnedLater bool

	file    *object          // the whole file; nil if the values are the engine's
	written cluster.Problems // with how the file is written
}

// Value is one value as it is written.
type Value struct {
	Tree      any  // as a file has it, or text as the engine passes it: a scalar unchanged, any other value as JSON
	Secret    bool // the value, or any part of it, is encrypted in the stack file
	Encrypted bool // the value is not decrypted, so that only its presence is known
}

// Text returns the value as the engine passes it; "" if it is missing or encrypted.
func (v Value) Text() string {
	text, isText := v.Tree.(string)
	if v.Encrypted || isText || v.Tree == nil {
		return text
	}
	written, err := json.Marshal(v.Tree)
	if err != nil {
		panic("config: a value that was read cannot be written: " + err.Error())
	}
	return string(written)
}

// parsed returns the value of a section as a tree, and the problems with how it is written. A section in the engine's form is JSON. So is
// one that is text in a file, which the engine passes on unchanged.
func (v Value) parsed(section string) (any, []*cluster.Problem) {
	text, isText := v.Tree.(string)
	if !isText {
		return v.Tree, nil
	}
	tree, found, err := parseJSON(section, text)
	if err != nil {
		return text, nil // a scalar is passed without JSON's quotes
	}
	return tree, found
}

// Engine gives access to the configuration in the Pulumi engine; *pulumi.Context implements it.
type Engine interface {
	Stack() string
	GetConfig(key string) (string, bool)
	IsConfigSecret(key string) bool
}

// FromEngine reads the configuration of the running program. environment is the value of the environment variable PULUMI_CONFIG,
// in which the engine lists every key with its value, so that unknown keys are found. Without an engine (under mocks) it is empty,
// and only the keys of the model are read. The checkout is the folder in which the program runs.
func FromEngine(engine Engine, environment string) (Source, error) {
	given := map[string]string{}
	if environment != "" {
		if err := json.Unmarshal([]byte(environment), &given); err != nil {
			return Source{}, fmt.Errorf("PULUMI_CONFIG: not the list of keys that Pulumi passes to a program: %w", err)
		}
	}
	for _, key := range Keys() {
		given[key] = ""
	}
	source := Source{Stack: engine.Stack(), Values: map[string]Value{}, Tree: Checkout(".")}
	for key := range given {
		if text, set := engine.GetConfig(key); set {
			source.Values[key] = Value{Tree: text, Secret: engine.IsConfigSecret(key)}
		}
	}
	return source, nil
}

// Keys returns the full keys of the model's top level, such as "slipway:cluster".
func Keys() []string {
	return xslices.Map(keysOf(reflect.TypeFor[cluster.Cluster]()), func(key string) string { return Namespace + ":" + key })
}
