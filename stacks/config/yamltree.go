package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
)

const (
	maxDepth = 50      // deeper than any stack file
	maxExact = 1 << 53 // whole numbers up to here are exact for every reader of JSON

	// maxGrowth is the number of bytes by which expanded aliases may exceed ten times the file's size. Without a limit, a few
	// lines could expand to gigabytes.
	maxGrowth = 1 << 20
)

// parseJSON parses a section as the engine passes it, which is JSON, and so YAML, too. Values are taken as they are: only a key that is
// given twice is a problem. Of a text that is no JSON it returns an error.
func parseJSON(section, text string) (any, []*cluster.Problem, error) {
	var line bytes.Buffer // YAML reads white space in another way
	if err := json.Compact(&line, []byte(text)); err != nil {
		return nil, nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(line.Bytes(), &document); err != nil {
		return nil, nil, err
	}
	r := newReader(line.Bytes())
	r.asItIs = true
	tree, err := r.read(document.Content[0], place{key: section}, 0)
	return tree, r.found, err
}

// parseYAML parses a YAML document. It uses the same parser as Pulumi for stack files, because parsers differ: for others, "no" is a
// boolean. A text that this parser silently changes, or that other parsers refuse, is a problem.
func parseYAML(text []byte) (any, []*cluster.Problem, error) {
	if err := checkText(text); err != nil {
		return nil, nil, err
	}
	var document, another yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, withoutContent(err, text)
	}
	// Pulumi reads the first document only, and silently ignores the others.
	if err := decoder.Decode(&another); err == nil {
		return nil, nil, fmt.Errorf("line %d: begins another document; write everything in one", another.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, nil, withoutContent(err, text)
	}
	if line := tabs(text, &document); line > 0 {
		return nil, nil, fmt.Errorf("line %d: holds a tab; write spaces, or \\t in double quotes", line)
	}
	r := newReader(text)
	tree, err := r.read(document.Content[0], place{}, 0)
	return tree, r.found, err
}

// unknownAnchor matches the parser's only error, of those about a text's form, that repeats a part of the text.
var unknownAnchor = regexp.MustCompile(`^yaml: unknown anchor '(.*)' referenced$`)

// withoutContent returns an error of the parser without the content of the text: a password that begins with * is an alias to YAML.
func withoutContent(err error, text []byte) error {
	match := unknownAnchor.FindStringSubmatch(err.Error())
	if match == nil {
		return unreadable(err, text)
	}
	return fmt.Errorf("line %d: refers to an anchor that the file does not have; put text that begins with * in quotes",
		aliasLine(text, match[1], err.Error()))
}

var (
	conflictMark = regexp.MustCompile(`^(<<<<<<< |=======$|>>>>>>> )`)
	leadingTab   = regexp.MustCompile(`^ *\t`)
	tabRefused   = regexp.MustCompile(`cannot start any token|a tab character (that violates indentation|where an indentation)`)
)

// misread matches an error of the parser's grammar, whose line is one too low: it counts from 0.
var misread = regexp.MustCompile(`^line (\d+): (did not find expected (?:<|key|node|'-'|',').*)$`)

// unreadable returns why the parser reads nothing of a text. The parser's line is where the mapping or list that it cannot read begins, or
// where it gives up. The fault is above or below.
func unreadable(failure error, text []byte) error {
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		switch line = strings.TrimRight(line, "\r\n"); {
		case conflictMark.MatchString(line):
			return fmt.Errorf("line %d: is a mark of a conflict in Git; resolve it", number)
		case leadingTab.MatchString(line) && tabRefused.MatchString(failure.Error()):
			return fmt.Errorf("line %d: begins with a tab; write spaces", number)
		}
	}
	problem := strings.TrimPrefix(failure.Error(), "yaml: ")
	if match := misread.FindStringSubmatch(problem); match != nil {
		line, _ := strconv.Atoi(match[1]) // only digits match
		problem = fmt.Sprintf("line %d: %s", line+1, match[2])
	}
	return fmt.Errorf("%s; look near it, above and below, for a wrong indentation, and for a quote or a bracket that is not closed", problem)
}

// aliasLine returns the line of the alias that the parser fails at, which its error does not tell. It is the first line with such
// an alias where the text up to there causes the same error.
func aliasLine(text []byte, name, failure string) int {
	var lines, ends []int
	number, end := 0, 0
	for line := range bytes.Lines(text) {
		number++
		end += len(line)
		if bytes.Contains(line, []byte("*"+name)) {
			lines, ends = append(lines, number), append(ends, end)
		}
	}
	i := sort.Search(len(ends)-1, func(i int) bool {
		var err error
		for decoder := yaml.NewDecoder(bytes.NewReader(text[:ends[i]])); err == nil; {
			err = decoder.Decode(new(yaml.Node))
		}
		return err.Error() == failure
	})
	return lines[i]
}

// reader reads the nodes of a document.
type reader struct {
	asItIs   bool // values are handed on as they are
	found    []*cluster.Problem
	tagLines map[int][]rune      // lines that contain a !, by number
	budget   int                 // bytes that may still be read; the target of an alias counts each time
	open     map[*yaml.Node]bool // nodes that are being read
	reported map[*yaml.Node]bool // nodes with a problem, which aliases would repeat
}

func newReader(text []byte) *reader {
	return &reader{
		tagLines: tagLines(text),
		budget:   maxGrowth + 10*len(text),
		open:     map[*yaml.Node]bool{},
		reported: map[*yaml.Node]bool{},
	}
}

// place is the position of a node in the tree. Its path is built only for problems.
type place struct {
	parent *place // nil for the whole
	key    string
	index  int // in a list; then key is empty
}

func (p *place) path() string {
	if p.parent == nil {
		return p.key
	}
	if p.key == "" {
		return cluster.ItemPath(p.parent.path(), p.index)
	}
	return step(p.parent.path(), p.key)
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_:-]+$`)

// step returns the path of a key below a path.
func step(path, key string) string {
	if plainKey.MatchString(key) {
		return cluster.KeyPath(path, key)
	}
	return cluster.EntryPath(path, key)
}

// report adds a problem with a node, once.
func (r *reader) report(node *yaml.Node, at place, remedy, format string, args ...any) {
	if r.reported[node] {
		return
	}
	r.reported[node] = true
	problem := cluster.NewProblem(at.path(), remedy, format, args...)
	if !r.asItIs { // there are lines
		problem.Line = node.Line
	}
	r.found = append(r.found, problem)
}

// spend subtracts bytes from the budget, and returns an error if it is exceeded.
func (r *reader) spend(node *yaml.Node, bytes int) error {
	if r.budget -= bytes + 8; r.budget < 0 {
		return fmt.Errorf("line %d: the aliases up to here stand for far more than the file holds; write out what is needed", node.Line)
	}
	return nil
}

func (r *reader) read(node *yaml.Node, at place, depth int) (any, error) {
	if err := r.spend(node, 0); err != nil {
		return nil, err
	}
	if r.open[node] {
		return nil, fmt.Errorf("line %d: is part of what its alias stands for, so that it never ends; write it without the alias", node.Line)
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("line %d: is nested too deep; write at most %d levels", node.Line, maxDepth)
	}
	if tag := r.tag(node); tag != "" {
		r.report(node, at, "remove it, and put text in quotes", "has the tag %s", shownTag(at.path(), tag))
	}
	switch node.Kind {
	case yaml.AliasNode:
		return r.read(node.Alias, at, depth)
	case yaml.SequenceNode:
		r.open[node] = true
		defer delete(r.open, node)
		list := make([]item, len(node.Content))
		for i, below := range node.Content {
			value, err := r.read(below, place{parent: &at, index: i}, depth+1)
			if err != nil {
				return nil, err
			}
			list[i] = item{value: value, line: below.Line, node: resolved(below)}
		}
		return list, nil
	case yaml.MappingNode:
		r.open[node] = true
		defer delete(r.open, node)
		return r.mapping(node, at, depth)
	}
	return r.scalar(node, at)
}

// resolved returns the node, or the node that it is an alias of.
func resolved(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// mapping reads a mapping, including the mappings that the key << merges in. Its own keys have precedence.
func (r *reader) mapping(node *yaml.Node, at place, depth int) (*object, error) {
	o := newObject()
	var merge *yaml.Node
	for i := 0; i < len(node.Content); i += 2 {
		name, content := node.Content[i], node.Content[i+1]
		key, ok := r.key(name, at)
		if !ok {
			continue
		}
		below := place{parent: &at, key: key}
		if name.ShortTag() == "!!merge" {
			if merge != nil {
				r.report(name, at, "write one, with a list: <<: [*a, *b]", "has the key << twice")
				continue
			}
			merge = content
			continue
		}
		if _, known := o.values[key]; known {
			r.report(name, below, "keep one", "is given twice")
			continue
		}
		if err := r.spend(name, len(key)); err != nil {
			return nil, err
		}
		value, err := r.read(content, below, depth+1)
		if err != nil {
			return nil, err
		}
		o.add(key, item{value: value, line: name.Line, node: resolved(content)})
	}
	if merge == nil {
		return o, nil
	}
	return o, r.merge(o, merge, at, depth+1)
}

// merge adds the keys of a mapping, or of each mapping of a list, that the object does not have.
func (r *reader) merge(o *object, node *yaml.Node, at place, depth int) error {
	value, err := r.read(node, at, depth)
	if err != nil {
		return err
	}
	list, isList := value.([]item)
	if !isList {
		list = []item{{value: value}}
	}
	for _, one := range list {
		from, ok := one.value.(*object)
		if !ok {
			r.report(node, at, "name the anchor of one", "merges %s, and only mappings can be merged", kind(one.value))
			continue
		}
		for _, key := range from.keys {
			if _, known := o.values[key]; !known {
				o.add(key, from.values[key])
			}
		}
	}
	return nil
}

// key returns the text of a mapping's key.
func (r *reader) key(node *yaml.Node, at place) (string, bool) {
	if tag := r.tag(node); tag != "" {
		r.report(node, at, "remove it, and put text in quotes", "has a key with the tag %s", shownTag(at.path(), tag))
		return "", false
	}
	char, hidden := invisible(node.Value)
	switch tag := node.ShortTag(); {
	case node.Kind == yaml.AliasNode:
		r.report(node, at, "write the key itself", "has an alias for a key")
	case node.Kind != yaml.ScalarNode:
		r.report(node, at, "write text before the colon", "has a key that is a mapping or a list")
	case tag != "!!str" && tag != "!!merge":
		below := place{parent: &at, key: node.Value}
		r.report(node, below, "put it in quotes", "is a key that YAML does not read as text")
	case node.Value == "":
		r.report(node, at, "write its name before the colon", "has a key that is empty")
	case strings.Contains(node.Value, "\n"):
		r.report(node, at, "write it on one line", "has a key of several lines")
	case hidden:
		r.report(node, at, "remove it", "has a key that holds the character U+%04X, which is invisible", char)
	default:
		return node.Value, true
	}
	return "", false
}

// tag returns the explicit tag of a node, such as !!str; empty if it has none.
func (r *reader) tag(node *yaml.Node) string {
	if node.Style&yaml.TaggedStyle != 0 {
		return node.ShortTag()
	}
	// A single ! turns a number into text for other parsers. This parser ignores it and does not return it.
	line := r.tagLines[node.Line]
	start := line[min(max(node.Column-1, 0), len(line)):]
	if len(start) > 0 && start[0] == '&' {
		for len(start) > 0 && start[0] != ' ' {
			start = start[1:]
		}
		for len(start) > 0 && start[0] == ' ' {
			start = start[1:]
		}
	}
	if len(start) > 0 && start[0] == '!' {
		return "!"
	}
	return ""
}

// tagLines returns the lines of a text that contain a !, by number.
func tagLines(text []byte) map[int][]rune {
	lines := map[int][]rune{}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if bytes.IndexByte(line, '!') >= 0 {
			lines[number] = []rune(string(line))
		}
	}
	return lines
}

// scalar reads a value that is neither a mapping nor a list.
func (r *reader) scalar(node *yaml.Node, at place) (any, error) {
	if r.tag(node) != "" {
		return node.Value, nil
	}
	if err := r.spend(node, len(node.Value)); err != nil {
		return nil, err
	}
	switch node.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		return strings.EqualFold(node.Value, "true"), nil
	case "!!int", "!!float":
		return r.number(node, at), nil
	case "!!timestamp":
		// Pulumi would pass on another text than the written one.
		if path := at.path(); !isSecret(path) { // Load refuses every secret in plain text
			r.report(node, at, "put it in quotes", "%s is a date to YAML, and must be text", shownAt(path, node.Value))
		}
	}
	if r.asItIs {
		return node.Value, nil
	}
	if strings.Contains(node.Value, "\n") && strings.ContainsRune("\n\t", rune(node.Value[0])) {
		// Pulumi writes the text as a block and reads it again, and its parser drops or refuses such a beginning.
		r.report(node, at, "begin it with its first word", "is a text of several lines that begins with an empty line or a tab")
	}
	if char, hidden := invisible(node.Value); hidden {
		r.report(node, at, "remove it", "holds the character U+%04X, which is invisible", char)
	}
	return node.Value, nil
}

// number reads a number, which must be written in the form in which it is passed on. A number in another form is often meant as
// text or as another number.
func (r *reader) number(node *yaml.Node, at place) any {
	if r.asItIs || len(node.Value) <= 15 && isPlainWhole(node.Value) {
		return json.Number(node.Value)
	}
	read, ok := numberOf(node)
	if ok && read == node.Value {
		return json.Number(read)
	}
	path := at.path()
	shown := shownAt(path, node.Value)
	switch {
	case ok && mode.MatchString(path) && octal.MatchString(node.Value): // as everybody writes the mode of a file
		return json.Number(read)
	case isSecret(path):
		return node.Value // Load refuses every secret in plain text
	case !ok:
		r.report(node, at, "write a decimal number, or put it in quotes if it is text", "%s is not a number that can be handed on", shown)
		return json.Number("0")
	case shown == hidden:
		r.report(node, at, "put it in quotes if it is text", "%s is a number that is not handed on as it is written", shown)
		return json.Number(read)
	}
	meant := read
	if match := leadingZero.FindStringSubmatch(strings.ReplaceAll(node.Value, "_", "")); match != nil {
		meant = match[1] + match[2]
	}
	remedy := "did you mean " + meant + "? Put it in quotes if it is text"
	switch { // probably a version, of which the number is another
	case trailing.MatchString(node.Value) && shown == node.Value:
		remedy = fmt.Sprintf("write %q, in quotes, if it is text, or else %s", node.Value, read)
	case trailing.MatchString(node.Value):
		remedy = "write it in quotes if it is text, or else " + read
	}
	r.report(node, at, remedy, "%s is read as the number %s", shown, read)
	return json.Number(meant)
}

// leadingZero matches a whole number that people read as decimal and YAML reads as octal.
var leadingZero = regexp.MustCompile(`^(-?)\+?0+([1-9][0-9]*)$`)

// mode matches the path of a file's mode, and octal how people and YAML write one.
var (
	mode  = regexp.MustCompile(`\.(permissions|mode|defaultMode)$`)
	octal = regexp.MustCompile(`^0o?[0-7]{3,4}$`)
)

// trailing is a fraction whose last zeros the number does not have.
var trailing = regexp.MustCompile(`^[0-9]+[.][0-9]*[1-9]0+$`)

func isPlainWhole(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || digits[0] == '0' && text != "0" {
		return false
	}
	return strings.Trim(digits, "0123456789") == ""
}

// numberOf returns the number in JSON, as Pulumi writes it.
func numberOf(node *yaml.Node) (string, bool) {
	var value any
	if err := node.Decode(&value); err != nil {
		return "", false
	}
	switch v := value.(type) {
	case int:
		return strconv.Itoa(v), v >= -maxExact && v <= maxExact
	case float64:
		text, err := json.Marshal(v)
		return string(text), err == nil && math.Abs(v) <= maxExact
	}
	return "", false
}
