package cluster

import (
	"encoding"
	"fmt"
	"iter"
	"reflect"
	"strconv"
)

// Choice is a text with a fixed list of allowed values. Case matters.
type Choice interface {
	// Choices returns the allowed values. They do not depend on the receiver.
	Choices() []string
}

// Keys yields the fields of a section that are keys of the file, including those of embedded structs.
func Keys(section reflect.Type) iter.Seq[reflect.StructField] {
	return func(yield func(reflect.StructField) bool) {
		for _, field := range reflect.VisibleFields(section) {
			if key := field.Tag.Get("json"); key != "" && key != "-" && !yield(field) {
				return
			}
		}
	}
}

// SetDefaults sets the default of every key of a section, including the sections below it. section is a pointer to a struct. Call
// it for each new item of a list and each new optional section.
func SetDefaults(section any) { setDefaults(reflect.ValueOf(section).Elem()) }

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

func setDefaults(section reflect.Value) {
	for field := range Keys(section.Type()) {
		value := section.FieldByIndex(field.Index)
		if text, given := field.Tag.Lookup("default"); given {
			if err := setText(value, text); err != nil {
				panic(fmt.Sprintf("cluster: default of %s.%s: %v", section.Type(), field.Name, err))
			}
		} else if isSection(field.Type) {
			setDefaults(value)
		}
	}
}

// isSection reports whether a type is a struct whose fields are keys.
func isSection(of reflect.Type) bool {
	if of.Kind() != reflect.Struct || reflect.PointerTo(of).Implements(textUnmarshaler) {
		return false
	}
	for range Keys(of) {
		return true
	}
	return false
}

// setText parses the text into a value.
func setText(value reflect.Value, text string) error {
	if reader, ok := value.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return reader.UnmarshalText([]byte(text))
	}
	switch value.Kind() {
	case reflect.String:
		value.SetString(text)
	case reflect.Bool:
		on, err := strconv.ParseBool(text)
		value.SetBool(on)
		return err
	case reflect.Int:
		number, err := strconv.Atoi(text)
		value.SetInt(int64(number))
		return err
	default:
		return fmt.Errorf("a %s has no default in a tag", value.Type())
	}
	return nil
}
