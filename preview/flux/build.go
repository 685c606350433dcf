// Package flux builds the tree below kubernetes/ as Flux does for a cluster: kustomizations, layer by layer, and the substitution of the
// cluster settings. Applications of Argo CD are layers, too, whose plugin replaces the same settings. It asks no cluster.
package flux

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/envsubst"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
)

// API groups of Flux.
const (
	KustomizeGroup = "kustomize.toolkit.fluxcd.io"
	argoCDGroup    = "argoproj.io"
)

// Layer is what one Kustomization of Flux applies, or one Application of Argo CD.
type Layer struct {
	Name         string // of the Kustomization
	Folder       string
	Declaration  Object // the Kustomization; empty for the root, which the product declares
	Objects      []Object
	substitution map[string]string
	asWritten    bool // nothing is replaced
}

// Object is an object of the tree, after substitution.
type Object struct{ *unstructured.Unstructured }

// Title names an object in messages.
func (o Object) Title() string {
	title := o.GetKind() + " " + o.GetName()
	if namespace := o.GetNamespace(); namespace != "" {
		title = o.GetKind() + " " + namespace + "/" + o.GetName()
	}
	return title
}

// Is reports whether the object is of that group and kind.
func (o Object) Is(group, kind string) bool {
	of := o.GroupVersionKind()
	return of.Group == group && of.Kind == kind
}

// Text returns the text at a path, "" if there is none.
func (o Object) Text(fields ...string) string {
	value, _, err := unstructured.NestedString(o.Object, fields...)
	if err != nil {
		return ""
	}
	return value
}

// List returns the objects of the list at a path.
func (o Object) List(fields ...string) []map[string]any { return List(o.Object, fields...) }

// List returns the objects of the list at a path of an object.
func List(object map[string]any, fields ...string) (items []map[string]any) {
	value, _, err := unstructured.NestedFieldNoCopy(object, fields...)
	elements, ok := value.([]any)
	if err != nil || !ok {
		return nil
	}
	for _, element := range elements {
		if item, ok := element.(map[string]any); ok {
			items = append(items, item)
		}
	}
	return items
}

// Build builds everything that Flux applies from a folder, layer by layer: the root first, then what its Kustomizations refer to, and
// so on. The layers that could be built are returned with the errors of the others. A variable that is neither defined nor has a
// default is an error.
func Build(files filesys.FileSystem, folder string, settings map[string]string) ([]Layer, error) {
	b := builder{files: files, settings: settings, done: map[string]bool{}}
	root := cluster.FluxSync
	if settings["SOURCE_URL"] != "" { // of Argo CD
		root = cluster.ArgoCDRoot
	}
	b.layer(Layer{Name: root, Folder: Clean(folder), substitution: settings})
	return b.layers, errors.Join(b.problems...)
}

type builder struct {
	files    filesys.FileSystem
	settings map[string]string
	done     map[string]bool // by name
	layers   []Layer
	problems []error
}

func (b *builder) found(layer Layer, format string, args ...any) {
	b.problems = append(b.problems, fmt.Errorf("Kustomization %s (%s): %w", layer.Name, layer.Folder, fmt.Errorf(format, args...)))
}

func (b *builder) layer(layer Layer) {
	if b.done[layer.Name] {
		b.found(layer, "there are two of this name; rename one")
		return
	}
	b.done[layer.Name] = true
	built, err := b.kustomize(layer.Folder)
	if err != nil {
		b.found(layer, "%w", err)
		return
	}
	for _, one := range built.Resources() {
		object, err := substitute(one, layer.substitution, layer.asWritten)
		if err != nil {
			b.found(layer, "%s %s: %w", one.GetKind(), one.GetName(), err)
			continue
		}
		layer.Objects = append(layer.Objects, object)
	}
	b.layers = append(b.layers, layer)
	for _, object := range layer.Objects {
		switch {
		case object.Is(KustomizeGroup, "Kustomization"):
			b.follow(layer, object)
		case object.Is(argoCDGroup, "Application"):
			b.followApplication(object)
		}
	}
}

// followApplication builds what an Application applies from this repository. Without the plugin, nothing is replaced.
func (b *builder) followApplication(object Object) {
	sources := object.List("spec", "sources")
	if source, found, _ := unstructured.NestedMap(object.Object, "spec", "source"); found {
		sources = append(sources, source)
	}
	for i, source := range sources {
		folder, _ := source["path"].(string)
		if source["repoURL"] != b.settings["SOURCE_URL"] || folder == "" {
			continue // a chart, or a folder of another repository
		}
		name, layer := object.GetName(), Layer{Folder: Clean(folder), Declaration: object}
		if i > 0 {
			name += fmt.Sprintf(" %d", i+1)
		}
		if plugin, _ := source["plugin"].(map[string]any); plugin["name"] == cluster.ArgoCDPlugin {
			layer.substitution = b.settings
		} else {
			layer.asWritten = true
		}
		layer.Name = name
		b.layer(layer)
	}
}

// follow builds what a Kustomization of Flux refers to.
func (b *builder) follow(in Layer, object Object) {
	if object.Text("spec", "sourceRef", "name") != cluster.FluxSync {
		b.found(in, "%s: its source is not the tree's; so it is not built", object.Title())
		return
	}
	for _, key := range []string{"patches", "images", "components", "targetNamespace", "commonMetadata", "namePrefix", "nameSuffix"} {
		if _, used, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", key); used {
			b.found(in, "%s: has spec.%s, which is not built here; write it into the folder's kustomization.yaml", object.Title(), key)
			return
		}
	}
	values := map[string]string{}
	for _, from := range object.List("spec", "postBuild", "substituteFrom") {
		switch {
		case from["kind"] == "ConfigMap" && from["name"] == cluster.ClusterSettings:
			maps.Copy(values, b.settings)
		case from["optional"] != true:
			b.found(in, "%s: substitutes from %v %v, which nothing defines", object.Title(), from["kind"], from["name"])
		}
	}
	own, _, err := unstructured.NestedStringMap(object.Object, "spec", "postBuild", "substitute")
	if err != nil {
		b.found(in, "%s: %w", object.Title(), err)
	}
	maps.Copy(values, own)
	b.layer(Layer{Name: object.GetName(), Folder: Clean(object.Text("spec", "path")), Declaration: object, substitution: values})
}

// kustomize builds a folder. Like Flux, it adds a kustomization with all manifests where a folder has none.
func (b *builder) kustomize(folder string) (resmap.ResMap, error) {
	if !b.files.IsDir(folder) {
		return nil, errors.New("the folder does not exist; correct spec.path")
	}
	files := b.files
	if !isKustomization(files, folder) {
		resources, err := manifests(files, folder)
		if err != nil {
			return nil, err
		}
		text, err := yaml.Marshal(kustomize.Kustomization{
			TypeMeta:  kustomize.TypeMeta{APIVersion: kustomize.KustomizationVersion, Kind: kustomize.KustomizationKind},
			Resources: resources,
		})
		if err != nil {
			return nil, err
		}
		files = &withFile{FileSystem: files, name: path.Join(folder, konfig.DefaultKustomizationFileName()), content: text}
	}
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = kustomize.LoadRestrictionsNone // Flux restricts to the repository
	options.AddManagedbyLabel = false
	return krusty.MakeKustomizer(options).Run(files, folder)
}

func isKustomization(files filesys.FileSystem, folder string) bool {
	return slices.ContainsFunc(konfig.RecognizedKustomizationFileNames(), func(name string) bool {
		return files.Exists(path.Join(folder, name))
	})
}

// manifests lists the manifests below a folder, relative to it, and its folders with a kustomization of their own.
func manifests(files filesys.FileSystem, folder string) (names []string, err error) {
	entries, err := files.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name := path.Join(folder, entry)
		switch extension := path.Ext(entry); {
		case files.IsDir(name) && isKustomization(files, name):
			names = append(names, entry)
		case files.IsDir(name):
			below, err := manifests(files, name)
			if err != nil {
				return nil, err
			}
			for _, one := range below {
				names = append(names, path.Join(entry, one))
			}
		case extension == ".yaml" || extension == ".yml":
			names = append(names, entry)
		}
	}
	return names, nil
}

// variableName is what Flux allows as a name in a substitution.
var variableName = regexp.MustCompile(`^[_[:alpha:]][_[:alpha:][:digit:]]*$`)

// substitute replaces the variables of an object, as Flux does in strict mode.
func substitute(one *resource.Resource, values map[string]string, asWritten bool) (Object, error) {
	text, err := one.AsYAML()
	if err != nil {
		return Object{}, err
	}
	const key = KustomizeGroup + "/substitute"
	if !asWritten && one.GetLabels()[key] != "disabled" && one.GetAnnotations()[key] != "disabled" {
		replaced, err := envsubst.Eval(string(text), func(name string) (string, bool) {
			value, defined := values[name]
			return value, defined && variableName.MatchString(name)
		})
		if err != nil {
			return Object{}, err
		}
		text = []byte(replaced)
	}
	object := Object{Unstructured: &unstructured.Unstructured{}}
	if err := yaml.UnmarshalStrict(text, &object.Object); err != nil {
		return Object{}, fmt.Errorf("after substitution: %w", err)
	}
	// Numbers as the API's own decoder makes them.
	written, err := object.MarshalJSON()
	if err != nil {
		return Object{}, err
	}
	return object, object.UnmarshalJSON(written)
}

// Clean returns a path in the repository without ./ and / before it.
func Clean(folder string) string { return cmp.Or(strings.TrimPrefix(path.Clean("/"+folder), "/"), ".") }

// withFile is a file system with one more file.
type withFile struct {
	filesys.FileSystem
	name    string
	content []byte
}

func (w *withFile) same(name string) bool { return strings.HasSuffix("/"+Clean(name), "/"+w.name) }

// Exists reports whether there is such a file.
func (w *withFile) Exists(name string) bool { return w.same(name) || w.FileSystem.Exists(name) }

// ReadFile reads a file.
func (w *withFile) ReadFile(name string) ([]byte, error) {
	if w.same(name) {
		return w.content, nil
	}
	return w.FileSystem.ReadFile(name)
}
