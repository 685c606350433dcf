package config

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
)

// Explain returns a stack file with all keys of the stack's file, and with all defaults. It leaves out secrets, what Git
// declares of a component that an engine owns, and the Proxmox node of each machine that is not pinned. With the secrets, the text loads to
// the same cluster.
func Explain(source Source, c *cluster.Cluster) ([]byte, error) {
	e := explanation{out: map[string]bool{}}
	for _, release := range c.Releases() {
		for key := range inGit {
			e.out[release.Key+"."+key] = release.Owner.IsEngine()
		}
	}
	keys := &yaml.Node{Kind: yaml.MappingNode}
	for _, key := range slices.Sorted(maps.Keys(source.Values)) {
		if value := source.Values[key]; !strings.HasPrefix(key, Namespace+":") && !value.Secret {
			written, err := json.Marshal(value.Tree)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			add(keys, key, fromJSON(written))
		}
	}
	model := reflect.ValueOf(c).Elem()
	for field := range cluster.Keys(model.Type()) {
		add(keys, Namespace+":"+keyOf(field), e.value(keyOf(field), field.Tag, model.FieldByIndex(field.Index)))
	}
	file := &yaml.Node{Kind: yaml.MappingNode}
	add(file, "config", keys)
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	err := encoder.Encode(file)
	return text.Bytes(), err
}

// add adds a key to a mapping, unless it has no value.
func add(mapping *yaml.Node, key string, value *yaml.Node) {
	if value != nil {
		mapping.Content = append(mapping.Content, text(key), value)
	}
}

func text(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

// explanation writes the model as YAML.
type explanation struct {
	out map[string]bool // paths that are left out
}

// value returns the value of a key; nil if it is not set, or is left out.
func (e explanation) value(path string, tag reflect.StructTag, value reflect.Value) *yaml.Node {
	switch of := value.Type(); {
	case e.out[path], of == secretType:
		return nil
	case of == patchType, of == valuesType:
		return fromJSON(value.Bytes())
	case of.Kind() == reflect.Pointer:
		return e.pointer(path, tag, value)
	case of.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return fromText(value)
	case of.Kind() == reflect.Struct:
		return e.section(path, value)
	case of.Kind() == reflect.Slice:
		return e.list(path, tag, value)
	case of.Kind() == reflect.Map:
		return e.mapping(path, tag, value)
	case of.Kind() == reflect.Bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(value.Bool())}
	case of.Kind() == reflect.Int:
		if least, _, _ := strings.Cut(tag.Get("range"), "-"); value.IsZero() && least != "0" {
			return nil
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: fmt.Sprint(value.Int())}
	case value.IsZero():
		return nil
	case of == reflect.TypeFor[cluster.MAC]():
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value.String(), Style: yaml.DoubleQuotedStyle}
	}
	return text(value.String())
}

func fromText(value reflect.Value) *yaml.Node {
	written, err := value.Interface().(encoding.TextMarshaler).MarshalText()
	if err != nil || value.IsZero() {
		return nil
	}
	return text(string(written))
}

// fromJSON returns JSON as YAML in the usual style; nil if it is empty.
func fromJSON(written []byte) *yaml.Node {
	var document yaml.Node
	if yaml.Unmarshal(written, &document) != nil || len(document.Content) == 0 {
		return nil
	}
	unstyle(document.Content[0])
	return document.Content[0]
}

func unstyle(node *yaml.Node) {
	if node.Kind == yaml.ScalarNode || len(node.Content) > 0 {
		node.Style = 0
	}
	for _, below := range node.Content {
		unstyle(below)
	}
}

// pointer returns an optional value. A section that is given without any key is something else than none.
func (e explanation) pointer(path string, tag reflect.StructTag, value reflect.Value) *yaml.Node {
	if value.IsNil() {
		return nil
	}
	node := e.value(path, tag, value.Elem())
	if node == nil && value.Elem().Kind() == reflect.Struct {
		node = &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	}
	return node
}

func (e explanation) section(path string, section reflect.Value) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	machine, isMachine := section.Interface().(cluster.Node)
	for field := range cluster.Keys(section.Type()) {
		value := section.FieldByIndex(field.Index)
		if isMachine && field.Name == "Host" {
			if !machine.Pinned() {
				continue
			}
			value = reflect.ValueOf(machine.Home())
		}
		add(node, keyOf(field), e.value(cluster.KeyPath(path, keyOf(field)), field.Tag, value))
	}
	if len(node.Content) == 0 {
		return nil
	}
	return node
}

func (e explanation) list(path string, tag reflect.StructTag, list reflect.Value) *yaml.Node {
	if list.Len() == 0 {
		return nil
	}
	node := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range list.Len() {
		node.Content = append(node.Content, e.value(cluster.ItemPath(path, i), tag, list.Index(i)))
	}
	return node
}

func (e explanation) mapping(path string, tag reflect.StructTag, mapping reflect.Value) *yaml.Node {
	if mapping.Len() == 0 {
		return nil
	}
	values := map[string]reflect.Value{}
	for key, value := range mapping.Seq2() {
		values[key.String()] = value
	}
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value := e.value(cluster.EntryPath(path, key), tag, values[key])
		if value == nil { // the value of a label may be empty
			value = text("")
		}
		add(node, key, value)
	}
	return node
}
