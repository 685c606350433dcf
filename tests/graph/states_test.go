package graph

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/stacks"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// releases is the folder with a folder for each release: the stack files, and the state of each stack after one run in the lab, as
// `make keep-state` writes them. A default version of that release that has changed since is written into the stack files.
const releases = "tests/graph/states"

// The values by which Pulumi marks a secret in a state.
const (
	signatureKey    = "4dabf18193072939515e22adb298388d"
	secretSignature = "1b47061264138c4ac30d75fd1eb44270"
)

// kept is a resource of a kept state.
type kept struct {
	ID, URN, Type, Parent, DeletedWith string
	Custom, Protect, RetainOnDelete    bool
	Inputs, Outputs                    map[string]any
	IgnoreChanges, ReplaceWith         []string
	ReplacementTrigger                 any
}

// key identifies a resource in its stack: its type and its name.
func (k kept) key() string { return k.Type + " " + lastOf(k.URN) }

// lastOf returns the name at the end of a URN, or of a provider's URN without its id.
func lastOf(urn string) string { return urn[strings.LastIndex(urn, "::")+2:] }

// TestState_OfEachReleaseShowsNoChange runs the program with the stack files of a release, as if its resources existed, and compares the
// registered resources with the state that the release left: the same types, names and parents, and the same inputs, except for intended
// changes. Runs of the probe may differ in what starts them again.
//
// Secrets are not kept, so only that they are secret is compared. What a provider would make of an equal input is not modelled.
func TestState_OfEachReleaseShowsNoChange(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(releases, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.json.gz"))
		require.NoError(t, err)
		require.NotEmpty(t, files, folder)
		for _, file := range files {
			stack := strings.TrimSuffix(filepath.Base(file), ".json.gz")
			before := readState(t, file)
			t.Run(filepath.Base(folder)+"/"+stack, func(t *testing.T) {
				project := projectOf(t, folder)
				t.Chdir(project)
				rec := newRecorder(t, stack)
				rec.Secrets = secretsOf(t, stack)
				rec.OnResource = func(reg mocks.Registration) (resource.PropertyMap, error) {
					return keptOutputs(reg, before[reg.Type+" "+reg.Name])
				}
				require.NoError(t, rec.Run(stacks.Deploy))
				compareWithState(t, rec, before)
			})
		}
	}
}

// secretsOf returns the secrets that a stack requires: a run in the lab sets no others.
func secretsOf(t *testing.T, stack string) map[string]string {
	t.Helper()
	all, required := secretValues(), map[string]string{}
	for _, missing := range load(t, stack).MissingSecrets() {
		required["slipway:"+missing] = all["slipway:"+missing]
	}
	return required
}

// projectOf makes a project with the stack files of a release and the tree of this checkout, and returns its folder.
func projectOf(t *testing.T, release string) string {
	t.Helper()
	folder := t.TempDir()
	files, err := filepath.Glob(filepath.Join(release, "Pulumi.*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range append(files, "Pulumi.yaml", "kubernetes") {
		target, err := filepath.Abs(file)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(target, filepath.Join(folder, filepath.Base(file))))
	}
	return folder
}

// readState returns the resources of a kept state by their keys.
func readState(t *testing.T, path string) map[string]kept {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	require.NoError(t, err)
	var state struct {
		Deployment struct{ Resources []kept }
	}
	require.NoError(t, json.NewDecoder(unpacked).Decode(&state))
	resources := map[string]kept{}
	for _, one := range state.Deployment.Resources {
		if one.Type != string(resource.RootStackType) && lastOf(one.URN) != "default" {
			resources[one.key()] = one
		}
	}
	require.Greater(t, len(resources), 50, path)
	return resources
}

// keptOutputs answers for the provider with the outputs in the state. It has no secrets: they are the other tests'.
func keptOutputs(reg mocks.Registration, before kept) (resource.PropertyMap, error) {
	outputs, err := answer(reg)
	if err != nil {
		return nil, err
	}
	if outputs == nil {
		outputs = resource.PropertyMap{}
	}
	if before.ID != "" {
		outputs["id"] = resource.NewProperty(before.ID)
	}
	for key, value := range before.Outputs {
		property := resource.PropertyKey(key)
		if _, answered := outputs[property]; answered && hasSecret(value) {
			continue
		}
		outputs[property] = resource.NewPropertyValue(withPlaceholders(value))
	}
	return outputs, nil
}

func compareWithState(t *testing.T, rec *mocks.Recorder, before map[string]kept) {
	t.Helper()
	found := map[string]bool{}
	for _, reg := range rec.Resources() {
		key := reg.Type + " " + reg.Name
		was, exists := before[key]
		if !exists {
			assert.Contains(t, Created, key, "is created")
			continue
		}
		found[key] = true
		assert.Contains(t, parentsOf(reg), lastOf(was.Parent), "parent of %s", key)
		assert.Equal(t, was.Protect || slices.Contains(Protected, key), reg.Protect, "protection of %s", key)
		stays := was.RetainOnDelete || slices.Contains(retained, reg.Type) || slices.Contains(retained, key)
		assert.Equal(t, stays, reg.RetainOnDelete, "retention of %s", key)
		assert.Subset(t, reg.IgnoreChanges, was.IgnoreChanges, "ignored changes of %s; more of them change nothing", key)
		assert.Equal(t, nameIn(was.DeletedWith), nameIn(reg.DeletedWith), "%s is deleted with", key)
		assert.Equal(t, namesIn(was.ReplaceWith), namesIn(reg.RPC.GetReplaceWith()), "%s is replaced with", key)
		if was.ReplacementTrigger != nil { // a first one replaces nothing
			assert.Equal(t, was.ReplacementTrigger, reg.RPC.GetReplacementTrigger().AsInterface(), "what replaces %s", key)
		}
		for _, difference := range differences(inputsOf(reg, was), was) {
			text := key + ": " + difference
			if !slices.ContainsFunc(slices.Concat(ofSecrets, OfPlugins, Intended), func(part string) bool { return strings.Contains(text, part) }) {
				t.Error(text)
			}
		}
	}
	for key := range before {
		if !found[key] {
			t.Errorf("%s is deleted", key)
		}
	}
	assert.Greater(t, len(found), 50)
}

// parentsOf returns the names of a registration's parent, and of those that an alias gives it; the state names the stack itself where the
// program names no parent.
func parentsOf(reg mocks.Registration) []string {
	names := []string{nameIn(reg.Parent)}
	for _, alias := range reg.Aliases {
		if former := alias.GetSpec().GetParentUrn(); former != "" {
			names = append(names, nameIn(former))
		}
	}
	return names
}

// namesIn returns the names in URNs, sorted.
func namesIn(urns []string) []string {
	var names []string
	for _, urn := range urns {
		names = append(names, lastOf(urn))
	}
	slices.Sort(names)
	return names
}

// nameIn returns the name in a URN, if there is one.
func nameIn(urn string) string {
	if urn == "" {
		return ""
	}
	return lastOf(urn)
}

// inputsOf returns the inputs of a registration in the form of a state, where a provider has the version of its plugin among them. As the
// engine does, it takes ignored inputs from the state.
func inputsOf(reg mocks.Registration, was kept) map[string]any {
	given := reg.Inputs.Copy()
	for _, ignored := range reg.IgnoreChanges {
		if path, err := resource.ParsePropertyPath(ignored); err == nil {
			path.Reset(resource.NewPropertyMapFromMap(was.Inputs), given)
		}
	}
	inputs, _ := stateForm(resource.NewProperty(given)).(map[string]any)
	if isProvider(reg) && reg.RPC.GetVersion() != "" {
		inputs["version"] = reg.RPC.GetVersion()
	}
	delete(inputs, "compat") // says of which SDK a release is; the plugin takes it away
	return inputs
}

// stateForm returns a value as a state has it, with the mark of a secret instead of its value.
func stateForm(value resource.PropertyValue) any {
	switch {
	case value.IsSecret():
		return map[string]any{signatureKey: secretSignature}
	case value.IsOutput():
		if value.OutputValue().Secret {
			return map[string]any{signatureKey: secretSignature}
		}
		return stateForm(value.OutputValue().Element)
	case value.IsObject():
		fields := map[string]any{}
		for key, below := range value.ObjectValue() {
			fields[string(key)] = stateForm(below)
		}
		return fields
	case value.IsArray():
		items := []any{}
		for _, below := range value.ArrayValue() {
			items = append(items, stateForm(below))
		}
		return items
	}
	return value.Mappable()
}

// reruns are the inputs that only start the probe again: what it reads, and what it verifies.
var reruns = []string{"stdin", "triggers"}

// ofSecrets are inputs that follow from secrets, which are not those of the release. They are not compared.
var ofSecrets = []string{
	"pulumi:index:Stash talos-turns: input.", // a checksum for each machine
	"caCertPem: ", "values.tls.ca.cert: ",    // of the mesh
	"slipway-platform.github.io/",       // checksums of what pods read
	"reconcile.fluxcd.io/requestedAt: ", // a fingerprint of the access to Git
}

// retained are resources, or types, that a release does not let Pulumi delete any more, on purpose: a replaced image is in CD drives, and
// objects of the tree may be in Flux's namespace when another engine takes over.
var retained = []string{typeISO, "kubernetes:core/v1:Namespace secrets-git-namespace"}

// differences returns what a program's inputs change in those of the state. The provider has added the inputs in the state that the program
// does not give.
func differences(now map[string]any, was kept) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(was.Inputs)) {
		if _, given := now[key]; !given && !isDefault(was.Inputs, key) {
			all = append(all, fmt.Sprintf("%s: was %v, is not given any more", key, was.Inputs[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if was.Type == typeCommand && slices.Contains(reruns, key) {
			continue
		}
		all = append(all, differ(key, now[key], was.Inputs[key])...)
	}
	return all
}

// differ compares a value of the program with that of the state, in what the program gives.
func differ(path string, now, was any) []string {
	if isSecret(now) || isSecret(was) {
		if !isSecret(now) || !hasSecret(was) {
			return []string{fmt.Sprintf("%s: secret in the state %t, in the program %t", path, hasSecret(was), isSecret(now))}
		}
		return nil
	}
	fields, isObject := now.(map[string]any)
	before, wasObject := was.(map[string]any)
	if isObject && wasObject {
		var all []string
		for _, key := range slices.Sorted(maps.Keys(before)) {
			if _, given := fields[key]; !given && !isDefault(before, key) {
				all = append(all, fmt.Sprintf("%s.%s: was %v, is not given any more", path, key, before[key]))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			all = append(all, differ(path+"."+key, fields[key], before[key])...)
		}
		return all
	}
	items, isList := now.([]any)
	wasItems, wasList := was.([]any)
	if isList && wasList && len(items) == len(wasItems) {
		var all []string
		for i := range items {
			all = append(all, differ(fmt.Sprintf("%s[%d]", path, i), items[i], wasItems[i])...)
		}
		return all
	}
	if reflect.DeepEqual(now, was) || fmt.Sprint(now) == was { // inputs of providers are texts in a state
		return nil
	}
	text, isText := now.(string)
	if former, wasText := was.(string); isText && wasText && strings.Contains(text, "\n") {
		return differLines(path, strings.Split(text, "\n"), strings.Split(former, "\n"))
	}
	return []string{fmt.Sprintf("%s: was %v, is %v", path, was, now)}
}

// differLines compares two texts of several lines, such as the lines of a machine configuration.
func differLines(path string, now, was []string) []string {
	var all []string
	for _, line := range was {
		if !slices.Contains(now, line) {
			all = append(all, fmt.Sprintf("%s: was %s", path, line))
		}
	}
	for _, line := range now {
		if !slices.Contains(was, line) {
			all = append(all, fmt.Sprintf("%s: is %s", path, line))
		}
	}
	if len(all) == 0 {
		all = append(all, path+": has its lines in another order")
	}
	return all
}

// defaults are inputs that plugins add and list nowhere.
var defaults = []string{"rsaBits", "ecdsaCurve"} // of tls

// isDefault reports whether the plugin has added an input: bridged providers list what they add, and others add empty values.
func isDefault(inputs map[string]any, key string) bool {
	listed, _ := inputs["__defaults"].([]any)
	value := inputs[key]
	empty := value == nil || reflect.ValueOf(value).IsZero() || reflect.DeepEqual(value, map[string]any{})
	return empty || strings.HasPrefix(key, "__") || slices.Contains(listed, any(key)) || slices.Contains(defaults, key)
}

func isSecret(value any) bool {
	fields, is := value.(map[string]any)
	return is && fields[signatureKey] == secretSignature
}

// hasSecret reports whether a value is a secret, or has one inside.
func hasSecret(value any) bool {
	if isSecret(value) {
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		for _, below := range value {
			if hasSecret(below) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, hasSecret)
	}
	return false
}

// withPlaceholders replaces the secrets in a value of the state, which are not kept.
func withPlaceholders(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if isSecret(value) {
			return &resource.Secret{Element: resource.NewProperty(keyMaterial)}
		}
		fields := map[string]any{}
		for key, below := range value {
			fields[key] = withPlaceholders(below)
		}
		return fields
	case []any:
		items := []any{}
		for _, below := range value {
			items = append(items, withPlaceholders(below))
		}
		return items
	}
	return value
}
