package config

import (
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Lines finds the line of a stack file that a problem is about.
type Lines struct {
	top    *yaml.Node                    // the whole file
	config *yaml.Node                    // the value of the key config
	keys   map[*yaml.Node]map[string]int // cache: keys of a mapping and their index
}

// maxMerges is the largest depth of nested merges: an alias within its own anchor would never end.
const maxMerges = 10

// ReadLines reads the text of a stack file. It accepts any text; if it is not a stack file, Find returns 0.
func ReadLines(text []byte) Lines {
	var document yaml.Node
	if yaml.Unmarshal(text, &document) != nil || len(document.Content) == 0 {
		return Lines{}
	}
	lines := Lines{top: document.Content[0], keys: map[*yaml.Node]map[string]int{}}
	_, lines.config = lines.child(lines.top, "config", maxMerges)
	return lines
}

// Find returns the line of the value at a problem's path, counted from 1. If a key of the path is missing, it returns the line of
// the mapping that lacks the key; 0 if no part of the path exists.
func (l Lines) Find(path string) int {
	line, _, _ := l.walk(path)
	return line
}

// walk follows a path as far as it exists. It returns the line where the last existing value begins, its node, and the remaining
// steps. All paths that lead to one value through aliases have the same node.
func (l Lines) walk(path string) (line int, node *yaml.Node, rest []string) {
	steps := steps(path)
	if len(steps) == 0 {
		return 0, nil, steps
	}
	begin, at := l.first(steps[0], path)
	if at == nil {
		return 0, nil, steps
	}
	line = begin.Line
	for i, step := range steps[1:] {
		below, value := l.child(at, step, maxMerges)
		if value == nil {
			return line, resolved(at), steps[1+i:]
		}
		line, at = below.Line, value
	}
	return line, resolved(at), nil
}

// first returns the value of a path's first key, and the node where it begins.
func (l Lines) first(key, path string) (begin, value *yaml.Node) {
	if l.config != nil {
		for _, full := range []string{Namespace + ":" + key, key, path} { // path alone is a key of another namespace
			if begin, value = l.child(l.config, full, maxMerges); value != nil {
				return begin, value
			}
		}
	}
	if l.top != nil && key == path { // one of Pulumi's own keys
		return l.child(l.top, key, maxMerges)
	}
	return nil, nil
}

// resolved returns the node, or the node that it is an alias of.
func resolved(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// child returns the value of a mapping's key or of a list's index, and the node where it begins.
func (l Lines) child(node *yaml.Node, step string, merges int) (begin, value *yaml.Node) {
	node = resolved(node)
	switch node.Kind {
	case yaml.MappingNode:
		keys := l.index(node)
		if i, known := keys[step]; known {
			return node.Content[i], node.Content[i+1]
		}
		if i, known := keys["<<"]; known && merges > 0 {
			return l.merged(node.Content[i+1], step, merges-1)
		}
	case yaml.SequenceNode:
		if index, err := strconv.Atoi(step); err == nil && index >= 0 && index < len(node.Content) {
			return node.Content[index], node.Content[index]
		}
	}
	return nil, nil
}

// merged does the same as child, in what the key << merges in: a mapping, or a list of mappings.
func (l Lines) merged(node *yaml.Node, step string, merges int) (begin, value *yaml.Node) {
	node = resolved(node)
	if node.Kind != yaml.SequenceNode {
		return l.child(node, step, merges)
	}
	for _, one := range node.Content {
		if one.Kind != yaml.SequenceNode {
			if begin, value = l.child(one, step, merges); value != nil {
				return begin, value
			}
		}
	}
	return nil, nil
}

// index returns the positions of a mapping's keys in its content; the first position of a key that is given twice.
func (l Lines) index(node *yaml.Node) map[string]int {
	if keys, known := l.keys[node]; known {
		return keys
	}
	keys := make(map[string]int, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		if _, known := keys[node.Content[i].Value]; !known {
			keys[node.Content[i].Value] = i
		}
	}
	l.keys[node] = keys
	return keys
}

// steps splits a path: nodePools[0].labels["a.b/c"] becomes nodePools, 0, labels, a.b/c.
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
