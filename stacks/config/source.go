package config

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/slipway-platform/slipway/cluster"
)

// Namespace is the Pulumi project's name, which its configuration keys begin with: "slipway:cluster".
const Namespace = "slipway"

// Source is the raw configuration of one stack, as the Pulumi engine hands it to a program.
type Source struct {
	Stack  string           // the stack's name
	Values map[string]Value // by full key, such as "slipway:cluster"; every key that is set

	// SecretsElsewhere is true for a stack file that secrets are set for when it is used: required ones may be missing.
	SecretsElsewhere bool
}

// Value is one raw value.
type Value struct {
	Text   string // a scalar as it is, anything else as JSON; empty if Sealed
	Secret bool   // the value, or any part of it, is encrypted in the stack file
	Sealed bool   // it is still encrypted, so that nothing but its presence is known
}

// Engine is what a program can ask the Pulumi engine about its configuration; *pulumi.Context is one.
type Engine interface {
	Stack() string
	GetConfig(key string) (string, bool)
	IsConfigSecret(key string) bool
}

// FromEngine reads the configuration of the running program. environment is the value of the environment variable
// PULUMI_CONFIG, in which the engine lists every key with its value, so that unknown keys are seen; where there is no
// engine (under mocks) it is empty, and only the keys of the model are looked up.
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
	source := Source{Stack: engine.Stack(), Values: map[string]Value{}}
	for key := range given {
		if text, set := engine.GetConfig(key); set {
			source.Values[key] = Value{Text: text, Secret: engine.IsConfigSecret(key)}
		}
	}
	return source, nil
}

// Keys lists the full keys of the model's top level, such as "slipway:cluster".
func Keys() []string {
	var keys []string
	for field := range cluster.Keys(reflect.TypeFor[cluster.Cluster]()) {
		keys = append(keys, Namespace+":"+keyOf(field))
	}
	return keys
}
