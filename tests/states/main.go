// Command states writes states of the stacks of a release without secrets, for tests/graph:
//
//	pulumi stack export --stack infra | go run ./tests/states > tests/graph/states/RELEASE/infra.json.gz
//
// It keeps what `make preview STATE=…` and the graph tests read. Every secret becomes an empty one, also one that was exported in plain
// text. What a run of the probe has printed for people, positions in the source and owners of fields are left out.
package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
)

// The values by which Pulumi marks a secret in a state.
const (
	signatureKey    = "4dabf18193072939515e22adb298388d"
	secretSignature = "1b47061264138c4ac30d75fd1eb44270"
)

func main() {
	if err := keep(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "states:", err)
		os.Exit(1)
	}
}

// keep reads what `pulumi stack export` has written, and writes what is kept of it.
func keep(from io.Reader, to io.Writer) error {
	var file struct {
		Version    int `json:"version"`
		Deployment struct {
			Manifest  map[string]any   `json:"manifest"`
			Resources []map[string]any `json:"resources"`
		} `json:"deployment"`
	}
	if err := json.NewDecoder(from).Decode(&file); err != nil {
		return fmt.Errorf("%w; give it what pulumi stack export writes", err)
	}
	for i, one := range file.Deployment.Resources {
		for _, key := range []string{"sourcePosition", "stackTrace", "created", "modified"} {
			delete(one, key)
		}
		if outputs, is := one["outputs"].(map[string]any); is && one["type"] == "command:local:Command" {
			outputs["stderr"] = ""
		}
		if one["type"] == "pulumi:pulumi:Stack" {
			delete(one, "outputs")
		}
		file.Deployment.Resources[i] = without(one, "managedFields").(map[string]any)
	}
	packed := gzip.NewWriter(to)
	if err := json.NewEncoder(packed).Encode(file); err != nil {
		return err
	}
	return packed.Close()
}

// without returns a value with its secrets emptied, and without the fields of these names.
func without(value any, names ...string) any {
	switch value := value.(type) {
	case map[string]any:
		if value[signatureKey] == secretSignature {
			return map[string]any{signatureKey: secretSignature, "ciphertext": ""}
		}
		for key, below := range value {
			if slices.Contains(names, key) {
				delete(value, key)
				continue
			}
			value[key] = without(below, names...)
		}
	case []any:
		for i, below := range value {
			value[i] = without(below, names...)
		}
	}
	return value
}
