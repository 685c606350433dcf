package config

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/slipway-platform/slipway/cluster"
)

// sectionsOf returns the sections of the model that have each key: "" is the file itself, and nodePools[] any pool.
var sectionsOf = sync.OnceValue(func() map[string][]string {
	sections := map[string][]string{}
	var visit func(path string, section reflect.Type)
	visit = func(path string, section reflect.Type) {
		for field := range cluster.Keys(section) {
			key, below := keyOf(field), field.Type
			sections[key] = append(sections[key], path)
			at := cluster.KeyPath(path, key)
			for below.Kind() == reflect.Pointer || below.Kind() == reflect.Slice {
				if below.Kind() == reflect.Slice {
					at += "[]"
				}
				below = below.Elem()
			}
			if below.Kind() == reflect.Struct && !reflect.PointerTo(below).Implements(textType) {
				visit(at, below)
			}
		}
	}
	visit("", reflect.TypeFor[cluster.Cluster]())
	return sections
})

// maxPlaces is up to how many places are named: a key such as version is in most sections.
const maxPlaces = 3

// belongsTo returns where a key belongs that stands in another section; "" if no section has it, or too many have.
func belongsTo(path, key string) string {
	sections := slices.Clone(sectionsOf()[key])
	if len(sections) > 1 { // a section of the file's own is another thing
		sections = slices.DeleteFunc(sections, func(section string) bool { return section == "" })
	}
	if len(sections) > maxPlaces || slices.Contains(sections, path) {
		return ""
	}
	var places []string
	for _, section := range sections {
		places = append(places, strings.ReplaceAll(cluster.KeyPath(section, key), "[]", "[0]"))
	}
	return strings.Join(places, " or ")
}
