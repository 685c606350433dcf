package tree

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
)

// packageFolder is the variable with this package's folder, for programs that run elsewhere.
const packageFolder = "PACKAGE_FOLDER"

// TestMain makes this program the kustomize and the helm of Argo CD's plugin, when it is called by such a name.
func TestMain(m *testing.M) {
	programs := map[string]func(args []string) (string, error){"kustomize": kustomizeProgram, "helm": helmProgram}
	program, found := programs[filepath.Base(os.Args[0])]
	if !found {
		os.Exit(m.Run())
	}
	out, err := program(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(out)
}

func kustomizeProgram(args []string) (string, error) {
	if len(args) != 2 || args[0] != "build" {
		return "", fmt.Errorf("kustomize %s: the test does not know this", strings.Join(args, " "))
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), args[1])
	if err != nil {
		return "", err
	}
	text, err := built.AsYaml()
	return string(text), err
}

// helmProgram pulls charts from where this package has them, and renders them as Helm does. It refuses to be called in another way than
// Argo CD's helm is called for the charts of the tree.
func helmProgram(args []string) (string, error) {
	flags := pflag.NewFlagSet("helm", pflag.ContinueOnError)
	repo, version, to := flags.String("repo", "", ""), flags.String("version", "", ""), flags.String("untardir", "", "")
	namespace, values, capabilities := flags.String("namespace", "", ""), flags.String("values", "", ""), flags.String("api-versions", "", "")
	kube, noTests, untar := flags.String("kube-version", "", ""), flags.Bool("skip-tests", false, ""), flags.Bool("untar", false, "")
	if err := flags.Parse(args); err != nil {
		return "", err
	}
	switch args = flags.Args(); {
	case args[0] == "pull" && *untar && (*repo != "") != strings.HasPrefix(args[1], "oci://"):
		return "", pull(path.Base(args[1]), *version, *to)
	case args[0] == "template" && *noTests && *kube == kubeVersion && *capabilities == apiVersions:
		return templated(args[1], args[2], *namespace, *values)
	}
	return "", fmt.Errorf("helm %s: the test does not know this", strings.Join(args, " "))
}

// What Argo CD says of the cluster in the variables of a plugin.
const kubeVersion, apiVersions = "1.36", "v1,apps/v1"

func pull(name, version, to string) error {
	if err := os.Chdir(os.Getenv(packageFolder)); err != nil {
		return err
	}
	loaded, _, err := chartOf(name)
	if err == nil && loaded.Metadata.Version != version {
		err = fmt.Errorf("chart %s: is asked for %s, and there is %s", name, version, loaded.Metadata.Version)
	}
	if err != nil {
		return err
	}
	return chartutil.SaveDir(loaded, to)
}

func templated(release, folder, namespace, file string) (string, error) {
	loaded, err := loader.LoadDir(folder)
	if err != nil {
		return "", err
	}
	values, err := chartutil.ReadValuesFile(file)
	if err != nil {
		return "", err
	}
	if err := chartutil.ProcessDependencies(loaded, values); err != nil {
		return "", err
	}
	objects, err := objectsOf(loaded, values, release, namespace)
	var text strings.Builder
	for _, object := range objects {
		if object.GetNamespace() == namespace { // helm template does not write it
			object.SetNamespace("")
		}
		one, marshalErr := yaml.Marshal(object.Object)
		if marshalErr != nil {
			return "", marshalErr
		}
		text.WriteString("---\n" + string(one))
	}
	return text.String(), err
}

// plugin runs Argo CD's plugin in a folder of the repository, as its container does.
type plugin struct {
	script, checkout, settings, programs, temporary string
}

func newPlugin(t *testing.T, settings map[string]string) plugin {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(repository, "cluster", "argocd", "substitute.sh"))
	require.NoError(t, err)
	p := plugin{string(script), t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()}
	require.NoError(t, os.CopyFS(filepath.Join(p.checkout, "kubernetes"), os.DirFS(filepath.Join(repository, "kubernetes"))))
	for name, value := range settings {
		require.NoError(t, os.WriteFile(filepath.Join(p.settings, name), []byte(value), 0o600))
	}
	this, err := os.Executable()
	require.NoError(t, err)
	for _, name := range []string{"kustomize", "helm"} {
		require.NoError(t, os.Symlink(this, filepath.Join(p.programs, name)))
	}
	return p
}

func (p plugin) render(folder string) ([]Object, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	run := exec.Command("bash", "-c", `eval "$PLUGIN"`)
	run.Dir = filepath.Join(p.checkout, folder)
	run.Env = append(os.Environ(), "PLUGIN="+p.script, "SETTINGS_DIR="+p.settings, "TMPDIR="+p.temporary, packageFolder+"="+here,
		"KUBE_VERSION="+kubeVersion, "KUBE_API_VERSIONS="+apiVersions,
		"PATH="+p.programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	var out, problems bytes.Buffer
	run.Stdout, run.Stderr = &out, &problems
	if err := run.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, problems.String())
	}
	var objects []Object
	for document := range strings.SplitSeq("\n"+out.String(), "\n---\n") {
		object := Object{Unstructured: &unstructured.Unstructured{}}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// plain are objects by their titles, without what only Argo CD reads, and cluster-scoped ones without a namespace: Argo CD removes it.
func plain(t *testing.T, objects []Object) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, object := range objects {
		text, err := yaml.Marshal(object.Object)
		require.NoError(t, err)
		object = Object{Unstructured: &unstructured.Unstructured{}}
		require.NoError(t, yaml.Unmarshal(text, &object.Object))
		annotations := object.GetAnnotations()
		maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "argocd.argoproj.io/") })
		object.SetAnnotations(annotations)
		if len(annotations) == 0 {
			object.SetAnnotations(nil)
		}
		if clusterScoped(object) || object.GetKind() == "Namespace" {
			object.SetNamespace("")
		}
		text, err = yaml.Marshal(object.Object)
		require.NoError(t, err)
		title := object.GetAPIVersion() + " " + object.Title()
		require.NotContains(t, texts, title)
		texts[title] = string(text)
	}
	return texts
}

// One tree for both engines: the values, changes and order are those with which helm-controller would install the charts.
func TestArgoCDPlugin_MakesOfAHelmReleaseWhatHelmControllerMakes(t *testing.T) {
	trees := clusters(t)
	rendered := map[string]bool{}
	for name, change := range variants {
		stack := stacks(t)[0]
		layers, found := trees[stack.Identity.Name+name]
		require.True(t, found)
		settings := stack.Settings()
		maps.Copy(settings, change.settings)
		p := newPlugin(t, settings)
		for _, layer := range layers {
			if rendered[layer.Folder] || len(change.keys) > 0 {
				continue
			}
			var want []Object
			releases := 0
			for _, object := range layer.Objects {
				switch {
				case object.Is(helmGroup, "HelmRelease"):
					made, _, err := Render(object)
					require.NoError(t, err)
					want = append(want, made...)
					releases++
				case !object.Is(sourceGroup, "HelmRepository"):
					want = append(want, object)
				}
			}
			if releases == 0 {
				continue
			}
			rendered[layer.Folder] = true
			got, err := p.render(layer.Folder)
			require.NoError(t, err, layer.Folder)
			assert.Equal(t, plain(t, want), plain(t, got), layer.Folder)
			for _, object := range got {
				wave := object.GetAnnotations()["argocd.argoproj.io/sync-wave"]
				assert.Equal(t, object.GetKind() == "Driver" || strings.Contains(object.GetName(), "rbd-csi-ceph-com") ||
					object.GetKind() == "OperatorConfig", wave == "1", "%s: has the wave %q", object.Title(), wave)
			}
		}
	}
	assert.Len(t, rendered, 9, "%v", slices.Sorted(maps.Keys(rendered)))
}

// byArgoCD is the tree of a stack with Argo CD: all areas, and no workload.
func byArgoCD(t *testing.T, files filesys.FileSystem, stack *cluster.Cluster, change variant) []Layer {
	t.Helper()
	areas, err := files.ReadDir("kubernetes/argocd")
	require.NoError(t, err)
	folder := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\ncomponents: [../../argocd/application]\nresources:\n"
	for _, area := range areas {
		if area != "application" {
			folder += "  - ../../argocd/" + area + "\n"
		}
	}
	require.NoError(t, files.WriteFile(path.Join(stack.GitOps.Path, "kustomization.yaml"), []byte(folder)))
	stack.GitOps.Engine, stack.Storage.Vault = cluster.EngineArgoCD, ""
	settings := stack.Settings()
	maps.Copy(settings, change.settings)
	layers, err := Build(files, stack.GitOps.Path, settings)
	require.NoError(t, err)
	return layers
}

// The tree is one tree: both engines apply the same folders, and what Flux applies later has a later wave.
func TestArgoCD_AppliesTheFoldersThatFluxApplies(t *testing.T) {
	for _, change := range variants {
		for _, stack := range stacks(t) {
			files := checkout(t)
			for folder, secret := range change.keys {
				require.NoError(t, files.WriteFile(path.Join("kubernetes/infrastructure", folder, "key.yaml"), []byte(committed(secret))))
			}
			change.settings = with(map[string]string{"STORAGE_CONNECTION": "git"}, change.settings) // without the vault, which only Flux fills
			settings := with(stack.Settings(), change.settings)
			byFlux, err := Build(files, stack.GitOps.Path, settings)
			require.NoError(t, err)
			waves, folders := map[string]int{}, map[string]string{}
			for _, layer := range byArgoCD(t, files, stack, change)[1:] {
				wave, err := strconv.Atoi(layer.Declaration.GetAnnotations()["argocd.argoproj.io/sync-wave"])
				require.NoError(t, err, layer.Name)
				assert.Equal(t, "argocd", layer.Declaration.GetNamespace(), layer.Name)
				waves[layer.Name], folders[layer.Name] = wave, layer.Folder
			}
			for _, layer := range byFlux[1:] {
				if !strings.HasPrefix(layer.Folder, "kubernetes/infrastructure/") || layer.Name == "alerts" { // of Flux's own controller
					continue
				}
				assert.Equal(t, strings.Replace(layer.Folder, "scrapes/flux", "scrapes/argocd", 1), folders[layer.Name], layer.Name)
				delete(folders, layer.Name)
				for _, before := range layer.Declaration.List("spec", "dependsOn") {
					other, _ := before["name"].(string)
					assert.Less(t, waves[other], waves[layer.Name], "%s depends on %s", layer.Name, other)
				}
			}
			assert.Empty(t, folders, "Flux applies no such folder")
		}
	}
}
