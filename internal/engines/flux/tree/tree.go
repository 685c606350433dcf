// Package tree reads the manifests that Flux applies, to check them with the stack file: its path, its settings and their requirements.
package tree

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
)

// Check returns an error for each use of an undefined setting in the manifests that Flux applies: below a folder of the repository, and in
// the folders to which Kustomizations of Flux in it refer. Settings may be part of such a path. It is nil if the folder does not exist: the
// tree is in another repository.
func Check(repository fs.FS, folder string, settings map[string]string) error {
	if _, err := fs.Stat(repository, clean(folder)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	reader := newReader(repository)
	if err := reader.all(clean(folder), settings); err != nil {
		return err
	}
	return reader.variables(settings)
}

// variables returns an error for each variable that Flux cannot read or that nobody defines.
func (r *reader) variables(settings map[string]string) error {
	return errors.Join(errors.Join(r.broken...), r.undefined(slices.Sorted(maps.Keys(settings))))
}

// reader reads manifests, each once.
type reader struct {
	repository fs.FS
	read       map[string]bool // files and folders
	uses       []Use
	literal    []Use // below Kustomizations that replace nothing
	broken     []error
	unreadable []error         // files that are no YAML
	used       map[string]bool // variables with and without a default
	own        map[string]bool // variables that the tree itself defines
	layer      layer           // of the files that are being read
	declared   []declared
	texts      []text
}

func newReader(repository fs.FS) *reader {
	return &reader{repository: repository, read: map[string]bool{}, used: map[string]bool{}, own: map[string]bool{}}
}

// all is folder, with an error for each file that is no YAML.
func (r *reader) all(folder string, settings map[string]string) error {
	err := r.folder(folder, settings)
	return errors.Join(append(r.unreadable, err)...)
}

// folder reads all manifests below a folder and what they refer to. Of a folder with a kustomization, it reads only that, as Flux does.
func (r *reader) folder(folder string, settings map[string]string) error {
	return fs.WalkDir(r.repository, folder, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			if kustomization := kustomizationIn(r.repository, name); kustomization != "" {
				return cmp.Or(r.once(kustomization, settings), fs.SkipDir)
			}
		}
		switch extension := path.Ext(name); {
		case err != nil:
			return err
		case entry.IsDir() || extension != ".yaml" && extension != ".yml" || r.read[name]:
			return nil
		}
		return r.once(name, settings)
	})
}

// kustomizations are the names that kustomize looks for.
var kustomizations = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// kustomizationIn returns the path of a folder's kustomization; "" if there is none.
func kustomizationIn(repository fs.FS, folder string) string {
	for _, name := range kustomizations {
		if _, err := fs.Stat(repository, path.Join(folder, name)); err == nil {
			return path.Join(folder, name)
		}
	}
	return ""
}

// once reads a file, unless it was read.
func (r *reader) once(name string, settings map[string]string) error {
	if r.read[name] {
		return nil
	}
	r.read[name] = true
	return r.file(name, settings)
}

func (r *reader) file(name string, settings map[string]string) error {
	objects, err := r.objects(name)
	for _, object := range objects {
		if err := r.follow(name, object, settings); err != nil {
			return err
		}
	}
	return err
}

// objects returns the objects in a file, whose uses of settings it adds.
func (r *reader) objects(name string) (objects []object, err error) {
	text, err := fs.ReadFile(r.repository, name)
	if err != nil {
		return nil, err
	}
	for decoder := yaml.NewDecoder(strings.NewReader(string(text))); ; {
		var document yaml.Node
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			r.unreadable = append(r.unreadable, fmt.Errorf("%s: %w; correct it, as Flux applies nothing of its folder", name, err))
			return objects, nil
		}
		var object object
		if err := document.Decode(&object); err != nil {
			object.Kind = "" // of another form than the objects that are followed
		} else if slices.Contains(kustomizations, path.Base(name)) { // which need not say what they are
			object.Kind = cmp.Or(object.Kind, "Kustomization")
			object.APIVersion = cmp.Or(object.APIVersion, kustomizeGroup+"/v1beta1")
		}
		if !object.Metadata.unsubstituted() {
			r.scan(name, &document)
		}
		r.declared = append(r.declared, declared{object, name, &document, r.layer})
		for key := range object.Spec.PostBuild.Substitute {
			r.own[key] = true
		}
		if strings.EqualFold(object.Kind, "Kustomization") { // what it means is clear, so that no more is said than that
			object.Kind = "Kustomization"
		}
		objects = append(objects, object)
	}
}

// object is what is read of a manifest: of a Kustomization of Flux, of one of kustomize, and of any other object.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct {
		Name, Namespace string
		marks           `yaml:",inline"`
	}
	Spec struct {
		Path           string
		SourceRef      struct{ Kind, Name, Namespace string } `yaml:"sourceRef"`
		DependsOn      yaml.Node                              `yaml:"dependsOn"` // of another form in some kinds
		SecretStoreRef struct{ Kind, Name string }            `yaml:"secretStoreRef"`
		Group          string                                 // of a CustomResourceDefinition
		Chart          struct{ Spec struct{ Chart string } }  // of a HelmRelease
		Install        struct {
			CRDs string `yaml:"crds"`
		}
		ServiceAccountName string    `yaml:"serviceAccountName"`
		Source             yaml.Node // of an Application of Argo CD; of another form in some kinds
		Sources            yaml.Node
		PostBuild          struct {
			Substitute     map[string]string
			SubstituteFrom []struct{ Name string } `yaml:"substituteFrom"`
		} `yaml:"postBuild"`
	}
	Resources, Components []string
	Bases                 []string // the former name of resources
	Patches               []struct{ Path string }
	PatchesJSON6902       []struct{ Path string } `yaml:"patchesJson6902"`
	PatchesStrategicMerge []string                `yaml:"patchesStrategicMerge"`
	ConfigMapGenerator    []generator             `yaml:"configMapGenerator"`
	SecretGenerator       []yaml.Node             `yaml:"secretGenerator"`
	HelmCharts            []yaml.Node             `yaml:"helmCharts"`
	GeneratorOptions      marks                   `yaml:"generatorOptions"`
	Provisioner           string                  // of a StorageClass

	Data       any // of a Secret
	StringData any `yaml:"stringData"`
	SOPS       any // how SOPS has encrypted the object
}

// generator makes a ConfigMap.
type generator struct {
	Name        string
	Files, Envs []string
	Options     marks
}

// marks are what objects are marked with.
type marks struct{ Labels, Annotations map[string]string }

// unsubstituted reports whether Flux leaves the object with the marks as it is.
func (m marks) unsubstituted() bool {
	const key = "kustomize.toolkit.fluxcd.io/substitute"
	return m.Labels[key] == "disabled" || m.Annotations[key] == "disabled"
}

// layer is the Kustomization of Flux, or the Application of Argo CD, that applies a manifest, as far as it replaces variables.
type layer struct {
	name    string // "" for that of the handover, which has the settings
	nothing bool   // is replaced: without spec.postBuild
	without bool   // the settings, but with others

	application bool
}

func (o object) layer() layer {
	build := o.Spec.PostBuild
	return layer{
		name:    o.Metadata.Name,
		nothing: len(build.Substitute)+len(build.SubstituteFrom) == 0,
		without: !slices.ContainsFunc(build.SubstituteFrom, func(from struct{ Name string }) bool {
			return from.Name == cluster.ClusterSettings
		}),
	}
}

// follow reads what an object refers to, as far as it is in this repository.
func (r *reader) follow(name string, object object, settings map[string]string) error {
	var folders []string
	switch group, _, _ := strings.Cut(object.APIVersion, "/"); {
	case group == argoCDGroup && object.Kind == "Application":
		folders = object.applicationFolders(settings)
	case object.Kind != "Kustomization" && object.Kind != "Component":
	case group == layerGroup && object.Spec.Path != "" && object.Spec.SourceRef.Name == cluster.FluxSync:
		folders = append(folders, object.Spec.Path)
	case group == kustomizeGroup:
		if err := r.generated(name, object); err != nil {
			return err
		}
		for _, resource := range slices.Concat(object.allResources(), object.Components) {
			if !isRemote(resource) {
				folders = append(folders, path.Join(path.Dir(name), resource))
			}
		}
	}
	above := r.layer
	defer func() { r.layer = above }()
	switch group, _, _ := strings.Cut(object.APIVersion, "/"); group {
	case layerGroup:
		r.layer = object.layer()
	case argoCDGroup:
		r.layer = object.applicationLayer()
	}
	for _, folder := range folders {
		at := clean(expand(folder, settings))
		if strings.HasPrefix(at, "..") || r.read[at] {
			continue
		}
		info, err := fs.Stat(r.repository, at)
		if err != nil && object.Metadata.Name == "" {
			return fmt.Errorf("%s: %s is not in the repository; %s, or remove its line%s", name, at, r.bringing(at), r.comment(name, path.Base(at)))
		}
		if err != nil {
			return fmt.Errorf("%s: %s %s: its path %s is not in the repository", name, object.Kind, object.Metadata.Name, at)
		}
		if !info.IsDir() { // of any ending, such as .json
			if err := r.once(at, settings); err != nil {
				return err
			}
			continue
		}
		r.read[at] = true
		if err := r.folder(at, settings); err != nil {
			return err
		}
	}
	return nil
}

// bringing returns how a file or folder gets into the repository: the command writes the areas of Slipway.
func (r *reader) bringing(at string) string {
	above, name := path.Split(at)
	switch above {
	case "kubernetes/infrastructure/", "kubernetes/argocd/":
		if meant := cluster.Suggest(name, folders(r.repository, path.Clean(above))); meant != "" {
			return "did you mean " + above + meant + "? Otherwise commit it"
		}
		return "if it is an area of Slipway, write it with: slipway manifests " + name + "; otherwise commit it"
	}
	return "commit it"
}

// comment returns what a manifest's first line says of a file, for the end of a message; "" if it does not begin with the file's name.
func (r *reader) comment(manifest, file string) string {
	text, _ := fs.ReadFile(r.repository, manifest)
	line, _, _ := strings.Cut(string(text), "\n")
	if said, is := strings.CutPrefix(line, "# "+file+" "); is {
		return fmt.Sprintf(" (its comment says: %s %s)", file, said)
	}
	return ""
}

// generated adds the variables in the files of the ConfigMaps that a kustomization makes. Those of its Secrets are encoded before Flux
// replaces anything.
func (r *reader) generated(kustomization string, object object) error {
	for _, generator := range object.ConfigMapGenerator {
		if object.GeneratorOptions.unsubstituted() || generator.Options.unsubstituted() {
			continue
		}
		for _, source := range slices.Concat(generator.Files, generator.Envs) {
			_, file, hasKey := strings.Cut(source, "=")
			if !hasKey {
				file = source
			}
			at := path.Join(path.Dir(kustomization), file)
			if strings.HasPrefix(at, "..") {
				continue
			}
			text, err := fs.ReadFile(r.repository, at)
			if err != nil {
				return fmt.Errorf("%s: configMapGenerator %s: %s is not in the repository", kustomization, generator.Name, at)
			}
			if utf8.Valid(text) {
				r.text(at, &yaml.Node{Kind: yaml.ScalarNode, Value: string(text), Line: 1})
			}
		}
	}
	return nil
}

// choice is a use of a setting, possibly with a default.
var choice = regexp.MustCompile(`\$\{([_A-Za-z][_A-Za-z0-9]*)(?::?[=-]([^}]*))?\}`)

// expand replaces the settings in a path.
func expand(folder string, settings map[string]string) string {
	return choice.ReplaceAllStringFunc(folder, func(use string) string {
		match := choice.FindStringSubmatch(use)
		return cmp.Or(settings[match[1]], match[2])
	})
}

func clean(folder string) string {
	if at := strings.TrimPrefix(path.Clean("/"+folder), "/"); at != "" {
		return at
	}
	return "."
}
