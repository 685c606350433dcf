package chart_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/components/cilium/chart"
	"github.com/slipway-platform/slipway/tests/fakechart"
)

// repository serves an index and one archive, and counts how often each is asked for.
type repository struct {
	*httptest.Server
	index            string
	archive          []byte
	indexes, fetches atomic.Int32
}

func serve(t *testing.T, index string, archive []byte) *repository {
	t.Helper()
	r := &repository{index: index, archive: archive}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch request.URL.Path {
		case "/charts/index.yaml":
			r.indexes.Add(1)
			fmt.Fprint(w, r.index)
		case "/charts/archives/small-1.2.3.tgz":
			r.fetches.Add(1)
			_, _ = w.Write(r.archive)
		default:
			http.NotFound(w, request)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func indexOf(url, digest string) string {
	return fmt.Sprintf(`
apiVersion: v1
entries:
  other: [{version: 9.9.9, urls: [other.tgz]}]
  small:
  - {version: 1.3.0, urls: [missing.tgz]}
  - {version: 1.2.3, urls: [%q], digest: %q}
`, url, digest)
}

func digestOf(archive []byte) string {
	sum := sha256.Sum256(archive)
	return hex.EncodeToString(sum[:])
}

func TestFetch_GetsTheDeclaredVersionOncePerRun(t *testing.T) {
	archive := fakechart.Pack("small", small)
	for _, url := range []string{"archives/small-1.2.3.tgz", "/charts/archives/small-1.2.3.tgz"} {
		repo := serve(t, indexOf(url, digestOf(archive)), archive)
		for range 3 {
			got, err := chart.Fetch(t.Context(), repo.URL+"/charts/", "small", "1.2.3")
			require.NoError(t, err)
			assert.Equal(t, "1.2.3", got.Version())
		}
		assert.EqualValues(t, 1, repo.indexes.Load())
		assert.EqualValues(t, 1, repo.fetches.Load())
	}
}

func TestFetch_TakesAWholeURLAndNoSlashAtTheEnd(t *testing.T) {
	archive := fakechart.Pack("small", small)
	elsewhere := serve(t, "", archive)
	repo := serve(t, indexOf(elsewhere.URL+"/charts/archives/small-1.2.3.tgz", "sha256:"+digestOf(archive)), nil)
	_, err := chart.Fetch(t.Context(), repo.URL+"/charts", "small", "v1.2.3")
	require.NoError(t, err)
	assert.EqualValues(t, 1, elsewhere.fetches.Load())
}

func TestFetch_RefusesAnArchiveOfAnotherDigestAndTriesAgainNextTime(t *testing.T) {
	archive := fakechart.Pack("small", small)
	repo := serve(t, indexOf("archives/small-1.2.3.tgz", digestOf([]byte("another"))), archive)
	_, err := chart.Fetch(t.Context(), repo.URL+"/charts/", "small", "1.2.3")
	assert.ErrorContains(t, err, "its sha256 is "+digestOf(archive)+", the index says "+digestOf([]byte("another")))

	repo.index = indexOf("archives/small-1.2.3.tgz", digestOf(archive))
	_, err = chart.Fetch(t.Context(), repo.URL+"/charts/", "small", "1.2.3")
	assert.NoError(t, err)
}

func TestFetch_SaysWhatTheRepositoryLacks(t *testing.T) {
	repo := serve(t, indexOf("archives/small-1.2.3.tgz", ""), []byte("no archive"))
	for want, ask := range map[string][3]string{
		"small 2.0.0 from " + repo.URL + "/charts/: not in the repository's index, which has 2 versions": {repo.URL + "/charts/", "small", "2.0.0"},
		"which has 0 versions of the chart":             {repo.URL + "/charts/", "large", "1.2.3"},
		"/elsewhere/index.yaml: answered 404 Not Found": {repo.URL + "/elsewhere/", "small", "1.2.3"},
		"/charts/missing.tgz: answered 404 Not Found":   {repo.URL + "/charts/", "small", "1.3.0"},
		"chart archive: ":                               {repo.URL + "/charts/", "small", "1.2.3"},
		"the repository is no URL":                      {"charts", "small", "1.2.3"},
	} {
		_, err := chart.Fetch(t.Context(), ask[0], ask[1], ask[2])
		assert.ErrorContains(t, err, want)
	}
	broken := serve(t, "entries: [", nil)
	_, err := chart.Fetch(t.Context(), broken.URL+"/charts/", "small", "1.2.3")
	assert.ErrorContains(t, err, "index.yaml: ")
}
