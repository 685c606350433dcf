package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config"
	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
)

// Manifest is a manifest that a configuration names by URL.
type Manifest struct {
	ID      string // as Talos names the resource: its priority and the URL
	URL     string
	headers map[string]string
}

// Manifests are the manifests by URL of a configuration: those of the CNI, of the cloud provider, and the extra ones.
func Manifests(cfg config.Provider) []Manifest {
	var out []Manifest
	add := func(priority string, urls []string, headers map[string]string) {
		for _, u := range urls {
			out = append(out, Manifest{priority + "-" + u, u, headers})
		}
	}
	cluster := cfg.Cluster()
	add("05", cluster.Network().CNI().URLs(), nil)
	add("30", cluster.ExternalCloudProvider().ManifestURLs(), nil)
	add("99", cluster.ExtraManifestURLs(), cluster.ExtraManifestHeaderMap())
	return out
}

// SameManifests tells whether two configurations have the same manifests.
func SameManifests(a, b config.Provider) bool {
	same := func(a, b Manifest) bool { return a.ID == b.ID && maps.Equal(a.headers, b.headers) }
	return GivesAccess(a) == GivesAccess(b) && slices.EqualFunc(Manifests(a), Manifests(b), same) &&
		slices.EqualFunc(a.Cluster().InlineManifests(), b.Cluster().InlineManifests(), func(a, b configconfig.InlineManifest) bool {
			return a.Name() == b.Name() && a.Contents() == b.Contents()
		})
}

// GivesAccess tells whether a configuration gives pods access to Talos's API.
func GivesAccess(cfg config.Provider) bool {
	return cfg.Machine().Features().KubernetesTalosAPIAccess().Enabled()
}

// Download gets a manifest as Talos's downloader does: by HTTP or HTTPS, after a HEAD whose result does not matter.
// Without client, there is no network. Compressed files and checksums in the URL are not modelled.
func (m Manifest) Download(ctx context.Context, with *http.Client) ([]byte, error) {
	u, err := url.Parse(m.URL)
	if err != nil {
		return nil, err
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("error downloading '%s'", m.URL)
	case with == nil:
		return nil, fmt.Errorf("Get %q: dial tcp: lookup %s: no such host", m.URL, u.Hostname()) //nolint:staticcheck // the words of net/http
	case u.Query().Has("checksum"), u.Query().Has("archive"),
		slices.Contains([]string{".gz", ".bz2", ".xz", ".zst", ".zip", ".tgz", ".tar"}, path.Ext(u.Path)):
		return nil, errors.New("the lab does not model checksums and archives of manifests")
	}
	do := func(method string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, method, m.URL, nil)
		if err != nil {
			return nil, err
		}
		for k, v := range m.headers {
			req.Header.Add(k, v)
		}
		return with.Do(req)
	}
	if head, err := do(http.MethodHead); err == nil {
		_ = head.Body.Close()
	}
	res, err := do(http.MethodGet)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusPartialContent {
		return nil, fmt.Errorf("bad response code: %d", res.StatusCode)
	}
	return io.ReadAll(res.Body)
}
