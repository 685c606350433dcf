package release

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/fluxcd/pkg/envsubst"
	"gopkg.in/yaml.v3"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
)

// decode returns the objects of a file with the settings substituted, as Flux does it: in the text of each object, after reading it.
func decode(text []byte, settings map[string]string) ([]map[string]any, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var objects []map[string]any
	for {
		var tree map[string]any
		switch err := decoder.Decode(&tree); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("is not YAML that can be read: %w", err)
		case len(tree) == 0:
			continue
		}
		written, err := sigsyaml.Marshal(tree)
		if err != nil {
			return nil, fmt.Errorf("is not YAML of Kubernetes: %w", err)
		}
		complete, err := substitute(string(written), settings)
		if err != nil {
			return nil, err
		}
		var object map[string]any
		if err := sigsyaml.Unmarshal([]byte(complete), &object); err != nil {
			return nil, fmt.Errorf("is not YAML once the cluster settings are substituted: %w", err)
		}
		objects = append(objects, object)
	}
}

// literal is what substitute would change.
var literal = regexp.MustCompile(`\$\$+|\$+\{`)

// substitute replaces the settings in a text.
func substitute(text string, settings map[string]string) (string, error) {
	last := "" // the variable that was looked for last
	replaced, err := envsubst.Eval(text, func(name string) (string, bool) {
		last = name
		return settings[name], settings[name] != ""
	})
	switch {
	case err != nil && last == "":
		return "", fmt.Errorf("has a $ that Flux cannot read: %w; write $$ for a $ of the text's own", err)
	case err != nil:
		return "", fmt.Errorf("has ${%s}, which is no setting of the cluster", last)
	}
	return replaced, nil
}

func asJSON(tree map[string]any) cluster.ChartValues {
	text, err := json.Marshal(tree)
	if err != nil {
		panic("flux/release: values that were read cannot be written: " + err.Error())
	}
	return text
}

// Text returns the file that declares a release to an engine as the stack file declares it to Pulumi.
func Text(release cluster.Service) (string, error) {
	values, err := release.UserValues.Tree()
	if err != nil {
		return "", err
	}
	repository := map[string]any{"interval": "1h", "url": release.Repository}
	chart := release.Chart
	if release.Repository == "" {
		repository["type"], repository["url"] = "oci", folderOf(release.Chart)
		chart = path.Base(release.Chart)
	}
	spec := map[string]any{
		"interval": "10m", "releaseName": release.Name, "targetNamespace": release.Namespace, "storageNamespace": cluster.FluxNamespace,
		"chart": map[string]any{"spec": map[string]any{
			"chart": chart, "version": release.Version,
			"sourceRef": map[string]any{"kind": helmRepository, "name": release.Name},
		}},
		"install": map[string]any{
			"crds": "Skip", "disableWait": true, "serverSideApply": false, "strategy": map[string]any{"name": "RetryOnFailure"},
		},
		"upgrade": map[string]any{
			"crds": "Skip", "disableWait": true, "serverSideApply": disabled, "strategy": map[string]any{"name": "RetryOnFailure"},
		},
		"valuesFrom": []any{map[string]any{"kind": "Secret", "name": cluster.ValuesSecret(release.Name)}},
	}
	if len(values) > 0 {
		spec["values"] = values
	}
	var text strings.Builder
	fmt.Fprintf(&text, `# Flux or Argo CD owns %s: change its version and its values here. What Slipway sets in the chart comes from the Secret
# %s, which `+"`pulumi up`"+` writes, and must not be set here. docs/gitops.md says how to hand it over and back.
`, release.Name, cluster.ValuesSecret(release.Name))
	for i, object := range []map[string]any{
		{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": helmRepository, "metadata": metadata(release, nil), "spec": repository},
		{"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": helmRelease, "spec": spec,
			"metadata": metadata(release, map[string]any{annotationPrune: disabled})},
	} {
		if i > 0 {
			text.WriteString("---\n")
		}
		written, err := sigsyaml.Marshal(object)
		if err != nil {
			return "", err
		}
		text.WriteString(literal.ReplaceAllStringFunc(string(written), func(dollars string) string {
			return strings.ReplaceAll(dollars, "$", "$$")
		}))
	}
	return text.String(), nil
}

func metadata(release cluster.Service, annotations map[string]any) map[string]any {
	all := map[string]any{"name": release.Name, "namespace": cluster.FluxNamespace}
	if annotations != nil {
		all["annotations"] = annotations
	}
	return all
}

// Application returns the Application of Argo CD for the files of a cluster's releases. Argo CD takes over the fields that Helm has set, by
// the name of its program, so that it removes what is not in Git any more.
func Application(git cluster.GitOps) string {
	return `# Argo CD applies the components that it owns. docs/argocd.md says how to hand them over and back.
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: platform
  annotations:
    argocd.argoproj.io/client-side-apply-migration-manager: pulumi-resource-kubernetes
spec:
  source:
    path: ` + path.Dir(File(git, "any")) + `
  syncPolicy:
    automated:
      allowEmpty: true # nothing is there while all are suspended
`
}

// folderOf returns the part of an oci:// reference before the chart's name.
func folderOf(chart string) string { return chart[:strings.LastIndex(chart, "/")] }
