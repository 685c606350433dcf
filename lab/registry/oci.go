package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"

	oci "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// Media types of a chart in an OCI registry, as Helm sets them.
const (
	chartConfig  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContent types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// OCI is an in-memory registry with chart archives, each tagged with the chart's version. charts maps a repository such
// as "controlplaneio-fluxcd/charts/flux-operator" to the paths of archives.
func OCI(charts map[string][]string) (http.Handler, error) {
	handler := oci.New(oci.Logger(log.New(io.Discard, "", 0)))
	for repository, paths := range charts {
		for _, path := range paths {
			if err := push(handler, repository, path); err != nil {
				return nil, fmt.Errorf("OCI registry: %s: %w", repository, err)
			}
		}
	}
	return handler, nil
}

// push uploads a chart through the registry's HTTP API.
func push(handler http.Handler, repository, path string) error {
	chart, err := loader.LoadFile(path)
	if err != nil {
		return err
	}
	metadata, err := json.Marshal(chart.Metadata)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return upload(handler, repository, []string{chart.Metadata.Version}, blob{chartConfig, metadata}, blob{chartContent, content}, nil)
}

// blob is a part of an artifact.
type blob struct {
	mediaType types.MediaType
	content   []byte
}

func (b blob) descriptor() v1.Descriptor {
	return v1.Descriptor{MediaType: b.mediaType, Digest: digest(b.content), Size: int64(len(b.content))}
}

// upload uploads an artifact with one layer through the registry's HTTP API.
func upload(handler http.Handler, repository string, tags []string, config, layer blob, annotations map[string]string) error {
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: config.descriptor(), Layers: []v1.Descriptor{layer.descriptor()}, Annotations: annotations,
	})
	if err != nil {
		return err
	}
	base := "/v2/" + repository
	for _, one := range []blob{config, layer} {
		path := base + "/blobs/uploads/?digest=" + digest(one.content).String()
		if err := send(handler, http.MethodPost, path, "application/octet-stream", one.content); err != nil {
			return err
		}
	}
	for _, tag := range tags {
		if err := send(handler, http.MethodPut, base+"/manifests/"+tag, string(types.OCIManifestSchema1), manifest); err != nil {
			return err
		}
	}
	return nil
}

func send(handler http.Handler, method, path, contentType string, body []byte) error {
	r := httptest.NewRequest(method, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code != http.StatusCreated {
		return fmt.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return nil
}

func digest(content []byte) v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: fmt.Sprintf("%x", sha256.Sum256(content))}
}
