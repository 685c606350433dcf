package chart

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	fetchTimeout = time.Minute
	maxIndex     = 64 << 20 // bytes; the indexes of old repositories have grown to some 10 MB
	maxArchive   = 16 << 20 // bytes; charts have to fit a Secret, so that 1 MB is a large one
)

// Fetch gets a chart from a chart repository, as its index tells, and checks it against the index's digest. Within one
// run each chart is fetched once.
func Fetch(ctx context.Context, repository, name, version string) (*Chart, error) {
	key := strings.Join([]string{repository, name, version}, " ")
	fetched, _ := fetches.LoadOrStore(key, sync.OnceValues(func() (*Chart, error) {
		ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
		defer cancel()
		return fetch(ctx, repository, name, version)
	}))
	chart, err := fetched.(func() (*Chart, error))()
	if err != nil {
		fetches.Delete(key)
		return nil, fmt.Errorf("chart %s %s from %s: %w", name, version, repository, err)
	}
	return chart, nil
}

// fetches are the charts of this run, each behind a function that fetches it once.
var fetches sync.Map

func fetch(ctx context.Context, repository, name, version string) (*Chart, error) {
	base, err := url.Parse(strings.TrimSuffix(repository, "/") + "/")
	if err != nil || base.Host == "" {
		return nil, errors.New("the repository is no URL; give one such as https://helm.cilium.io/")
	}
	text, err := get(ctx, base.JoinPath("index.yaml").String(), maxIndex)
	if err != nil {
		return nil, err
	}
	found, err := find(text, name, version)
	if err != nil {
		return nil, err
	}
	location, err := base.Parse(found.URLs[0]) // relative to the repository unless it is a whole URL
	if err != nil {
		return nil, fmt.Errorf("index.yaml: %q is no URL; the repository is broken", found.URLs[0])
	}
	archive, err := get(ctx, location.String(), maxArchive)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(archive)
	if got := hex.EncodeToString(sum[:]); found.Digest != "" && !strings.EqualFold(strings.TrimPrefix(found.Digest, "sha256:"), got) {
		return nil, fmt.Errorf("%s: its sha256 is %s, the index says %s; the repository or something on the way is broken", location, got, found.Digest)
	}
	return Read(archive)
}

// entryInIndex is what an index tells about one version of a chart.
type entryInIndex struct {
	Version string   `json:"version"`
	URLs    []string `json:"urls"`
	Digest  string   `json:"digest"` // sha256 of the archive; old repositories have none
}

func find(index []byte, name, version string) (entryInIndex, error) {
	var repository struct {
		Entries map[string][]entryInIndex `json:"entries"`
	}
	if err := yaml.Unmarshal(index, &repository); err != nil {
		return entryInIndex{}, fmt.Errorf("index.yaml: %w", err)
	}
	for _, candidate := range repository.Entries[name] {
		if strings.TrimPrefix(candidate.Version, "v") == strings.TrimPrefix(version, "v") && len(candidate.URLs) != 0 {
			return candidate, nil
		}
	}
	return entryInIndex{}, fmt.Errorf("not in the repository's index, which has %d versions of the chart; pick one that is there",
		len(repository.Entries[name]))
}

func get(ctx context.Context, location string, limit int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: answered %s; see whether the repository is the right one", location, response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", location, err)
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("%s: larger than %d bytes; see whether the repository is the right one", location, limit)
	}
	return body, nil
}
