package config

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"gopkg.in/yaml.v3"
)

// object is a mapping. The order of its keys is the given one.
type object struct {
	keys   []string // each once
	values map[string]item
}

// item is a value of a mapping or of a list.
type item struct {
	value any        // *object, []item, string, json.Number, bool or nil
	line  int        // line of the text where the value begins, with its key; 0 if it is in none
	node  *yaml.Node // where the value is in the text: the same node for all aliases of one; nil if it is in none
}

// MarshalJSON writes the value.
func (i item) MarshalJSON() ([]byte, error) { return json.Marshal(i.value) }

func newObject() *object { return &object{values: map[string]item{}} }

// get returns the value of a key; nil if the object does not have it, or is nil.
func (o *object) get(key string) any {
	if o == nil {
		return nil
	}
	return o.values[key].value
}

// add adds a key that the object does not have.
func (o *object) add(key string, value item) {
	o.keys = append(o.keys, key)
	o.values[key] = value
}

// over returns the object with the keys of another object that it lacks. Mappings that both have are combined in the same way. Either
// may be nil.
func (o *object) over(other *object) *object {
	switch {
	case o == nil:
		return other
	case other == nil:
		return o
	}
	all := &object{keys: slices.Clone(o.keys), values: maps.Clone(o.values)}
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
