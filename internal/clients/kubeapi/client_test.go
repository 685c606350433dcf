package kubeapi_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/tests/fakes/kubeapitest"
)

// server answers the first requests with 503, and then with the function.
func server(t *testing.T, failures int32, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	var left atomic.Int32
	left.Store(failures)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if left.Add(-1) >= 0 {
			http.Error(w, "etcd has no leader", http.StatusServiceUnavailable)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func connect(t *testing.T, s *httptest.Server) *kubeapi.Client {
	t.Helper()
	api, err := kubeapi.New([]byte(kubeapitest.Kubeconfig(t, s)), time.Second)
	require.NoError(t, err)
	return api
}

func TestNew_ErrorsHoldNothingOfTheKubeconfig(t *testing.T) {
	for _, bad := range []string{"", "secret-token: [", "clusters: [secret-token]", `{current-context: secret-token}`} {
		_, err := kubeapi.New([]byte(bad), 0)
		require.EqualError(t, err, "kubeconfig: is not a valid kubeconfig", bad)
	}
}

func TestReadJSON_WaitsForABusyServerAndTellsWhatIsMissing(t *testing.T) {
	api := connect(t, server(t, 1, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/there" || r.URL.RawQuery != "limit=1" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(`{"kind": "Thing"}`))
	}))
	var thing struct{ Kind string }
	found, err := api.ReadJSON(t.Context(), "/there?limit=1", &thing)
	require.NoError(t, err)
	assert.True(t, found)
	assert.Equal(t, "Thing", thing.Kind)
	found, err = api.ReadJSON(t.Context(), "/elsewhere", &thing)
	require.NoError(t, err)
	assert.False(t, found)
}

func TestReadLong_WaitsForTheEndOfALongAnswer(t *testing.T) {
	end := make(chan struct{}, 1)
	s := server(t, 0, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("begins"))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-end:
			_, _ = w.Write([]byte(" and ends"))
		case <-r.Context().Done():
			panic(http.ErrAbortHandler) // as an API server does: a handler that returns ends its answer well
		}
	})
	const timeout = 100 * time.Millisecond
	api, err := kubeapi.New([]byte(kubeapitest.Kubeconfig(t, s)), timeout)
	require.NoError(t, err)
	_, err = api.Read(t.Context(), "/metrics")
	require.Error(t, err, "the client's timeout ends a read")

	time.AfterFunc(3*timeout, func() { end <- struct{}{} })
	answer, err := api.ReadLong(t.Context(), "/metrics")
	require.NoError(t, err)
	assert.Equal(t, "begins and ends", string(answer))

	ending, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	_, err = api.ReadLong(ending, "/metrics")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestReadJSON_ReturnsARefusalAtOnceInTheServersWords(t *testing.T) {
	status := `{"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "you may not", "code": 403}`
	api := connect(t, server(t, 0, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		if r.URL.Path == "/words" {
			_, _ = w.Write([]byte(status))
		}
	}))
	_, err := api.ReadJSON(t.Context(), "/words?a=b", nil)
	require.EqualError(t, err, "you may not")
	assert.True(t, apierrors.IsForbidden(err))
	_, err = api.ReadJSON(t.Context(), "/silent?a=b", nil)
	require.EqualError(t, err, "/silent answers 403 Forbidden")
	assert.True(t, apierrors.IsForbidden(err))
}

func TestReadJSON_SaysAtTheEndOfTheWaitWhyItWaited(t *testing.T) {
	s := server(t, 1, nil)
	api := connect(t, s)
	s.Close()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 400*time.Millisecond, errors.New("gave up"))
	defer cancel()
	_, err := api.ReadJSON(ctx, "/readyz", nil)
	require.ErrorContains(t, err, "gave up (last: ")
	require.ErrorContains(t, err, "connection refused")
}

func TestAt_KeepsThePortAndTheCredentials(t *testing.T) {
	s := server(t, 0, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	where, err := url.Parse(s.URL)
	require.NoError(t, err)
	api := connect(t, s)
	at, err := api.At("127.0.0.2")
	require.NoError(t, err)
	assert.Equal(t, "https://"+net.JoinHostPort("127.0.0.2", where.Port())+"/readyz", at.URL("/readyz"))
	back, err := at.At(where.Hostname())
	require.NoError(t, err)
	body, err := back.Read(t.Context(), "/readyz")
	require.NoError(t, err)
	assert.Equal(t, "ok", string(body))
	assert.Equal(t, s.URL, api.Config.Host, "the first client is as before")
}

func TestTemporary_IsEverythingButARefusal(t *testing.T) {
	for _, err := range []error{
		errors.New("connection reset"), apierrors.NewInternalError(errors.New("x")), apierrors.NewTooManyRequests("slow", 1),
		apierrors.NewServiceUnavailable("x"),
	} {
		assert.True(t, kubeapi.Temporary(err), err)
	}
	assert.False(t, kubeapi.Temporary(apierrors.NewUnauthorized("x")))
	assert.True(t, kubeapi.Refused(apierrors.NewTooManyRequests("slow", 1)), "an answer about an eviction")
}
