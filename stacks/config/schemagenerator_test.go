package config

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// schema is a JSON Schema, or a part of one. Editors know draft 7 best.
type schema = map[string]any

const (
	draft = "http://json-schema.org/draft-07/schema#"

	octet     = `(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])`
	address4  = `(` + octet + `\.){3}` + octet
	address6  = `[0-9A-Fa-f]*:[0-9A-Fa-f:.]*`
	length    = `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`
	line      = `^\S(.*\S)?$`
	mac       = `^[0-9A-Fa-f][02468ACEace](:[0-9A-Fa-f]{2}){5}$`
	httpURL   = `^https?://[^\s@?#]+$`
	https     = `^https://[^\s@?#]+$`
	httpsHost = `^https://[^\s@?#/]+/?$`
	httpsPath = `^https://[^\s@?#/]+/[^\s@?#]+$`
	taint     = `^([^:]*:)?(NoSchedule|PreferNoSchedule|NoExecute)$`
	value     = `^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$` // of a Kubernetes label
)

// constraints are what the model's types do not say of a key: the same forms and limits that validation uses.
var constraints = map[string]schema{
	"cluster.name": {
		"pattern": labelForm.String(), "maxLength": maxClusterName, "not": schema{"const": "default"},
	},
	"cluster.id":                        between1(maxClusterID),
	"proxmox.endpoint":                  {"pattern": httpsHost},
	"proxmox.cluster":                   {"pattern": value, "maxLength": maxLabel},
	"proxmox.nodes":                     {"minItems": 1, "items": text(label(maxLabel))},
	"proxmox.datastores.iso":            form(storageForm),
	"proxmox.datastores.disks":          form(storageForm),
	"proxmox.bridge":                    {"pattern": bridgeForm.String(), "maxLength": maxBridgeName},
	"proxmox.vlan":                      {"minimum": 0, "maximum": maxVLAN},
	"proxmox.tags":                      {"items": text(form(tagForm))},
	"network.nameservers":               {"minItems": 1},
	"nodePools":                         {"minItems": 1},
	"nodePools[].name":                  label(maxLabel),
	"nodePools[].cores":                 between1(maxCores),
	"nodePools[].hosts":                 {"minItems": 1, "items": text(label(maxLabel))},
	"nodePools[].datastore":             form(storageForm),
	"nodePools[].bridge":                {"pattern": bridgeForm.String(), "maxLength": maxBridgeName},
	"nodePools[].vlan":                  {"minimum": 0, "maximum": maxVLAN},
	"nodePools[].tags":                  {"items": text(form(tagForm))},
	"nodePools[].dataDisks":             {"maxItems": maxDataDisks},
	"nodePools[].dataDisks[].name":      form(volumeForm),
	"nodePools[].dataDisks[].datastore": form(storageForm),
	"nodePools[].taints":                {"additionalProperties": text(schema{"pattern": taint})},
	"nodePools[].nodes[].taints":        {"additionalProperties": text(schema{"pattern": taint})},
	"nodePools[].nodes":                 {"minItems": 1},
	"nodePools[].nodes[].name":          label(maxLabel),
	"nodePools[].nodes[].host":          label(maxLabel),
	"nodePools[].nodes[].vmId":          {"minimum": minVMID, "maximum": maxVMID},
	"talos.version":                     {"pattern": `^` + regexp.QuoteMeta(supportedTalos) + `\.[0-9]+(-[0-9A-Za-z.-]+)?$`},
	"talos.factory":                     {"pattern": httpsHost},
	"talos.extensions":                  {"items": text(form(extensionForm))},
	"talos.installDisk":                 {"pattern": "^/dev/(sda$|disk/by-)"},
	"talos.kubelet.maxPods":             between1(maxPodsPerNode),
	"talos.kubelet.extraArgs":           {"propertyNames": form(flagForm)},
	"talos.sysctls":                     {"propertyNames": form(sysctlForm)},
	"talos.registryMirrors": {"additionalProperties": schema{
		"type": "array", "minItems": 1, "uniqueItems": true, "items": text(schema{"pattern": httpURL}),
	}},
	"kubernetes.version":      form(releaseForm),
	"cilium.version":          form(chartForm),
	"cilium.repository":       {"pattern": https},
	"coreDNS.version":         form(chartForm),
	"coreDNS.repository":      {"pattern": https},
	"coreDNS.replicas":        between1(maxReplicas),
	"spegel.version":          form(chartForm),
	"spegel.chart":            form(chartRefForm),
	"certManager.version":     form(releaseForm),
	"certManager.repository":  {"pattern": https},
	"gitops.url":              {"pattern": httpsPath},
	"gitops.branch":           form(branchForm),
	"gitops.username":         form(usernameForm),
	"gitops.operator.chart":   form(chartRefForm),
	"gitops.operator.version": form(chartForm),
	"gitops.flux.version":     form(rangeForm),
	"gitops.flux.registry":    form(imagesForm),
}

func init() {
	for _, one := range new(CRDs).all() {
		path := "crds." + one.set.Key
		constraints[path+".version"] = form(releaseForm)
		constraints[path+".url"] = schema{"pattern": https}
		constraints[path+".sha256"] = form(sumForm)
	}
}

func form(pattern *regexp.Regexp) schema { return schema{"pattern": pattern.String()} }

func label(most int) schema { return schema{"pattern": labelForm.String(), "maxLength": most} }

func between1(most int) schema { return schema{"minimum": 1, "maximum": most} }

func text(constraint schema) schema {
	s := schema{"type": "string"}
	maps.Copy(s, constraint)
	return s
}

// generator makes the schema of stack files: the shape from the model, the words of a key from the document, those of a
// section from the comment on its type, and the defaults from where they are applied.
type generator struct {
	rows     map[string]row
	comments map[string]string // of types, by name
	used     map[string]bool   // paths of constraints
}

func generateSchema(t *testing.T) (text string, used map[string]bool) {
	t.Helper()
	g := generator{rows: documented(t), comments: typeComments(t), used: map[string]bool{}}
	defaults := Stack{Name: "STACK"}
	defaults.applyDefaults()
	out, err := json.MarshalIndent(g.file(reflect.ValueOf(defaults)), "", "  ")
	require.NoError(t, err)
	return string(out) + "\n", g.used
}

// file is the schema of a whole stack file. A section's key is written with the namespace, or without, as Pulumi reads it.
func (g *generator) file(defaults reflect.Value) schema {
	sections, keys, required := schema{}, schema{}, []schema{}
	for field := range fieldsOf(defaults.Type()) {
		name := keyOf(field)
		sections[name] = g.key(name, field.Type, defaults.FieldByIndex(field.Index))
		full := Namespace + ":" + name
		reference := schema{"$ref": "#/definitions/" + name}
		keys[full], keys[name] = reference, reference
		if isRequired(field) {
			required = append(required, schema{"anyOf": []schema{{"required": []string{full}}, {"required": []string{name}}}})
		}
	}
	properties := schema{}
	for _, key := range fileKeys {
		properties[key] = schema{"description": "Pulumi's own."}
	}
	properties["config"] = schema{
		"type": "object", "description": "The stack's configuration.", "properties": keys, "allOf": required,
		"patternProperties": schema{"^pulumi:": schema{"description": "Pulumi's own."}}, "additionalProperties": false,
	}
	return schema{
		"$schema": draft, "title": "Stack file of Slipway", "description": "One cluster. Generated from the model in stacks/config; see docs/configuration.md.",
		"type": "object", "properties": properties, "required": []string{"config"}, "additionalProperties": false, "definitions": sections,
	}
}

// key is the schema of a value at a path.
func (g *generator) key(path string, of reflect.Type, fallback reflect.Value) schema {
	s := g.shape(path, of, fallback)
	if words := g.rows[path].meaning; words != "" {
		s["description"] = words
	}
	if constraint, ok := constraints[path]; ok {
		g.used[path] = true
		maps.Copy(s, constraint)
	}
	if followed[path] == "" && path != "gitops.path" && fallback.IsValid() && !fallback.IsZero() {
		switch s["type"] {
		case "string", "integer", "boolean":
			s["default"] = fallback.Interface()
		}
	}
	return s
}

func (g *generator) shape(path string, of reflect.Type, fallback reflect.Value) schema {
	switch {
	case of == secretType:
		return schema{
			"type": "object", "properties": schema{"secure": schema{"type": "string"}}, "required": []string{"secure"}, "additionalProperties": false,
		}
	case of == patchType:
		return schema{"type": "object", "minProperties": 1}
	case of == switchType:
		return schema{"type": "boolean"}
	case of == linesType:
		return schema{"type": "string", "minLength": 1}
	case of.Implements(choiceType):
		_, allowed := reflect.Zero(of).Interface().(choice).choices()
		return schema{"type": "string", "enum": allowed}
	case of == addrType:
		return schema{"type": "string", "pattern": "^" + familyOf(path) + "$"}
	case of == prefixType:
		return schema{"type": "string", "pattern": "^" + familyOf(path) + "/[0-9]{1,3}$"}
	case of == reflect.TypeFor[Quantity]():
		return schema{"type": "string", "pattern": quantityForm.String()}
	case of == reflect.TypeFor[Duration]():
		return schema{"type": "string", "pattern": length}
	case of == reflect.TypeFor[MAC]():
		return schema{"type": "string", "pattern": mac}
	}
	switch of.Kind() {
	case reflect.Pointer:
		return g.shape(path, of.Elem(), reflect.Zero(of.Elem()))
	case reflect.Struct:
		return g.section(path, of, fallback)
	case reflect.Slice:
		s := schema{"type": "array", "items": g.key(path+"[]", of.Elem(), reflect.Zero(of.Elem()))}
		if of.Elem().Kind() != reflect.Struct && of.Elem() != patchType {
			s["uniqueItems"] = true
		}
		return s
	case reflect.Map:
		item := g.key(path+"[]", of.Elem(), reflect.Zero(of.Elem()))
		delete(item, "pattern") // the value of a label may be empty
		return schema{"type": "object", "additionalProperties": item}
	case reflect.Int:
		return schema{"type": "integer"}
	case reflect.Bool:
		return schema{"type": "boolean", "default": false}
	}
	return schema{"type": "string", "pattern": line}
}

// familyOf is the pattern of the addresses of a key.
func familyOf(path string) string {
	if strings.HasPrefix(path, ipv6Path+".") || strings.HasSuffix(path, ".address6") {
		return address6
	}
	return address4
}

func (g *generator) section(path string, of reflect.Type, defaults reflect.Value) schema {
	properties, required := schema{}, []string{}
	for field := range fieldsOf(of) {
		at := join(path, keyOf(field))
		properties[keyOf(field)] = g.key(at, field.Type, defaults.FieldByIndex(field.Index))
		if isRequired(field) {
			required = append(required, keyOf(field))
		}
	}
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	if comment := g.comments[of.Name()]; comment != "" {
		s["description"] = comment
	}
	return s
}

// typeComments are the comments on this package's types, by name, each on one line.
func typeComments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	comments := map[string]string{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.ParseComments)
		require.NoError(t, err)
		for _, declared := range parsed.Decls {
			general, ok := declared.(*ast.GenDecl)
			if !ok || general.Tok != token.TYPE || general.Doc == nil {
				continue
			}
			for _, spec := range general.Specs {
				comments[spec.(*ast.TypeSpec).Name.Name] = strings.Join(strings.Fields(general.Doc.Text()), " ")
			}
		}
	}
	require.NotEmpty(t, slices.Collect(maps.Keys(comments)))
	return comments
}
