package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// object is a JSON object that records the keys that were given twice. A map of encoding/json would keep the last value only.
type object struct {
	keys   []string // in the order given, each once
	values map[string]any
	twice  []string        // keys given twice, each once
	again  map[string]bool // the keys of twice
}

func newObject() *object { return &object{values: map[string]any{}} }

// parseTree parses one JSON value: an *object, []any, string, json.Number, bool or nil.
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
		list := []any{}
		for decoder.More() {
			item, err := readTree(decoder)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
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
		o.add(key, value)
	}
	_, err := decoder.Token()
	return o, err
}

// add sets a key. A key that is given twice keeps its first value.
func (o *object) add(key string, value any) {
	if _, known := o.values[key]; known {
		if !o.again[key] {
			if o.again == nil {
				o.again = map[string]bool{}
			}
			o.again[key] = true
			o.twice = append(o.twice, key)
		}
		return
	}
	o.keys = append(o.keys, key)
	o.values[key] = value
}

// MarshalJSON writes the object compactly, with its keys in the given order. A key that was given twice is written twice, so that
// the next reader finds it.
func (o *object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, key := range slices.Concat(o.keys, o.twice) {
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
	case []any:
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
