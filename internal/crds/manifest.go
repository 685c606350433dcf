package crds

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	crdKind = "CustomResourceDefinition"
	crdAPI  = "apiextensions.k8s.io/v1"
)

// manifest is the content of a source.
type manifest struct {
	source  Source
	sha256  string
	crds    []*unstructured.Unstructured
	leftOut map[string]int // by kind
}

// parse reads the CRDs of a manifest. Other objects are refused, or left out of a bundle.
func parse(source Source, content []byte) (*manifest, error) {
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
			continue // only comments, or empty
		}
		problems = append(problems, m.take(number, object))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if len(m.crds) == 0 {
		return nil, fmt.Errorf("%s: holds no %s; set the url of the project's manifest of CRDs", source.URL, crdKind)
	}
	return m, nil
}

func (m *manifest) take(number int, object *unstructured.Unstructured) error {
	kind := object.GetKind()
	switch {
	case kind != crdKind && m.source.Bundle && kind != "":
		m.leftOut[kind]++
		return nil
	case kind != crdKind:
		return fmt.Errorf("%s: document %d: is a %s named %q, and only CRDs are applied; set the url of a manifest that holds nothing else",
			m.source.URL, number, orUnknown(kind), object.GetName())
	case object.GetAPIVersion() != crdAPI:
		return fmt.Errorf("%s: document %d: CRD %s is of %s, and only %s is served; use a newer release",
			m.source.URL, number, object.GetName(), orUnknown(object.GetAPIVersion()), crdAPI)
	case object.GetName() == "":
		return fmt.Errorf("%s: document %d: the CRD has no name", m.source.URL, number)
	}
	// The API server sets these fields.
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	m.crds = append(m.crds, object)
	return nil
}

// unique refuses a CRD that two sources hold: each run would apply one and then the other.
func unique(manifests []*manifest) error {
	var problems []error
	from := map[string]string{}
	for _, m := range manifests {
		for _, crd := range m.crds {
			name := crd.GetName()
			if first, twice := from[name]; twice {
				problems = append(problems, fmt.Errorf("CRD %s: is in %s and in %s; skip one of them", name, first, m.source.Name))
			}
			from[name] = m.source.Name
		}
	}
	return errors.Join(problems...)
}

func orUnknown(text string) string { return cmp.Or(text, "object without kind") }
