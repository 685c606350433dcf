package machineconfig

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
)

// maxPatchBytes is the largest size of one patch. Talos names no limit, but the YAML parser's time grows with the square of the
// number of keys in one mapping: 64 KiB take seconds, 1 MiB takes minutes.
const maxPatchBytes = 64 << 10

// refusal is a reason why a patch cannot be used. It holds no value of the patch.
type refusal struct{ problem, remedy string }

// Error returns the problem.
func (r *refusal) Error() string { return r.problem }

const (
	mergePatchRemedy = "write the part of the machine configuration that the patch sets, as a strategic merge patch"
	referenceRemedy  = "see Talos's configuration reference"
)

// The refusals. Talos's machinery panics, or reports success, for some of them.
var (
	errEmptyPatch = &refusal{"is empty", removeIt}
	errLargePatch = &refusal{
		fmt.Sprintf("is larger than %d KiB", maxPatchBytes>>10), "write only the part of the machine configuration that the patch sets",
	}
	errNotYAML    = &refusal{"is not YAML", mergePatchRemedy}
	errNotMapping = &refusal{"is not a mapping", mergePatchRemedy}
	errJSONPatch  = &refusal{
		"is a JSON patch (RFC 6902), which Talos does not apply to a configuration of several documents", mergePatchRemedy,
	}
	errAbsentDocument = &refusal{"deletes a document that the configuration does not have", removeIt}
	errAbsentPart     = &refusal{"deletes a part that the configuration does not have", removeIt}
	errNoVersion      = &refusal{"has a kind and no apiVersion, so that Talos leaves it out", "add apiVersion: v1alpha1"}
	errUnknownKind    = &refusal{"has a document of an apiVersion and kind that Talos does not know", referenceRemedy}
	errPanic          = &refusal{"makes Talos's machinery panic", referenceRemedy}
)

// errNotRegistered is machinery's error for a kind that it does not know. Machinery does not export it.
var errNotRegistered = func() error {
	_, err := configloader.NewFromBytes([]byte("apiVersion: v1alpha1\nkind: Unknown\n"))
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}()

// guarded runs code of Talos's machinery, which panics on some patches. A panic becomes errPanic, without its text: it may quote
// a value of the patch.
func guarded[T any](call func() (T, error)) (result T, err error) {
	defer func() {
		if recover() != nil {
			err = errPanic
		}
	}()
	return call()
}

// loadPatch reads a strategic merge patch.
func loadPatch(text string) (configpatcher.StrategicMergePatch, error) {
	if len(text) > maxPatchBytes {
		return nil, errLargePatch
	}
	trees, err := yamlDocuments(text)
	if err != nil {
		return nil, errNotYAML
	}
	empty := true
	for _, tree := range trees {
		switch tree := tree.(type) {
		case nil:
		case map[string]any:
			if isOperation(tree) {
				return nil, errJSONPatch
			}
			if tree["kind"] != nil && tree["apiVersion"] == nil {
				return nil, errNoVersion
			}
			if err := parsedLater(tree); err != nil {
				return nil, err
			}
			empty = empty && len(tree) == 0
		case []any:
			if len(tree) > 0 && !slices.ContainsFunc(tree, func(item any) bool { return !isOperation(item) }) {
				return nil, errJSONPatch
			}
			return nil, errNotMapping
		default:
			return nil, errNotMapping
		}
	}
	if empty {
		return nil, errEmptyPatch
	}
	provider, err := guarded(func() (config.Provider, error) {
		return configloader.NewFromBytes([]byte(text), configloader.WithAllowPatchDelete())
	})
	switch {
	case errors.Is(err, configloader.ErrNoConfig):
		return nil, errEmptyPatch
	case errors.Is(err, errNotRegistered):
		return nil, errUnknownKind
	case err != nil:
		return nil, err
	}
	return configpatcher.NewStrategicMergePatch(provider), nil
}

// isOperation reports whether a value has the form of an operation of RFC 6902.
func isOperation(value any) bool {
	tree, _ := value.(map[string]any)
	_, op := tree["op"]
	_, path := tree["path"]
	return op && path
}

// applyPatch applies one patch. Machinery keeps the deletion of an absent document as if it were a document, and panics when the
// configuration is used: this is an error here.
func applyPatch(full config.Provider, patch configpatcher.StrategicMergePatch) (config.Provider, error) {
	patched, err := guarded(func() (config.Provider, error) {
		output, err := configpatcher.Apply(configpatcher.WithConfig(full), []configpatcher.Patch{patch})
		if err != nil {
			return nil, err
		}
		return output.Config()
	})
	switch {
	case errors.Is(err, configloader.ErrLookupFailed):
		return nil, errAbsentPart
	case err != nil:
		return nil, err
	}
	for _, doc := range patched.Documents() {
		if _, deletes := doc.(configloader.Selector); deletes {
			return nil, errAbsentDocument
		}
	}
	return patched, nil
}

// yamlDocuments reads all documents of a text. The keys of its mappings become strings.
func yamlDocuments(text string) ([]any, error) {
	return guarded(func() ([]any, error) {
		var trees []any
		decoder := yaml.NewDecoder(strings.NewReader(text))
		for {
			var tree any
			if err := decoder.Decode(&tree); errors.Is(err, io.EOF) {
				return trees, nil
			} else if err != nil {
				return nil, err
			}
			trees = append(trees, withStringKeys(tree))
		}
	})
}

func withStringKeys(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			value[key] = withStringKeys(child)
		}
		return value
	case map[any]any:
		tree := make(map[string]any, len(value))
		for key, child := range value {
			tree[fmt.Sprint(key)] = withStringKeys(child)
		}
		return tree
	case []any:
		for i, child := range value {
			value[i] = withStringKeys(child)
		}
		return value
	}
	return value
}

// quotation is text between quotes or backquotes in an error.
var quotation = regexp.MustCompile("`[^`]*`|\"(?:[^\"\\\\]|\\\\.)*\"|'[^']*'")

// unknownKeys begins the part of an error that lists keys which Talos does not know, as YAML.
const unknownKeys = "unknown keys found during decoding:\n"

// withoutValues is an error of Talos's machinery in one line, without any value of the patch that caused it: a value may be a
// secret that was written to the wrong place. The keys of the patch stay.
func withoutValues(err error, patch string) string {
	text := err.Error()
	if _, listed, found := strings.Cut(text, unknownKeys); found {
		if trees, err := yamlDocuments(listed); err == nil && len(trees) == 1 {
			return "has keys that Talos does not know: " + strings.Join(slices.Sorted(slices.Values(leaves("", trees[0]))), ", ")
		}
		return "has keys that Talos does not know"
	}
	keys, values := map[string]bool{}, map[string]bool{}
	trees, unreadable := yamlDocuments(patch)
	if unreadable != nil {
		return "is refused by Talos"
	}
	for _, tree := range trees {
		collect(tree, keys, values)
	}
	text = quotation.ReplaceAllStringFunc(text, func(quoted string) string {
		for _, key := range strings.Split(quoted[1:len(quoted)-1], ".") {
			if !keys[key] || values[key] {
				return "…"
			}
		}
		return quoted
	})
	longestFirst := slices.SortedFunc(maps.Keys(values), func(a, b string) int { return len(b) - len(a) })
	for _, value := range longestFirst {
		text = withoutWord(text, value)
	}
	return "is refused by Talos: " + strings.Join(strings.Fields(text), " ")
}

// withoutWord replaces a value by an ellipsis. A short one is replaced only where it is a word of its own.
func withoutWord(text, value string) string {
	const short = 6
	var result strings.Builder
	for {
		before, after, found := strings.Cut(text, value)
		if !found {
			return result.String() + text
		}
		result.WriteString(before)
		if len(value) < short && (endsInWord(before) || beginsWithWord(after)) {
			result.WriteString(value)
		} else {
			result.WriteString("…")
		}
		text = after
	}
}

func endsInWord(text string) bool {
	return text != "" && isWord(rune(text[len(text)-1]))
}

func beginsWithWord(text string) bool {
	return text != "" && isWord(rune(text[0]))
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// collect adds the keys of a tree to keys, and its values to values, each line of a text by itself.
func collect(value any, keys, values map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			keys[key] = true
			if key != "$patch" {
				collect(child, keys, values)
			}
		}
	case []any:
		for _, child := range value {
			collect(child, keys, values)
		}
	case nil, bool:
	default:
		for line := range strings.Lines(fmt.Sprint(value)) {
			if line = strings.TrimSpace(line); len(line) > 2 { // what is shorter says nothing, and is part of most words
				values[line] = true
			}
		}
	}
}

// leaves lists the dotted paths of a tree's values.
func leaves(path string, tree any) []string {
	var paths []string
	switch tree := tree.(type) {
	case map[string]any:
		for key, value := range tree {
			paths = append(paths, leaves(cluster.KeyPath(path, key), value)...)
		}
	case []any:
		for i, item := range tree {
			paths = append(paths, leaves(cluster.ItemPath(path, i), item)...)
		}
	}
	if paths == nil {
		paths = []string{path}
	}
	return paths
}
