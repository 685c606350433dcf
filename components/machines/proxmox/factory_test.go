package proxmox

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// factory is an image factory that answers by answer, which gets the number of the request.
func factory(t *testing.T, answer func(number int32, w http.ResponseWriter, r *http.Request)) (address string, requests *atomic.Int32) {
	requests = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, http.MethodHead, r.Method)
		answer(requests.Add(1), w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/image/id/v1.14.1/nocloud-amd64.iso", requests
}

func TestBuilt_WaitsForAFactoryThatBuildsTheImageAndSaysSo(t *testing.T) {
	said, once := make(chan struct{}), sync.Once{}
	address, requests := factory(t, func(number int32, w http.ResponseWriter, r *http.Request) {
		switch number {
		case 1:
			w.WriteHeader(http.StatusGatewayTimeout) // of a proxy
		case 2:
			panic(http.ErrAbortHandler) // a balancer closes the connection
		default:
			select {
			case <-said:
			case <-r.Context().Done():
			}
		}
	})
	var line string
	built{limit: time.Minute, every: time.Millisecond, quiet: 50 * time.Millisecond, say: func(text string) {
		once.Do(func() { line = text; close(said) })
	}}.await(t.Context(), address)
	assert.GreaterOrEqual(t, requests.Load(), int32(3))
	assert.Equal(t, "waits for the image factory, which builds "+address+", at most 1m0s", line)
}

func TestBuilt_AsksNoFurtherOnceTheFactoryAnswersOrIsNotReached(t *testing.T) {
	silent := built{limit: time.Minute, every: time.Millisecond, quiet: time.Hour, say: func(text string) { assert.Fail(t, text) }}
	for _, status := range []int{http.StatusOK, http.StatusNotFound, http.StatusInternalServerError} {
		address, requests := factory(t, func(_ int32, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		silent.await(t.Context(), address)
		assert.EqualValues(t, 1, requests.Load(), status)
	}
	// A connection that breaks at once is not that of a factory that builds.
	address, requests := factory(t, func(_ int32, _ http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	built{limit: time.Minute, every: time.Millisecond, quiet: time.Hour, cut: time.Hour}.await(t.Context(), address)
	assert.EqualValues(t, 1, requests.Load())

	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	silent.await(t.Context(), gone.URL)
	silent.await(t.Context(), "https://factory.invalid:x/image")

	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(untrusted.Close)
	silent.await(t.Context(), untrusted.URL)
}

func TestBuilt_LeavesTheRestToProxmoxWhenTheWaitIsOver(t *testing.T) {
	address, requests := factory(t, func(_ int32, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	built{limit: 100 * time.Millisecond, every: time.Millisecond, quiet: time.Hour}.await(t.Context(), address)
	assert.EqualValues(t, 1, requests.Load())
}
