package config

import (
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Lines finds the lines of a stack file that problems are about.
type Lines struct{ config *yaml.Node }

// ReadLines reads the text of a stack file. It takes any text: where it is no stack file, there are no lines to find.
func ReadLines(text []byte) Lines {
	var document yaml.Node
	if yaml.Unmarshal(text, &document) != nil || len(document.Content) == 0 {
		return Lines{}
	}
	_, config := child(document.Content[0], "config")
	return Lines{config: config}
}

// Find returns the line of the value at a problem's path, counted from 1. Where the path ends nowhere, because a key is
// missing, it is the line of what the key is missing from; 0 where there is nothing of it at all.
func (l Lines) Find(path string) int {
	if l.config == nil {
		return 0
	}
	steps := steps(path)
	if len(steps) == 0 {
		return 0
	}
	key, at := child(l.config, Namespace+":"+steps[0])
	if at == nil {
		key, at = child(l.config, steps[0])
	}
	if at == nil { // a key of another namespace is its own path
		key, at = child(l.config, path)
	}
	if at == nil {
		return 0
	}
	line := key.Line
	for _, step := range steps[1:] {
		key, at = child(at, step)
		if at == nil {
			break
		}
		line = key.Line
	}
	return line
}

// child returns the value of a mapping's key or of a list's index, and the node that it begins with.
func child(node *yaml.Node, step string) (begin, value *yaml.Node) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i], node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if index, err := strconv.Atoi(step); err == nil && index >= 0 && index < len(node.Content) {
			return node.Content[index], node.Content[index]
		}
	}
	return nil, nil
}

// steps takes a path apart: nodePools[0].labels["a.b/c"] is nodePools, 0, labels, a.b/c.
func steps(path string) []string {
	var steps []string
	for path != "" {
		switch {
		case path[0] == '.':
			path = path[1:]
		case strings.HasPrefix(path, `["`):
			quoted, err := strconv.QuotedPrefix(path[1:])
			if err != nil {
				return steps
			}
			key, err := strconv.Unquote(quoted)
			if err != nil {
				return steps
			}
			steps = append(steps, key)
			path = strings.TrimPrefix(path[1+len(quoted):], "]")
		case path[0] == '[':
			index, rest, _ := strings.Cut(path[1:], "]")
			steps = append(steps, index)
			path = rest
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			steps = append(steps, path[:end])
			path = path[end:]
		}
	}
	return steps
}
