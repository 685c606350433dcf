package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"gopkg.in/yaml.v3"
)

// object is a mapping that records the keys that were given twice. A map of encoding/json would keep the last value only.
type object struct {
	keys   []string // in the order given, each once
	values map[string]item
	twice  map[string]bool // keys given twice
}

// item is a value of a mapping or of a list.
type item struct {
	value any        // *object, []item, string, json.Number, bool or nil
	line  int        // line of the file where the value begins, with its key; 0 if it is not from a file
	node  *yaml.Node // where the value is in the file: the same node for all aliases of one; nil if it is not from a file
}

// MarshalJSON writes the value.
func (i item) MarshalJSON() ([]byte, error) { return json.Marshal(i.value) }

func newObject() *object { return &object{values: map[string]item{}} }

// parseTree parses one JSON value.
func parseTree(text string) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	tree, err := readTree(decoder)
	if err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("more than one value")
	}
	return tree, nil
}

func readTree(decoder *json.Decoder) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return readObject(decoder)
	case json.Delim('['):
		list := []item{}
		for decoder.More() {
			value, err := readTree(decoder)
			if err != nil {
				return nil, err
			}
			list = append(list, item{value: value})
		}
		_, err := decoder.Token()
		return list, err
	}
	return token, nil
}

func readObject(decoder *json.Decoder) (*object, error) {
	o := newObject()
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string) // the decoder accepts only a string as a key
		value, err := readTree(decoder)
		if err != nil {
			return nil, err
		}
		o.add(key, item{value: value})
	}
	_, err := decoder.Token()
	return o, err
}

// get returns the value of a key; nil if the object does not have it, or is nil.
func (o *object) get(key string) any {
	if o == nil {
		return nil
	}
	return o.values[key].value
}

// add sets a key. A key that is given twice keeps its first value.
func (o *object) add(key string, value item) {
	if _, known := o.values[key]; known {
		if o.twice == nil {
			o.twice = map[string]bool{}
		}
		o.twice[key] = true
		return
	}
	o.keys = append(o.keys, key)
	o.values[key] = value
}

// over returns the object with the keys of another one that it does not have. Mappings that both have are combined in the same way.
func (o *object) over(other *object) *object {
	all := &object{keys: slices.Clone(o.keys), values: maps.Clone(o.values), twice: o.twice}
	for _, key := range other.keys {
		own, both := all.values[key]
		upper, isObject := own.value.(*object)
		lower, otherIsObject := other.values[key].value.(*object)
		switch {
		case !both:
			all.add(key, other.values[key])
		case isObject && otherIsObject:
			own.value = upper.over(lower)
			all.values[key] = own
		}
	}
	return all
}

// MarshalJSON writes the object compactly, with its keys in the given order.
func (o *object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, key := range o.keys {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(o.values[key])
		if err != nil {
			return nil, err
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// kind returns a name for the kind of a value, for messages.
func kind(tree any) string {
	switch tree.(type) {
	case *object:
		return "a mapping"
	case []item:
		return "a list"
	case string:
		return "text"
	case json.Number:
		return "a number"
	case bool:
		return "a boolean"
	default:
		return "nothing"
	}
}
