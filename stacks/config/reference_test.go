package config

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/syntax"
	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
	"github.com/slipway-platform/slipway/tests/golden"
)

// key is one key of the model.
type key struct {
	path    string // in the reference's form: nodePools[].nodes[].name
	field   reflect.StructField
	words   string        // the comment on the field
	derived reflect.Value // the value in a stack that sets no key; invalid below lists and optional sections
}

// reference reads the model: its keys, and the comments on fields and types.
type reference struct {
	comments map[string]string // by the name of a type, or by Type.Field
	keys     []key
}

func newReference(t *testing.T) *reference {
	t.Helper()
	r := &reference{comments: modelComments(t)}
	c := cluster.New("STACK")
	c.Complete(&cluster.Findings{})
	r.visit("", reflect.TypeFor[cluster.Cluster](), reflect.ValueOf(*c))
	require.Greater(t, len(r.keys), 100)
	return r
}

// visit lists every key of a section that holds a value, or a list or mapping of values.
func (r *reference) visit(path string, section reflect.Type, values reflect.Value) {
	for field := range cluster.Keys(section) {
		at, of := cluster.KeyPath(path, keyOf(field)), field.Type
		var value reflect.Value
		if values.IsValid() {
			value = values.FieldByIndex(field.Index)
		}
		switch {
		case of.Kind() == reflect.Pointer && isSection(of.Elem()):
			r.visit(at, of.Elem(), reflect.Value{})
		case isSection(of):
			r.visit(at, of, value)
		case of.Kind() == reflect.Slice && isSection(of.Elem()):
			r.visit(at+"[]", of.Elem(), reflect.Value{})
		default:
			r.keys = append(r.keys, key{path: at, field: field, words: r.fieldComment(section, field), derived: value})
		}
	}
}

func isSection(of reflect.Type) bool {
	return of.Kind() == reflect.Struct && of != secretType && !reflect.PointerTo(of).Implements(textType)
}

// fieldComment returns the comment on a field, which may be promoted from an embedded struct.
func (r *reference) fieldComment(section reflect.Type, field reflect.StructField) string {
	owner := section
	if len(field.Index) > 1 {
		owner = section.FieldByIndex(field.Index[:len(field.Index)-1]).Type
	}
	return r.comments[owner.Name()+"."+field.Name]
}

// modelComments returns the comments of package cluster, each as one line, without comments for tools such as renovate.
func modelComments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "cluster", "*.go"))
	require.NoError(t, err)
	comments := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(parsed, func(node ast.Node) bool {
			declared, ok := node.(*ast.GenDecl)
			if !ok || declared.Tok != token.TYPE {
				return true
			}
			for _, spec := range declared.Specs {
				named := spec.(*ast.TypeSpec)
				comments[named.Name.Name] = oneLine(declared.Doc.Text())
				if section, ok := named.Type.(*ast.StructType); ok {
					for _, field := range section.Fields.List {
						for _, name := range field.Names {
							comments[named.Name.Name+"."+name.Name] = oneLine(field.Doc.Text())
						}
					}
				}
			}
			return true
		})
	}
	require.NotEmpty(t, comments)
	return comments
}

func oneLine(comment string) string {
	words, _, _ := strings.Cut(comment, "renovate:")
	return strings.Join(strings.Fields(words), " ")
}

// form describes how the value of a key is written.
func (k key) form() string { return formOf(k.field.Type, k.field.Tag) }

func formOf(of reflect.Type, tag reflect.StructTag) string {
	if of.Implements(choiceType) {
		return choiceWords(of)
	}
	least, most, _ := strings.Cut(tag.Get("range"), "-")
	switch of {
	case secretType:
		return "secret text"
	case patchType, valuesType:
		return "mapping"
	case linesType:
		return "text of several lines"
	case addrType:
		return formWords(tag.Get("form"))
	case prefixType:
		shortest, longest, _ := strings.Cut(tag.Get("bits"), "-")
		return fmt.Sprintf("%s, /%s to /%s", formWords(tag.Get("form")), shortest, longest)
	case reflect.TypeFor[cluster.Quantity]():
		return fmt.Sprintf("%s, at least %s", formWords(tag.Get("form")), least)
	case reflect.TypeFor[cluster.Duration]():
		return fmt.Sprintf("%s, at least %s", formWords("duration"), least)
	case reflect.TypeFor[cluster.MAC]():
		return formWords("mac")
	}
	switch of.Kind() {
	case reflect.Pointer:
		return formOf(of.Elem(), tag)
	case reflect.Slice:
		return "list: " + formOf(of.Elem(), tag)
	case reflect.Map:
		keys := "text"
		if tag.Get("keys") != "" {
			keys = formWords(tag.Get("keys"))
		}
		return "mapping: " + keys + " → " + formOf(of.Elem(), tag)
	case reflect.Int:
		return fmt.Sprintf("number, %s to %s", least, most)
	case reflect.Bool:
		return "boolean"
	}
	return formWords(tag.Get("form"))
}

func choiceWords(of reflect.Type) string {
	var words []string
	for _, choice := range reflect.Zero(of).Interface().(cluster.Choice).Choices() {
		words = append(words, "`"+choice+"`")
	}
	return oneOf(words)
}

func formWords(name string) string {
	if form, ok := syntax.Lookup(name); ok {
		return form.Words
	}
	return "text"
}

// example returns a value of the key, as YAML: its default if no other is given.
func (k key) example() string {
	if text, given := k.field.Tag.Lookup("example"); given {
		return text
	}
	return k.field.Tag.Get("default")
}

// fallback describes the default of a key.
func (k key) fallback() string {
	switch text, given := k.field.Tag.Lookup("default"); {
	case isRequired(k.field):
		return "required"
	case given:
		return "`" + text + "`"
	case k.field.Tag.Get("follows") != "":
		return "`" + k.field.Tag.Get("follows") + "`"
	case k.field.Type.Kind() == reflect.String && k.derived.IsValid() && !k.derived.IsZero():
		return "`" + k.derived.String() + "`"
	case k.field.Type.Kind() == reflect.Bool:
		return "`false`"
	}
	return "–"
}

const tableHead = "| key | form | default | example | meaning |\n| --- | --- | --- | --- | --- |\n"

var tableForm = regexp.MustCompile(`(?s)<!-- keys: (\S+) -->\n.*?<!-- end of keys -->`)

// document fills the tables of a document. A key is in the table whose name is the longest prefix of its path.
func (r *reference) document(text string) (filled string, used map[string]int) {
	var tables []string
	for _, match := range tableForm.FindAllStringSubmatch(text, -1) {
		tables = append(tables, match[1])
	}
	rows, used := map[string]string{}, map[string]int{}
	for _, k := range r.keys {
		best := ""
		for _, table := range tables {
			under := k.path == table || strings.HasPrefix(k.path, table+".") || strings.HasPrefix(k.path, table+"[]")
			if (under || table == "secrets" && k.field.Type == secretType) && len(table) > len(best) {
				best = table
			}
		}
		used[k.path] = len(best)
		rows[best] += fmt.Sprintf("| `%s` | %s | %s | `%s` | %s |\n",
			k.path, escaped(k.form()), escaped(k.fallback()), k.example(), escaped(k.words))
	}
	return tableForm.ReplaceAllStringFunc(text, func(block string) string {
		name := tableForm.FindStringSubmatch(block)[1]
		return "<!-- keys: " + name + " -->\n" + tableHead + rows[name] + "<!-- end of keys -->"
	}), used
}

var settingsForm = regexp.MustCompile(`(?s)<!-- cluster settings -->\n.*?<!-- end of cluster settings -->`)

// withSettings fills the table of the cluster settings, with the values of a stack.
func withSettings(text string, c *cluster.Cluster) string {
	rows, values := "", c.Settings()
	for _, setting := range cluster.Settings {
		value := "–"
		if values[setting.Key] != "" {
			value = "`" + values[setting.Key] + "`"
		}
		rows += fmt.Sprintf("| `%s` | `%s` | %s | %s |\n", setting.Key, setting.From, value, setting.Meaning)
	}
	return settingsForm.ReplaceAllLiteralString(text, "<!-- cluster settings -->\n| setting | follows | infra's | meaning |\n"+
		"| --- | --- | --- | --- |\n"+rows+"<!-- end of cluster settings -->")
}

func escaped(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func TestReference_IsGeneratedFromTheModel(t *testing.T) {
	path := filepath.Join(root, "docs", "configuration.md")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	r := newReference(t)
	filled, used := r.document(string(text))
	for _, k := range r.keys {
		assert.NotZero(t, used[k.path], "%s is in no table of the reference", k.path)
	}
	infra, err := loadFile(filepath.Join(samples, "Pulumi.infra.yaml"))
	require.NoError(t, err)
	require.Regexp(t, settingsForm, filled)
	golden.File(t, path, withSettings(filled, infra))
}

func TestReference_QuotesProblemsAsTheyAreReported(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "configuration.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "at most 50 at a time:\n")
	require.True(t, found)
	_, rest, found = strings.Cut(rest, "\n```\n") // the block may have a tag
	require.True(t, found)
	quoted, _, _ := strings.Cut(rest, "\n```\n")
	var reported []string
	for _, one := range fixtures.Invalid() {
		reported = append(reported, one.Says...)
	}
	assert.Subset(t, reported, strings.Split(quoted, "\n"))
}

func TestModel_DescribesEveryKey(t *testing.T) {
	r := newReference(t)
	for _, k := range r.keys {
		assert.Regexp(t, `^[A-Z`+"`"+`].*\.$`, k.words, "%s needs a comment of whole sentences", k.path)
		for _, tag := range []string{"form", "keys"} {
			address := k.field.Type == addrType || k.field.Type == prefixType || k.field.Type == reflect.TypeFor[[]netip.Addr]()
			if name := k.field.Tag.Get(tag); name != "" && !address {
				_, known := syntax.Lookup(name)
				assert.True(t, known, "%s: %s is no form", k.path, name)
			}
		}
		text := k.field.Type.Kind() == reflect.String && !k.field.Type.Implements(choiceType) && k.field.Type != linesType &&
			k.field.Type != reflect.TypeFor[cluster.MAC]()
		assert.False(t, text && k.field.Tag.Get("form") == "", "%s needs a form", k.path)
		kind := k.field.Type.String()
		if strings.Contains(kind, "Quantity") || strings.Contains(kind, "Duration") || strings.HasSuffix(kind, "int") {
			assert.Contains(t, k.field.Tag.Get("range"), "-", "%s needs a range", k.path)
		}
	}
}

func TestModel_GivesExamplesThatAreValid(t *testing.T) {
	for _, k := range newReference(t).keys {
		if k.field.Type == secretType {
			continue // never part of a file
		}
		require.NotEmpty(t, k.example(), "%s needs an example", k.path)
		text, err := yaml.YAMLToJSONStrict([]byte(k.example()))
		require.NoError(t, err, k.path)
		tree, _, err := parseJSON("", nested(k.path, string(text)))
		require.NoError(t, err, k.path)
		c, d := cluster.New("STACK"), decoder{}
		d.decode("", tree, reflect.ValueOf(c).Elem())
		c.Complete(&d.Findings)
		at := strings.ReplaceAll(k.path, "[]", "[0]")
		for _, problem := range d.All() { // the keys that are missing beside the example have problems, too
			if problem.Path == at || strings.HasPrefix(problem.Path, at+"[") {
				assert.False(t, d.Unusable(problem.Path), problem.Error())
			}
		}
	}
}

// nested returns the JSON of a file with a value at the path and nothing else. "[]" stands for a list of one item.
func nested(path, value string) string {
	steps := strings.Split(path, ".")
	for _, step := range slices.Backward(steps) {
		name, inList := strings.CutSuffix(step, "[]")
		if inList {
			value = "[" + value + "]"
		}
		value = fmt.Sprintf("{%q: %s}", name, value)
	}
	return value
}

// schema is a JSON Schema, or a part of one. It uses draft 7, which editors support best.
type schema = map[string]any

const draft = "http://json-schema.org/draft-07/schema#"

// schema returns the schema of a whole stack file. A section's key may have the namespace or not, as for Pulumi.
func (r *reference) schema() schema {
	sections, keys, required := schema{}, schema{}, []schema{}
	for field := range cluster.Keys(reflect.TypeFor[cluster.Cluster]()) {
		name := keyOf(field)
		sections[name] = r.value(field.Type, field)
		full := Namespace + ":" + name
		reference := schema{"$ref": "#/definitions/" + name}
		keys[full], keys[name] = reference, reference
		if isRequired(field) && field.Type != secretType {
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
		"$schema": draft, "title": "Stack file of Slipway",
		"description": "One cluster. Generated from the package cluster; see docs/configuration.md.",
		"type":        "object", "properties": properties, "required": []string{"config"}, "additionalProperties": false, "definitions": sections,
	}
}

// value returns the schema of a key's value.
func (r *reference) value(of reflect.Type, field reflect.StructField) schema {
	tag := field.Tag
	switch {
	case of == secretType:
		return schema{
			"type": "object", "properties": schema{"secure": schema{"type": "string"}}, "required": []string{"secure"},
			"additionalProperties": false,
		}
	case of == patchType, of == valuesType:
		return schema{"type": "object", "minProperties": 1}
	case of == linesType:
		return schema{"type": "string", "minLength": 1}
	case of.Implements(choiceType):
		return schema{"type": "string", "enum": reflect.Zero(of).Interface().(cluster.Choice).Choices()}
	case of == addrType:
		return formPattern(tag.Get("form"))
	case of == prefixType:
		return formPattern(tag.Get("form"))
	case of == reflect.TypeFor[cluster.Quantity]():
		return formPattern("quantity")
	case of == reflect.TypeFor[cluster.Duration]():
		return formPattern("duration")
	case of == reflect.TypeFor[cluster.Share]():
		return schema{"anyOf": []schema{{"type": "integer", "minimum": 1, "maximum": 1000}, formPattern("share")}}
	case of == reflect.TypeFor[cluster.MAC]():
		return formPattern("mac")
	}
	switch of.Kind() {
	case reflect.Pointer:
		return r.value(of.Elem(), field)
	case reflect.Struct:
		return r.section(of)
	case reflect.Slice:
		return r.list(of, field)
	case reflect.Map:
		s := schema{"type": "object", "additionalProperties": r.value(of.Elem(), field)}
		if form, ok := syntax.Lookup(tag.Get("keys")); ok {
			s["propertyNames"] = schema{"pattern": form.Pattern}
		}
		return s
	case reflect.Int:
		least, most, _ := strings.Cut(tag.Get("range"), "-")
		low, _ := strconv.Atoi(least)
		high, _ := strconv.Atoi(most)
		return schema{"type": "integer", "minimum": low, "maximum": high}
	case reflect.Bool:
		return schema{"type": "boolean"}
	}
	return formPattern(tag.Get("form"))
}

// formPattern returns the schema of a text in a form.
func formPattern(name string) schema {
	s := schema{"type": "string"}
	if form, ok := syntax.Lookup(name); ok && form.Pattern != "" {
		s["pattern"] = form.Pattern
	}
	return s
}

func (r *reference) list(of reflect.Type, field reflect.StructField) schema {
	s := schema{"type": "array", "items": r.value(of.Elem(), field)}
	if !isSection(of.Elem()) && of.Elem() != patchType {
		s["uniqueItems"] = true
	}
	least, most, _ := strings.Cut(field.Tag.Get("items"), "-")
	if low, _ := strconv.Atoi(least); low > 0 {
		s["minItems"] = low
	}
	if high, err := strconv.Atoi(most); err == nil {
		s["maxItems"] = high
	}
	return s
}

func (r *reference) section(of reflect.Type) schema {
	properties, required := schema{}, []string{}
	for field := range cluster.Keys(of) {
		s := r.value(field.Type, field)
		if words := r.fieldComment(of, field); words != "" {
			s["description"] = words
		}
		if text, given := field.Tag.Lookup("default"); given {
			s["default"] = plain(s["type"], text)
		}
		properties[keyOf(field)] = s
		if isRequired(field) {
			required = append(required, keyOf(field))
		}
	}
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	if comment := r.comments[of.Name()]; comment != "" {
		s["description"] = comment
	}
	return s
}

// plain converts the text of a default to a JSON value.
func plain(kind any, text string) any {
	switch kind {
	case "integer":
		number, _ := strconv.Atoi(text)
		return number
	case "boolean":
		return text == "true"
	}
	return text
}
