package registry

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/require"
)

// layer is a tar with one file.
func layer(t *testing.T, file string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: file, Mode: 0o644, Size: int64(len(file))}))
	_, err := w.Write([]byte(file))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func openImages(t *testing.T) *Images {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"libc", "kubelet", "installer"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".tar"), layer(t, name), 0o600))
	}
	list := filepath.Join(dir, "images.json")
	require.NoError(t, os.WriteFile(list, []byte(`[
		{"names": ["siderolabs/kubelet"], "tags": ["v1.35.8"], "layers": ["libc.tar", "kubelet.tar"],
			"entrypoint": ["/usr/local/bin/kubelet"], "env": ["A=b"]},
		{"names": ["siderolabs/installer", "nocloud-installer/*"], "tags": ["*"], "layers": ["libc.tar", "installer.tar"]}
	]`), 0o600))
	r, err := OpenImages(list)
	require.NoError(t, err)
	return r
}

// pull gets a path, and checks its digest.
func pull(t *testing.T, r *Images, path string, want v1.Hash) []byte {
	t.Helper()
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	require.Equal(t, http.StatusOK, w.Code, path)
	got := digest(w.Body.Bytes())
	require.Equal(t, got.String(), w.Header().Get("Docker-Content-Digest"))
	if want != (v1.Hash{}) {
		require.Equal(t, want, got, path)
	}
	return w.Body.Bytes()
}

func TestImages_ArePulledByNameAndByDigest(t *testing.T) {
	r := openImages(t)
	for reference, files := range map[string][]string{
		"siderolabs/kubelet v1.35.8":      {"libc", "kubelet"},
		"siderolabs/installer v1.12.6":    {"libc", "installer"},
		"nocloud-installer/376567 v1.0.0": {"libc", "installer"},
	} {
		name, tag, _ := strings.Cut(reference, " ")
		base := "/v2/" + name
		text := pull(t, r, base+"/manifests/"+tag, v1.Hash{})
		require.Equal(t, text, pull(t, r, base+"/manifests/"+digest(text).String(), digest(text)))
		var manifest v1.Manifest
		require.NoError(t, json.Unmarshal(text, &manifest))
		var config v1.ConfigFile
		require.NoError(t, json.Unmarshal(pull(t, r, base+"/blobs/"+manifest.Config.Digest.String(), manifest.Config.Digest), &config))
		require.Equal(t, "linux/amd64", config.OS+"/"+config.Architecture)
		require.Len(t, manifest.Layers, len(files))
		for i, layer := range manifest.Layers {
			require.Equal(t, layer.Digest, config.RootFS.DiffIDs[i])
			content := pull(t, r, base+"/blobs/"+layer.Digest.String(), layer.Digest)
			require.Len(t, content, int(layer.Size))
			header, err := tar.NewReader(bytes.NewReader(content)).Next()
			require.NoError(t, err)
			require.Equal(t, files[i], header.Name)
		}
		head := httptest.NewRecorder()
		r.ServeHTTP(head, httptest.NewRequest(http.MethodHead, base+"/manifests/"+tag, nil))
		require.Equal(t, fmt.Sprint(len(text)), head.Header().Get("Content-Length"))
		require.Empty(t, head.Body.Bytes())
	}
}

func TestImages_OthersAreNotFound(t *testing.T) {
	r := openImages(t)
	for path, code := range map[string]string{
		"/v2/siderolabs/kubelet/manifests/v1.36.0": "MANIFEST_UNKNOWN",
		"/v2/siderolabs/other/manifests/v1":        "NAME_UNKNOWN",
		"/v2/siderolabs/kubelet/blobs/sha256:00":   "BLOB_UNKNOWN",
		"/v2/x":                                    "NAME_INVALID",
	} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		require.Equal(t, http.StatusNotFound, w.Code)
		require.Contains(t, w.Body.String(), code, path)
	}
	require.True(t, r.Owns("/v2/nocloud-installer/abc/blobs/x"))
	require.False(t, r.Owns("/v2/controlplaneio-fluxcd/charts/flux-operator/manifests/1"))
	require.True(t, r.Owns("/v2/"))
	require.False(t, r.Owns("/schematics"))
}

func TestImages_ALayerIsServedInParts(t *testing.T) {
	r := openImages(t)
	libc := layer(t, "libc")
	q := httptest.NewRequest(http.MethodGet, fmt.Sprintf("/v2/siderolabs/kubelet/blobs/sha256:%x", sha256.Sum256(libc)), nil)
	q.Header.Set("Range", "bytes=4-")
	w := httptest.NewRecorder()
	r.ServeHTTP(w, q)
	require.Equal(t, http.StatusPartialContent, w.Code)
	require.Equal(t, libc[4:], w.Body.Bytes())
}
