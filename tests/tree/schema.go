package tree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// crdSources are the pinned Go modules that contain the CRDs of the tree's custom resources: the folder of the Go module that pins
// the version, relative to the lab's tools, the module, and the files in it.
var crdSources = []struct{ pinnedIn, module, files string }{
	{"cilium", "github.com/cilium/cilium", "pkg/k8s/apis/cilium.io/client/crds/*/*.yaml"},
	{"gateway-api-crds", "sigs.k8s.io/gateway-api", "config/crd/standard/*.yaml"},
	{"flux", "github.com/cert-manager/cert-manager", "deploy/crds/*.yaml"},
	{"flux", "github.com/fluxcd/kustomize-controller", "config/crd/bases/*.yaml"},
	{"flux", "github.com/fluxcd/helm-controller", "config/crd/bases/*.yaml"},
	{"flux", "github.com/fluxcd/source-controller", "config/crd/bases/*.yaml"},
	{"../../tests/tree/sources", "github.com/fluxcd/notification-controller", "config/crd/bases/*.yaml"},
	{"../../tests/tree/sources", "github.com/external-secrets/external-secrets", "deploy/crds/bundle.yaml"},
	{"prometheus-operator-crds", "github.com/prometheus-operator/prometheus-operator", "example/prometheus-operator-crd/*.yaml"},
	{"victoriametrics-operator-crds", "github.com/VictoriaMetrics/operator", "config/crd/overlay/crd.descriptionless.yaml"},
	{"cloudnative-pg-crds", "github.com/cloudnative-pg/cloudnative-pg", "releases/cnpg-VERSION.yaml"},
	{"rook-crds", "github.com/rook/rook", "deploy/examples/crds.yaml"},
	{"rook-crds", "github.com/ceph/ceph-csi-operator", cephCSICRDs},
}

// cephCSICRDs is the file of the CRDs of the CSI drivers' operator, in its module.
const cephCSICRDs = "deploy/multifile/crd.yaml"

// module returns the folder of a Go module in the version that a module of the lab pins, and that version. Go downloads it if needed.
func module(pinnedIn, name string) (dir, version string, err error) {
	command := exec.Command("go", "mod", "download", "-json", name)
	command.Dir = filepath.Join(repository, "lab", "tools", pinnedIn)
	command.Env = append(os.Environ(), "GOWORK=off")
	out, err := command.Output()
	if err != nil {
		return "", "", fmt.Errorf("go mod download %s in %s: %w: %s", name, command.Dir, err, out)
	}
	var module struct{ Dir, Version string }
	if err := json.Unmarshal(out, &module); err != nil {
		return "", "", err
	}
	return module.Dir, module.Version, nil
}

// Schemas validate objects as the API server does, without one.
type Schemas struct {
	kinds  map[schema.GroupVersionKind]*kind
	strict runtime.Decoder // of the kinds that are built into Kubernetes
}

// kind is what is known of a custom resource.
type kind struct {
	structural *structural.Structural
	validator  validation.SchemaValidator
	cel        *cel.Validator
	namespaced bool
}

// repository is the root of the checkout.
const repository = "../.."

// NewSchemas reads the CRDs of all sources.
func NewSchemas() (*Schemas, error) {
	s := &Schemas{
		kinds:  map[schema.GroupVersionKind]*kind{},
		strict: serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer(),
	}
	for _, source := range crdSources {
		dir, version, err := module(source.pinnedIn, source.module)
		if err != nil {
			return nil, err
		}
		pattern := strings.ReplaceAll(source.files, "VERSION", strings.TrimPrefix(version, "v"))
		files, err := fs.Glob(os.DirFS(dir), pattern)
		if err == nil && len(files) == 0 {
			err = errors.New("no such file")
		}
		if err != nil {
			return nil, fmt.Errorf("CRDs of %s %s: %s: %w", source.module, version, pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				return nil, err
			}
			if err := s.add(string(text)); err != nil {
				return nil, fmt.Errorf("%s: %w", filepath.Join(dir, file), err)
			}
		}
	}
	own, err := os.ReadFile(filepath.Join("..", "..", "lab", "kube", "manifests", "talos-service-account-crd.yaml"))
	if err != nil {
		return nil, err
	}
	return s, s.add(string(own))
}

// add adds the CRDs in a file; other objects in it are left out.
func (s *Schemas) add(text string) error {
	for document := range strings.SplitSeq("\n"+text, "\n---") {
		if !strings.Contains(document, "kind: CustomResourceDefinition") {
			continue
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal([]byte(document), &crd); err != nil {
			return err
		}
		if crd.Kind != "CustomResourceDefinition" {
			continue
		}
		for _, version := range crd.Spec.Versions {
			if !version.Served || version.Schema == nil {
				continue
			}
			one, err := newKind(version.Schema.OpenAPIV3Schema)
			if err != nil {
				return fmt.Errorf("%s %s: %w", crd.Name, version.Name, err)
			}
			one.namespaced = crd.Spec.Scope == apiextensionsv1.NamespaceScoped
			s.kinds[schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}] = one
		}
	}
	return nil
}

func newKind(published *apiextensionsv1.JSONSchemaProps) (*kind, error) {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(published, &internal, nil); err != nil {
		return nil, err
	}
	structured, err := structural.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return nil, err
	}
	return &kind{
		structural: structured, validator: validator,
		cel: cel.NewValidator(structured, true, celconfig.PerCallLimit),
	}, nil
}

// Validate returns every problem of an object: a kind without a schema, fields that its schema does not have, and values that it does
// not allow. The rules in CEL are evaluated as for a new object.
func (s *Schemas) Validate(object Object) error {
	of := object.GroupVersionKind()
	one, custom := s.kinds[of]
	switch {
	case !custom && scheme.Scheme.Recognizes(of):
		text, err := object.MarshalJSON()
		if err == nil {
			_, _, err = s.strict.Decode(text, nil, nil)
		}
		return err
	case !custom:
		return fmt.Errorf("there is no schema of %s %s; add its CRD to crdSources", of.GroupVersion(), of.Kind)
	case one.namespaced != (object.GetNamespace() != ""):
		return fmt.Errorf("metadata.namespace: is %q, and the kind is namespaced: %t", object.GetNamespace(), one.namespaced)
	}
	return one.validate(object)
}

func (k *kind) validate(object Object) error {
	full := object.DeepCopy().Object
	var problems []error
	unknown := pruning.PruneWithOptions(full, k.structural, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		problems = append(problems, fmt.Errorf("%s: is no field of this kind", path))
	}
	defaulting.Default(full, k.structural)
	for _, problem := range validation.ValidateCustomResource(nil, full, k.validator) {
		problems = append(problems, problem)
	}
	if len(problems) == 0 && k.cel != nil {
		failed, _ := k.cel.Validate(context.Background(), field.NewPath(""), k.structural, full, nil, celconfig.RuntimeCELCostBudget)
		for _, problem := range failed {
			problems = append(problems, problem)
		}
	}
	return errors.Join(problems...)
}
