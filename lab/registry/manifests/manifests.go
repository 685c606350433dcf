// Package manifests serves the release manifests with CRDs, under the projects' own addresses. Two of them are files in
// the projects' sources; the others it builds from the sources, in the way of the projects.
package manifests

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Sources are the folders with the manifests or their sources, each of one release.
type Sources struct {
	GatewayAPI, CertManager, ExternalSecrets, PrometheusOperator Release

	VictoriaMetrics Release // contains crd.descriptionless.yaml, the published file
	CloudNativePG   Release // contains cnpg-VERSION.yaml, the published file
	Rook            Release // contains crds.yaml, the published file
	CephCSI         Release // contains crd.yaml, the published file
}

// Release is a folder of CRDs with the version of the release, without a v, and the versions under which it is served.
type Release struct {
	Version, Dir string
	Served       []string // nil: Version
}

func (r Release) served() []string {
	if r.Served == nil {
		return []string{r.Version}
	}
	return r.Served
}

const victoriaMetricsFile = "crd.descriptionless.yaml"

// Hosts of the manifests.
const (
	GitHub = "github.com"                           // releases; each file is a redirect to Assets
	Assets = "release-assets.githubusercontent.com" // serves the files of a release
	Raw    = "raw.githubusercontent.com"            // files of a repository
)

// Files are manifests by host and path.
type Files map[string]map[string][]byte

// New builds the manifests.
func New(s Sources) (Files, error) {
	files := Files{GitHub: {}, Raw: {}}
	for _, m := range []struct {
		host, path string
		release    Release
		change     func(map[string]any)
	}{
		{GitHub, "/kubernetes-sigs/gateway-api/releases/download/v%s/standard-install.yaml", s.GatewayAPI, nil},
		{GitHub, "/cert-manager/cert-manager/releases/download/v%s/cert-manager.crds.yaml", s.CertManager, nil},
		{GitHub, "/prometheus-operator/prometheus-operator/releases/download/v%s/stripped-down-crds.yaml", s.PrometheusOperator,
			stripDescriptions},
		{Raw, "/external-secrets/external-secrets/v%s/deploy/crds/bundle.yaml", s.ExternalSecrets, nil},
	} {
		content, err := join(m.release.Dir, m.change)
		if err != nil {
			return nil, fmt.Errorf("release manifest %s: %w", filepath.Base(m.path), err)
		}
		for _, version := range m.release.served() {
			files[m.host][fmt.Sprintf(m.path, version)] = content
		}
	}
	if err := files.addPublished(s); err != nil {
		return nil, err
	}
	return files, nil
}

// addPublished adds the manifests that are files in the projects' sources, byte for byte.
func (f Files) addPublished(s Sources) error {
	for _, one := range []struct {
		project, file string
		release       Release
		path          string // in the repository's files, with the place of the version
	}{
		{"VictoriaMetrics operator", victoriaMetricsFile, s.VictoriaMetrics,
			"/VictoriaMetrics/operator/v%s/config/crd/overlay/" + victoriaMetricsFile},
		{"Rook", "crds.yaml", s.Rook, "/rook/rook/v%s/deploy/examples/crds.yaml"},
		{"Ceph CSI operator", "crd.yaml", s.CephCSI, "/ceph/ceph-csi-operator/v%s/deploy/multifile/crd.yaml"},
	} {
		crds, err := os.ReadFile(filepath.Join(one.release.Dir, one.file))
		if err != nil {
			return fmt.Errorf("release manifest of %s %s: %w", one.project, one.release.Version, err)
		}
		f[Raw][fmt.Sprintf(one.path, one.release.Version)] = crds
	}
	name := "cnpg-" + s.CloudNativePG.Version + ".yaml"
	install, err := os.ReadFile(filepath.Join(s.CloudNativePG.Dir, name))
	if err != nil {
		return fmt.Errorf("release manifest of CloudNativePG %s: %w", s.CloudNativePG.Version, err)
	}
	minor := s.CloudNativePG.Version[:strings.LastIndex(s.CloudNativePG.Version, ".")]
	f[Raw]["/cloudnative-pg/cloudnative-pg/release-"+minor+"/releases/"+name] = install
	return nil
}

// join joins the CRDs in a folder to one manifest.
func join(dir string, change func(map[string]any)) ([]byte, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, path := range paths {
		if filepath.Base(path) == "kustomization.yaml" {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if change != nil {
			var object map[string]any
			if err := yaml.Unmarshal(content, &object); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			change(object)
			if content, err = yaml.Marshal(object); err != nil {
				return nil, err
			}
		}
		fmt.Fprintf(&out, "---\n%s\n", content)
	}
	if out.Len() == 0 {
		return nil, fmt.Errorf("no CRD in %s", dir)
	}
	return out.Bytes(), nil
}

// stripDescriptions removes every description whose value is a string. It keeps fields with that name.
func stripDescriptions(object map[string]any) {
	for key, value := range object {
		switch value := value.(type) {
		case string:
			if key == "description" {
				delete(object, key)
			}
		case map[string]any:
			stripDescriptions(value)
		case []any:
			for _, element := range value {
				if element, is := element.(map[string]any); is {
					stripDescriptions(element)
				}
			}
		}
	}
}

// Handlers serve the manifests, by host. A missing file is answered as by these hosts.
func (f Files) Handlers() map[string]http.Handler {
	return map[string]http.Handler{
		GitHub: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, found := f[GitHub][r.URL.Path]; !found {
				http.Error(w, "Not Found", http.StatusNotFound)
				return
			}
			http.Redirect(w, r, "https://"+Assets+r.URL.Path, http.StatusFound)
		}),
		Assets: serve(f[GitHub]),
		Raw:    serve(f[Raw]),
	}
}

func serve(files map[string][]byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, found := files[r.URL.Path]
		if !found {
			http.Error(w, "404: Not Found", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		http.ServeContent(w, r, strings.TrimPrefix(filepath.Base(r.URL.Path), "/"), time.Time{}, bytes.NewReader(content))
	})
}
