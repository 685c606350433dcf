package config

import (
	"strconv"
	"strings"
)

// Line returns the line of the file with the value at a problem's path, counted from 1. If a key of the path is missing, it returns the
// line of the mapping that lacks the key; 0 if no part of the path is in a file.
func (s Source) Line(path string) int {
	found, _ := s.walk(path)
	return found.line
}

// walk follows a path as far as it exists. It returns the last value that exists, and the remaining steps.
func (s Source) walk(path string) (found item, rest []string) {
	steps := steps(path)
	if len(steps) == 0 {
		return item{}, nil
	}
	found, exists := s.first(steps[0], path)
	for rest = steps[1:]; exists && len(rest) > 0; rest = rest[1:] {
		below, known := child(found.value, rest[0])
		if !known {
			break
		}
		found = below
	}
	return found, rest
}

// first returns the value of a path's first key.
func (s Source) first(key, path string) (item, bool) {
	if config, ok := s.file.get("config").(*object); ok {
		for _, full := range []string{Namespace + ":" + key, key, path} { // path alone is a key of another namespace
			if found, known := config.values[full]; known {
				return found, true
			}
		}
	}
	if s.file != nil && key == path { // one of Pulumi's own keys
		found, known := s.file.values[key]
		return found, known
	}
	return item{}, false
}

// child returns the value of a mapping's key or of a list's index.
func child(tree any, step string) (item, bool) {
	switch tree := tree.(type) {
	case *object:
		found, known := tree.values[step]
		return found, known
	case []item:
		if index, err := strconv.Atoi(step); err == nil && index >= 0 && index < len(tree) {
			return tree[index], true
		}
	}
	return item{}, false
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
