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
// as "controlplaneio-fluxcd/charts/flux-operator" to the path of an archive.
func OCI(charts map[string]string) (http.Handler, error) {
	handler := oci.New(oci.Logger(log.New(io.Discard, "", 0)))
	for repository, path := range charts {
		if err := push(handler, repository, path); err != nil {
			return nil, fmt.Errorf("OCI registry: %s: %w", repository, err)
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
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		Config:        descriptor(chartConfig, metadata),
		Layers:        []v1.Descriptor{descriptor(chartContent, content)},
	})
	if err != nil {
		return err
	}
	base := "/v2/" + repository
	for _, blob := range [][]byte{metadata, content} {
		if err := send(handler, http.MethodPost, base+"/blobs/uploads/?digest="+digest(blob).String(), "application/octet-stream", blob); err != nil {
			return err
		}
	}
	return send(handler, http.MethodPut, base+"/manifests/"+chart.Metadata.Version, string(types.OCIManifestSchema1), manifest)
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

func descriptor(mediaType types.MediaType, content []byte) v1.Descriptor {
	return v1.Descriptor{MediaType: mediaType, Digest: digest(content), Size: int64(len(content))}
}

func digest(content []byte) v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: fmt.Sprintf("%x", sha256.Sum256(content))}
}
