package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/git"
)

// registryOf serves a registry whose artifact is made of a snapshot, which can change. get is a request with a login, "" for none.
func registryOf(t *testing.T) (newest *git.Snapshot, registry *Artifacts, get func(login, path string) (*http.Response, []byte)) {
	t.Helper()
	newest = &git.Snapshot{Commit: strings.Repeat("a", 40), Time: time.Unix(1, 0), Files: []git.File{
		{Path: "kubernetes/clusters/infra/a.yaml", Content: []byte("a: 1\n")}, {Path: "tool", Executable: true, Content: []byte("#!/bin/sh\n")},
	}}
	registry = &Artifacts{Repository: "platform/slipway", Tags: []string{"latest", "production"}, Username: "flux", Password: "right",
		Origin:   "https://git.example.test/platform/slipway.git",
		Snapshot: func(context.Context) (*git.Snapshot, error) { copied := *newest; return &copied, nil },
		Log:      slog.New(slog.DiscardHandler)}
	server := httptest.NewServer(registry.Handler())
	t.Cleanup(server.Close)
	return newest, registry, func(login, path string) (*http.Response, []byte) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		require.NoError(t, err)
		if user, password, given := strings.Cut(login, ":"); given {
			request.SetBasicAuth(user, password)
		}
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response, body
	}
}

const base = "/v2/platform/slipway"

func TestArtifacts_AreInTheFormOfFluxAndOfTheNewestCommit(t *testing.T) {
	newest, _, get := registryOf(t)
	// tagged pulls the artifact of a tag, and checks that its parts have their digests and sizes.
	tagged := func(tag string) (reference string, layer []byte) {
		response, text := get("flux:right", base+"/manifests/"+tag)
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Equal(t, "application/vnd.oci.image.manifest.v1+json", response.Header.Get("Content-Type"))
		require.Equal(t, digest(text).String(), response.Header.Get("Docker-Content-Digest"))
		manifest, err := v1.ParseManifest(bytes.NewReader(text))
		require.NoError(t, err)
		require.Equal(t, fluxConfig, manifest.Config.MediaType)
		require.Len(t, manifest.Layers, 1)
		require.Equal(t, fluxContent, manifest.Layers[0].MediaType)
		require.Equal(t, "HEAD@sha1:"+newest.Commit, manifest.Annotations["org.opencontainers.image.revision"])
		for _, part := range []v1.Descriptor{manifest.Config, manifest.Layers[0]} {
			response, layer = get("flux:right", base+"/blobs/"+part.Digest.String())
			require.Equal(t, http.StatusOK, response.StatusCode)
			require.Equal(t, part.Digest, digest(layer))
			require.EqualValues(t, part.Size, len(layer))
		}
		return digest(text).String(), layer
	}
	first, layer := tagged("latest")
	unpacked, err := gzip.NewReader(bytes.NewReader(layer))
	require.NoError(t, err)
	files := map[string]string{}
	for reader := tar.NewReader(unpacked); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		content, err := io.ReadAll(reader)
		require.NoError(t, err)
		files[header.Name] = string(content)
	}
	require.Equal(t, map[string]string{"kubernetes/clusters/infra/a.yaml": "a: 1\n", "tool": "#!/bin/sh\n"}, files)

	newest.Commit, newest.Files = strings.Repeat("b", 40), newest.Files[:1]
	second, changed := tagged("production")
	require.NotEqual(t, first, second)
	require.NotEqual(t, layer, changed)
	response, _ := get("flux:right", base+"/manifests/"+first)
	require.Equal(t, http.StatusOK, response.StatusCode, "the former one can still be had by its digest")
	newest.Commit = strings.Repeat("c", 40)
	third, same := tagged("latest")
	require.NotEqual(t, second, third)
	require.Equal(t, changed, same, "no file has changed")
}

func TestArtifacts_AskForALogin(t *testing.T) {
	_, registry, get := registryOf(t)
	code := func(login, path string) (int, string) {
		response, body := get(login, path)
		var failed struct{ Errors []struct{ Code string } }
		_ = json.Unmarshal(body, &failed) // a success is something else
		if len(failed.Errors) == 0 {
			return response.StatusCode, ""
		}
		return response.StatusCode, failed.Errors[0].Code
	}
	for _, login := range []string{"", "flux:wrong", "other:right"} {
		for _, path := range []string{"/v2/", base + "/manifests/latest", base + "/blobs/sha256:" + strings.Repeat("0", 64)} {
			status, reason := code(login, path)
			require.Equal(t, http.StatusUnauthorized, status, "%s %s", login, path)
			require.Equal(t, "UNAUTHORIZED", reason)
		}
	}
	response, _ := get("", "/v2/")
	require.Equal(t, `Basic realm="lab registry"`, response.Header.Get("WWW-Authenticate"))
	status, _ := code("flux:right", "/v2/")
	require.Equal(t, http.StatusOK, status)
	status, reason := code("flux:right", base+"/manifests/absent")
	require.Equal(t, http.StatusNotFound, status)
	require.Equal(t, "MANIFEST_UNKNOWN", reason)
	status, _ = code("flux:right", "/v2/platform/other/manifests/latest")
	require.Equal(t, http.StatusNotFound, status)

	status, _ = code("", "/v2/"+PublicRepository+"/manifests/latest")
	require.Equal(t, http.StatusOK, status)
	registry.Public = true
	status, _ = code("", base+"/manifests/latest")
	require.Equal(t, http.StatusOK, status)
}

func TestArtifacts_NothingCanBePushed(t *testing.T) {
	_, registry, _ := registryOf(t)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		request := httptest.NewRequest(method, base+"/manifests/latest", nil)
		request.SetBasicAuth("flux", "right")
		answer := httptest.NewRecorder()
		registry.Handler().ServeHTTP(answer, request)
		require.Equal(t, http.StatusForbidden, answer.Code, method)
	}
}
