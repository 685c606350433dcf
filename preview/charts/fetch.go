package charts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/preview/report"
)

const (
	ociScheme = "oci://"
	chartType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip" // of the layer that is the archive
	largest   = 64 << 20                                              // bytes of an index or an archive
	longest   = 30 * time.Second                                      // for one chart
)

// Fetcher fetches archives of charts from their repositories and registries, as `helm pull` does, but without credentials. It is not
// Helm's own downloader, which links kubectl and reads the user's credentials.
type Fetcher struct {
	Folder string       // where the archives are kept
	Client *http.Client // nil means http.DefaultClient

	indexes map[string]index // by the URL of the repository
	failed  map[string]error // by the path of the archive, which is tried once
}

// index is the part of a repository's index.yaml that is needed.
type index struct {
	Entries map[string][]struct {
		Version string   `json:"version"`
		URLs    []string `json:"urls"`
	} `json:"entries"`
}

// archiveName is the name of a chart's archive, as `helm pull` writes it.
func archiveName(chart report.Chart) string {
	return path.Base(chart.Chart) + "-" + chart.Version + ".tgz"
}

// place is the path of a fetched archive. It contains the repository, so another repository shows as other manifests.
func place(folder string, chart report.Chart) string {
	source, isOCI := strings.CutPrefix(chart.Chart, ociScheme)
	if source = path.Dir(source); !isOCI {
		_, source, _ = strings.Cut(chart.Repository, "://")
	}
	return filepath.Join(folder, filepath.FromSlash(path.Clean("/"+source+"/"+archiveName(chart)))) // Clean: nothing outside of the folder
}

// fetch fetches an archive, and returns its path.
func (f *Fetcher) fetch(ctx context.Context, chart report.Chart) (string, error) {
	archive := place(f.Folder, chart)
	if err, tried := f.failed[archive]; tried {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	err := f.write(ctx, archive, chart)
	if err != nil {
		if f.failed == nil {
			f.failed = map[string]error{}
		}
		f.failed[archive] = err
		return "", err
	}
	return archive, nil
}

func (f *Fetcher) write(ctx context.Context, archive string, chart report.Chart) error {
	location, err := f.locate(ctx, chart)
	if err != nil {
		return err
	}
	data, err := f.download(ctx, location)
	if err != nil {
		return fmt.Errorf("%s: %w", location, err)
	}
	if _, err := loader.LoadArchive(bytes.NewReader(data)); err != nil {
		return fmt.Errorf("%s is not an archive of a chart: %w", location, err)
	}
	if err := os.MkdirAll(filepath.Dir(archive), 0o755); err != nil {
		return err
	}
	part := archive + ".part" // neither an interrupted run nor a full disk leaves half an archive
	if err := os.WriteFile(part, data, 0o600); err != nil {
		return err
	}
	return os.Rename(part, archive)
}

// locate returns the URL of an archive, or its oci:// reference.
func (f *Fetcher) locate(ctx context.Context, chart report.Chart) (string, error) {
	if strings.HasPrefix(chart.Chart, ociScheme) {
		return chart.Chart + ":" + strings.ReplaceAll(chart.Version, "+", "_"), nil // a tag has no +
	}
	base, err := url.Parse(strings.TrimSuffix(chart.Repository, "/") + "/")
	if err != nil {
		return "", err
	}
	at := base.JoinPath("index.yaml").String()
	charts, known := f.indexes[at]
	if !known {
		text, err := f.download(ctx, at)
		if err == nil {
			err = yaml.Unmarshal(text, &charts)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", at, err)
		}
		if f.indexes == nil {
			f.indexes = map[string]index{}
		}
		f.indexes[at] = charts
	}
	for _, one := range charts.Entries[chart.Chart] {
		if sameVersion(one.Version, chart.Version) && len(one.URLs) > 0 {
			location, err := base.Parse(one.URLs[0])
			if err != nil {
				return "", fmt.Errorf("%s: %w", at, err)
			}
			return location.String(), nil
		}
	}
	return "", fmt.Errorf("%s has no %s in version %s", at, chart.Chart, chart.Version)
}

// sameVersion compares as Helm does: v1.2.3 is 1.2.3, too.
func sameVersion(one, other string) bool {
	first, err := semver.NewVersion(one)
	second, errOther := semver.NewVersion(other)
	return one == other || err == nil && errOther == nil && first.Equal(second) && first.Metadata() == second.Metadata()
}

func (f *Fetcher) download(ctx context.Context, location string) ([]byte, error) {
	if reference, isOCI := strings.CutPrefix(location, ociScheme); isOCI {
		return f.pull(ctx, reference)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, err
	}
	response, err := f.client().Do(request)
	if err != nil {
		return nil, unwrapped(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, largest+1))
	if len(data) > largest {
		return nil, fmt.Errorf("is larger than %d MiB", largest>>20)
	}
	return data, err
}

// pull returns the archive that an OCI reference names.
func (f *Fetcher) pull(ctx context.Context, reference string) ([]byte, error) {
	repository, err := remote.NewRepository(reference)
	if err != nil {
		return nil, err
	}
	repository.Client = &auth.Client{Client: f.client()}
	descriptor, reader, err := repository.FetchReference(ctx, repository.Reference.Reference)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }()
	text, err := content.ReadAll(reader, descriptor)
	if err != nil {
		return nil, err
	}
	var manifest v1.Manifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, err
	}
	layer := slices.IndexFunc(manifest.Layers, func(layer v1.Descriptor) bool { return layer.MediaType == chartType })
	switch {
	case layer < 0:
		return nil, errors.New("is not a chart")
	case manifest.Layers[layer].Size > largest:
		return nil, fmt.Errorf("is larger than %d MiB", largest>>20)
	}
	return content.FetchAll(ctx, repository.Blobs(), manifest.Layers[layer])
}

func (f *Fetcher) client() *http.Client {
	if f.Client != nil {
		return f.Client
	}
	return http.DefaultClient
}

// unwrapped returns the error of a request without its URL, which the caller names.
func unwrapped(err error) error {
	if of := (*url.Error)(nil); errors.As(err, &of) {
		return of.Err
	}
	return err
}
