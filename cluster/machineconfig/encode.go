package machineconfig

import (
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
)

// unset are the paths of strings that Talos's types write even if they are empty. At other paths an empty string is a value, such as
// that of a label.
var unset = []string{"machine.type", "machine.token", "cluster.network.dnsDomain"}

// encode writes documents as one patch. It leaves out what is not set, so that the patch changes nothing else.
func encode(docs ...config.Document) (string, error) {
	texts := make([]string, 0, len(docs))
	for _, doc := range docs {
		wrapped, err := container.New(doc)
		if err != nil {
			return "", err
		}
		full, err := wrapped.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
		if err != nil {
			return "", err
		}
		var tree map[string]any
		if err := yaml.Unmarshal(full, &tree); err != nil {
			return "", err
		}
		prune("", tree)
		text, err := yaml.Marshal(tree)
		if err != nil {
			return "", err
		}
		texts = append(texts, string(text))
	}
	return strings.Join(texts, "---\n"), nil
}

// prune removes nulls, empty lists and the unset strings from a tree, and then the maps that have become empty.
func prune(path string, tree map[string]any) {
	for key, value := range tree {
		at := cluster.KeyPath(path, key)
		switch value := value.(type) {
		case nil:
			delete(tree, key)
		case string:
			if value == "" && slices.Contains(unset, at) {
				delete(tree, key)
			}
		case []any:
			if len(value) == 0 {
				delete(tree, key)
			}
		case map[string]any:
			prune(at, value)
			if len(value) == 0 {
				delete(tree, key)
			}
		}
	}
}
