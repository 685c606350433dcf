package config

import (
	"encoding/json"
	"fmt"
	"strconv"

	"gopkg.in/yaml.v3"
)

// maxDepth is deeper than any stack file; an alias within its own anchor would never end.
const maxDepth = 50

// parseYAML reads a YAML document into the same tree as parseTree. It uses the parser that Pulumi reads stack files
// with, because parsers differ: to others, "no" is a boolean.
func parseYAML(text []byte) (any, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	if len(document.Content) == 0 {
		return nil, nil
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
		o := &object{values: map[string]any{}}
		for i := 0; i < len(node.Content); i += 2 {
			value, err := yamlTree(node.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			o.add(node.Content[i].Value, value)
		}
		return o, nil
	}
	return yamlScalar(node)
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
	}
	return node.Value, nil
}
