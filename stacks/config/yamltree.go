package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"gopkg.in/yaml.v3"
)

// maxDepth is deeper than any stack file; an alias within its own anchor would never end.
const maxDepth = 50

// parseYAML reads a YAML document into the same tree as parseTree. It uses the parser that Pulumi reads stack files
// with, because parsers differ: to others, "no" is a boolean.
func parseYAML(text []byte) (any, error) {
	var document, another yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	// Pulumi reads the first document only, and says nothing of what it leaves unread.
	if err := decoder.Decode(&another); err == nil {
		return nil, fmt.Errorf("line %d: begins another document; write everything in one", another.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return yamlTree(document.Content[0], 0)
}

func yamlTree(node *yaml.Node, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("line %d: is nested too deep; write it without aliases", node.Line)
	}
	switch node.Kind {
	case yaml.AliasNode:
		return yamlTree(node.Alias, depth+1)
	case yaml.SequenceNode:
		list := make([]any, len(node.Content))
		for i, item := range node.Content {
			var err error
			if list[i], err = yamlTree(item, depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.MappingNode:
		return yamlMapping(node, depth)
	}
	return yamlScalar(node)
}

// yamlMapping reads a mapping, what it merges in with the key << included: its own keys count before those.
func yamlMapping(node *yaml.Node, depth int) (*object, error) {
	o := &object{values: map[string]any{}}
	var merged []any
	for i := 0; i < len(node.Content); i += 2 {
		value, err := yamlTree(node.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		switch list, isList := value.([]any); {
		case node.Content[i].ShortTag() != "!!merge":
			o.add(node.Content[i].Value, value)
		case isList:
			merged = append(merged, list...)
		default:
			merged = append(merged, value)
		}
	}
	for _, one := range merged {
		from, ok := one.(*object)
		if !ok {
			return nil, fmt.Errorf("line %d: merges %s, and only mappings can be merged; name the anchor of one", node.Line, kind(one))
		}
		for _, key := range from.keys {
			if _, known := o.values[key]; !known {
				o.add(key, from.values[key])
			}
		}
	}
	return o, nil
}

// yamlScalar reads what is neither a mapping nor a list.
func yamlScalar(node *yaml.Node) (any, error) {
	switch node.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		var value bool
		err := node.Decode(&value)
		return value, err
	case "!!int":
		var value int64
		err := node.Decode(&value)
		return json.Number(strconv.FormatInt(value, 10)), err
	case "!!float":
		var value float64
		if err := node.Decode(&value); err != nil {
			return nil, err
		}
		number, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("line %d: %s is not a number that can be used; write another", node.Line, node.Value)
		}
		return json.Number(number), nil
	case "!!timestamp", "!!binary":
		// Pulumi would hand on something else than what stands there.
		return nil, fmt.Errorf("line %d: %s is a date or binary to YAML, and must be text; put it in quotes", node.Line, node.Value)
	}
	return node.Value, nil
}
