package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

var secretType = reflect.TypeFor[Secret]()

// Load decodes a stack's configuration strictly, fills in the defaults and validates the whole. The error joins
// everything that is wrong, each as a *Problem; the Stack is nil then.
func Load(source Source) (*Stack, error) {
	stack := &Stack{Name: source.Stack}
	d := newDecoder()

	meant := d.loadStrangers(source)
	model := reflect.ValueOf(stack).Elem()
	for field := range fieldsOf(model.Type()) {
		name := keyOf(field)
		value, given := source.Values[Namespace+":"+name]
		into := model.FieldByIndex(field.Index)
		switch {
		case field.Type == secretType:
			d.loadSecret(name, value, given, into)
		case given:
			d.loadSection(name, value, into)
		case isRequired(field):
			d.missing(name, meant[name])
		}
	}

	stack.applyDefaults()
	v := validator{Stack: stack, problems: d.problems, secretsElsewhere: source.SecretsElsewhere}
	v.validate()
	if err := v.err(); err != nil {
		return nil, err
	}
	return stack, nil
}

func (d *decoder) loadSection(name string, value Value, into reflect.Value) {
	switch {
	case value.Secret:
		// Its parts would be secret in every place they are used in, names and previews included.
		d.unreadable(name, "write it in plain text", "is encrypted, or a part of it is, and holds no secret")
		return
	case value.Text == "":
		d.unreadable(name, "give it a value, or remove the key", "has no value")
		return
	}
	tree, err := parseTree(value.Text)
	if err != nil {
		tree = value.Text // a scalar arrives as it is, without JSON's quotes
	}
	d.decode(name, tree, into)
}

func (d *decoder) loadSecret(name string, value Value, given bool, into reflect.Value) {
	switch {
	case !given:
	case !value.Secret:
		d.unreadable(name, fmt.Sprintf("revoke it, and set a new one with: pulumi config set --secret %s:%s", Namespace, name),
			"is a secret in plain text")
	case value.Sealed:
		into.Set(reflect.ValueOf(Secret{sealed: true}))
	case value.Text == "":
		d.unreadable(name, "give it a value, or remove the key", "is empty")
	default:
		into.Set(reflect.ValueOf(NewSecret(value.Text)))
	}
}

// loadStrangers reports every key that is neither the model's nor Pulumi's own. It returns the names that were
// probably meant by them.
func (d *decoder) loadStrangers(source Source) map[string]bool {
	var own, names []string
	for _, key := range slices.Sorted(maps.Keys(source.Values)) {
		switch namespace, name, _ := strings.Cut(key, ":"); namespace {
		case Namespace:
			own = append(own, name)
		case "pulumi":
		default:
			d.add(key, "remove it: providers are configured from the keys of "+Namespace, "is not a key of "+Namespace)
		}
	}
	for _, key := range Keys() {
		names = append(names, strings.TrimPrefix(key, Namespace+":"))
	}
	return d.strangers("", own, names)
}
