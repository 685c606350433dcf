package apply

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/internal/crds"
)

const (
	definitionKind = "CustomResourceDefinition"
	definitionAPI  = "apiextensions.k8s.io/v1"
)

// manifest is what a source holds.
type manifest struct {
	source      crds.Source
	sha256      string
	definitions []*unstructured.Unstructured
	leftOut     map[string]int // by kind
}

// parse takes a manifest's definitions out of its documents. What else is in it is refused, or left out of a bundle.
func parse(source crds.Source, content []byte) (*manifest, error) {
	m := &manifest{source: source, leftOut: map[string]int{}}
	var problems []error
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", source.URL, number, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			problems = append(problems, fmt.Errorf("%s: document %d: is not a YAML mapping; is this a manifest? (%w)", source.URL, number, err))
			continue
		}
		if len(object.Object) == 0 {
			continue // comments, or nothing
		}
		problems = append(problems, m.take(number, object))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if len(m.definitions) == 0 {
		return nil, fmt.Errorf("%s: holds no %s; set the url of the project's manifest of definitions", source.URL, definitionKind)
	}
	return m, nil
}

func (m *manifest) take(number int, object *unstructured.Unstructured) error {
	kind := object.GetKind()
	switch {
	case kind != definitionKind && m.source.Bundle && kind != "":
		m.leftOut[kind]++
		return nil
	case kind != definitionKind:
		return fmt.Errorf("%s: document %d: is a %s named %q, and only definitions are applied; set the url of a manifest that holds nothing else",
			m.source.URL, number, orNothing(kind), object.GetName())
	case object.GetAPIVersion() != definitionAPI:
		return fmt.Errorf("%s: document %d: definition %s is of %s, and only %s is served; use a newer release",
			m.source.URL, number, object.GetName(), orNothing(object.GetAPIVersion()), definitionAPI)
	case object.GetName() == "":
		return fmt.Errorf("%s: document %d: the definition has no name", m.source.URL, number)
	}
	// What the API server keeps is not for the applier to state.
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	m.definitions = append(m.definitions, object)
	return nil
}

// unique finds definitions that come twice: the second would take the first one's fields over at every run.
func unique(manifests []*manifest) error {
	var problems []error
	from := map[string]string{}
	for _, m := range manifests {
		for _, definition := range m.definitions {
			name := definition.GetName()
			if first, twice := from[name]; twice {
				problems = append(problems, fmt.Errorf("definition %s: is in %s and in %s; skip one of them", name, first, m.source.Name))
			}
			from[name] = m.source.Name
		}
	}
	return errors.Join(problems...)
}

func orNothing(text string) string {
	if text == "" {
		return "thing without kind"
	}
	return text
}
