package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// schema is the part of the JSON Schema of the stack files that has the keys.
type schema struct {
	Ref         string            `json:"$ref"`
	Properties  map[string]schema `json:"properties"`
	Items       *schema           `json:"items"`
	Additional  json.RawMessage   `json:"additionalProperties"`
	AnyOf       []schema          `json:"anyOf"`
	OneOf       []schema          `json:"oneOf"`
	Definitions map[string]schema `json:"definitions"`
}

var sections = sync.OnceValues(func() (map[string]schema, error) {
	text, err := os.ReadFile(filepath.Join(repository, "stacks", "config", "schema.json"))
	if err != nil {
		return nil, err
	}
	var whole schema
	err = json.Unmarshal(text, &whole)
	return whole.Definitions, err
})

// below returns the schema of a key, or false.
func (s schema) below(key string) (schema, bool) {
	if one, is := s.Properties[key]; is {
		return one, true
	}
	for _, other := range slices.Concat(s.AnyOf, s.OneOf) {
		if one, is := other.below(key); is {
			return one, true
		}
	}
	if s.Items != nil {
		return s.Items.below(key)
	}
	// A mapping with keys of the user's own, or a value of any form, such as Helm values.
	var any schema
	if len(s.Additional) > 0 && string(s.Additional) != "false" {
		_ = json.Unmarshal(s.Additional, &any) // true has no keys
		return any, true
	}
	return schema{}, len(s.Properties) == 0 && s.Items == nil && len(s.Additional) == 0 && len(s.AnyOf)+len(s.OneOf) == 0
}

// keys calls f with the path of each key that has no keys below it.
func (s schema) keys(path string, f func(string)) {
	parts := slices.Concat(s.AnyOf, s.OneOf)
	if s.Items != nil {
		parts = append(parts, *s.Items)
	}
	leaf := len(s.Properties) == 0
	for _, part := range parts {
		if len(part.Properties) > 0 || part.Items != nil || len(part.AnyOf)+len(part.OneOf) > 0 {
			leaf = false
			part.keys(path, f)
		}
	}
	for name, below := range s.Properties {
		below.keys(path+"."+name, f)
	}
	if leaf {
		f(path)
	}
}

var index = regexp.MustCompile(`\[[^\]]*\]`)

// checkKey checks that a configuration key exists in the reference, such as nodePools[].nodes[].mac.
func checkKey(path string) error {
	known, err := sections()
	if err != nil {
		return err
	}
	names := strings.Split(index.ReplaceAllString(path, ""), ".")
	at, is := known[names[0]]
	for _, name := range names[1:] {
		if !is {
			break
		}
		at, is = at.below(name)
	}
	if !is {
		return fmt.Errorf("%s is not a key of the stack files", path)
	}
	return nil
}

// keySpan matches a key in prose, with or without a value.
var keySpan = regexp.MustCompile(`^([a-z][a-zA-Z0-9]*(?:\[\])?(?:\.[a-zA-Z][a-zA-Z0-9]*(?:\[\])?)+)(?:: .*)?$`)

// others are names with a dot that begin like a section and are no keys: of Talos's configuration, of files, of Go and of Kubernetes.
var others = regexp.MustCompile(`\.(go|yaml|md|io|json|dev|Cluster|Kubernetes)$|^cluster\.(inlineManifests|extraManifests|proxy)|` +
	`^secrets\.(git|age)|^[a-z]+\.[A-Z][a-z]+$`)

func TestKeys_InTheDocumentsExist(t *testing.T) {
	known, err := sections()
	assert.NoError(t, err)
	looked := map[string]bool{}
	for name, text := range documents(t) {
		if strings.HasPrefix(name, "docs/decisions/") {
			continue // a record may name what was
		}
		for line, prose := range prose(text) {
			for _, span := range spans.FindAllString(prose, -1) {
				found := keySpan.FindStringSubmatch(strings.Trim(span, "`"))
				if found == nil || others.MatchString(found[1]) {
					continue
				}
				section, _, _ := strings.Cut(index.ReplaceAllString(found[1], ""), ".")
				if _, is := known[section]; !is {
					continue
				}
				looked[found[1]] = true
				if err := checkKey(found[1]); err != nil {
					t.Errorf("%s:%d: %v", name, line, err)
				}
			}
		}
	}
	t.Logf("%d keys", len(looked))
	assert.Greater(t, len(looked), 100)
}

func TestKeys_OneThatDoesNotExistIsFound(t *testing.T) {
	for _, path := range []string{"network.nodeCIDR", "nodePools[].nodes[].mac", "talos.sysctls.net", "gitops.settings.DOMAIN", "meshCA",
		"cilium.values.anything.below"} {
		assert.NoError(t, checkKey(path), path)
	}
	for _, path := range []string{"network.nodeCidr", "nodePools[].nodes[].macs", "gitop", "gitops.bucket.region.x"} {
		assert.Error(t, checkKey(path), path)
	}
}
