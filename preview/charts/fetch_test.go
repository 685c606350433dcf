package charts

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/preview/report"
)

// host is a chart repository and an OCI registry. It counts requests by path, and models neither tokens nor uploads.
type host struct {
	*httptest.Server

	name  string
	files map[string][]byte // by path
	asked map[string]int
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{files: map[string][]byte{}, asked: map[string]int{}}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.asked[r.URL.Path]++
		content, is := h.files[r.URL.Path]
		if !is {
			http.NotFound(w, r)
			return
		}
		if strings.Contains(r.URL.Path, "/manifests/") {
			w.Header().Set("Content-Type", v1.MediaTypeImageManifest)
			w.Header().Set("Docker-Content-Digest", digest(content))
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(h.Close)
	h.name = strings.TrimPrefix(h.URL, "https://")
	return h
}

func digest(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

// serves makes the host a repository below a path, with chart one in the version v1.2.3, and returns that chart.
func (h *host) serves(t *testing.T, path, template string) report.Chart {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(archive(t, template), "one-1.2.3.tgz"))
	require.NoError(t, err)
	h.files[path+"/index.yaml"] = []byte("apiVersion: v1\nentries:\n  one:\n  - {name: one, version: v1.3.0, urls: [files/one-v1.3.0.tgz]}\n" +
		"  - {name: one, version: v1.2.3, urls: [files/one-v1.2.3.tgz]}\n")
	h.files[path+"/files/one-v1.2.3.tgz"] = content
	return report.Chart{Name: "release", Namespace: "apps", Chart: "one", Version: "1.2.3", Repository: h.URL + path}
}

// pushes makes the host a registry with a chart in an image, and returns it.
func (h *host) pushes(t *testing.T, image, version, template string) report.Chart {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(archive(t, template), "one-1.2.3.tgz"))
	require.NoError(t, err)
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": v1.MediaTypeImageManifest,
		"layers": []any{map[string]any{"mediaType": chartType, "digest": digest(content), "size": len(content)}},
	})
	require.NoError(t, err)
	h.files["/v2/"+image+"/manifests/"+strings.ReplaceAll(version, "+", "_")] = manifest
	h.files["/v2/"+image+"/blobs/"+digest(content)] = content
	return report.Chart{Name: "release", Namespace: "apps", Chart: "oci://" + h.name + "/" + image, Version: version}
}

const (
	small = "kind: ConfigMap\nmetadata: {name: settings}\ndata: {size: small}\n"
	large = "kind: ConfigMap\nmetadata: {name: settings}\ndata: {size: large}\n"
)

func renderer(h *host, folder string) Renderer {
	return Renderer{Folders: []string{folder}, Kubernetes: "v1.35.8", Fetcher: &Fetcher{Folder: folder, Client: h.Client()}}
}

func TestFetcher_FetchesWhatIsMissingOnce(t *testing.T) {
	h, folder := newHost(t), t.TempDir()
	for _, one := range []report.Chart{h.serves(t, "/charts", small), h.pushes(t, "org/one", "1.2.3+build", small)} {
		renderer(h, folder).Add(t.Context(), &one)
		require.Empty(t, one.Unrendered)
		assert.Contains(t, one.Manifests["ConfigMap apps/settings"], "data.size = small")
	}
	for _, file := range []string{"charts/one-1.2.3.tgz", "org/one-1.2.3+build.tgz"} {
		assert.FileExists(t, filepath.Join(folder, h.name, filepath.FromSlash(file)))
	}

	h.Close()
	for _, one := range []report.Chart{
		{Name: "release", Namespace: "apps", Chart: "one", Version: "1.2.3", Repository: h.URL + "/charts/"},
		{Name: "release", Namespace: "apps", Chart: "oci://" + h.name + "/org/one", Version: "1.2.3+build"},
	} {
		Renderer{Folders: []string{folder}, Kubernetes: "v1.35.8"}.Add(t.Context(), &one)
		assert.Empty(t, one.Unrendered, "it is on this computer now")
		assert.NotEmpty(t, one.Manifests)
	}
}

// Otherwise a change that only takes a chart from elsewhere would look as if the manifests stayed the same.
func TestFetcher_TheSameVersionOfAnotherRepositoryIsAnotherChart(t *testing.T) {
	h, folder := newHost(t), t.TempDir()
	r := renderer(h, folder)
	one, other := h.serves(t, "/one", small), h.serves(t, "/other", large)
	r.Add(t.Context(), &one)
	r.Add(t.Context(), &other)
	assert.Contains(t, one.Manifests["ConfigMap apps/settings"], "data.size = small")
	assert.Contains(t, other.Manifests["ConfigMap apps/settings"], "data.size = large")
}

func TestFetcher_LeavesAloneWhatHelmHasPulled(t *testing.T) {
	h, folder := newHost(t), archive(t, large)
	one := h.serves(t, "/charts", small)
	renderer(h, folder).Add(t.Context(), &one)
	assert.Contains(t, one.Manifests["ConfigMap apps/settings"], "data.size = large")
	assert.Empty(t, h.asked)
}

func TestFetcher_SaysWhatCannotBeFetchedAndTriesItOnce(t *testing.T) {
	h, folder := newHost(t), t.TempDir()
	served := h.serves(t, "/charts", small)
	h.files["/broken/index.yaml"] = []byte("entries:\n  one:\n  - {version: 1.2.3, urls: ['" + h.URL + "/charts/index.yaml']}\n")
	with := func(change func(*report.Chart)) report.Chart {
		one := served
		change(&one)
		return one
	}
	const missing = "one-1.2.3.tgz is not on this computer, and cannot be fetched: "
	for want, one := range map[string]report.Chart{
		missing + h.URL + "/nothing/index.yaml: 404 Not Found": with(func(c *report.Chart) { c.Repository = h.URL + "/nothing" }),
		"one-2.0.0.tgz is not on this computer, and cannot be fetched: " + h.URL + "/charts/index.yaml has no one in version 2.0.0": with(
			func(c *report.Chart) { c.Version = "2.0.0" }),
		missing + h.URL + "/charts/index.yaml is not an archive of a chart: ": with(func(c *report.Chart) { c.Repository = h.URL + "/broken" }),
		missing + "oci://" + h.name + "/org/one:1.2.3: ": with(
			func(c *report.Chart) { c.Chart, c.Repository = "oci://"+h.name+"/org/one", "" }),
	} {
		t.Run(want, func(t *testing.T) {
			clear(h.asked)
			r := renderer(h, folder)
			r.Add(t.Context(), &one)
			assert.Nil(t, one.Manifests)
			assert.Contains(t, one.Unrendered, want)
			asked := len(h.asked)
			assert.NotZero(t, asked)
			r.Add(t.Context(), &one)
			assert.Contains(t, one.Unrendered, want)
			for path, times := range h.asked {
				assert.Equal(t, 1, times, path)
			}
		})
	}
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Empty(t, left, "nothing but charts is kept")
}

func TestPlace_IsInTheFolder(t *testing.T) {
	for want, one := range map[string]report.Chart{
		"/charts/helm.cilium.io/cilium-1.18.7.tgz":            {Chart: "cilium", Version: "1.18.7", Repository: "https://helm.cilium.io/"},
		"/charts/ghcr.io/spegel-org/helm-charts/spegel-1.tgz": {Chart: "oci://ghcr.io/spegel-org/helm-charts/spegel", Version: "1"},
		"/charts/elsewhere.tgz":                               {Chart: "one", Version: "/../../../elsewhere", Repository: "https://../.."},
	} {
		assert.Equal(t, want, place("/charts", one))
	}
}
