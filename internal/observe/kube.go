package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/version"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/gate"
)

const (
	// pollEvery is how often something that cannot be watched is asked again. The gate must open within a second after the last condition
	// became true, so pollEvery and health.DefaultStableFor together are less.
	pollEvery  = 250 * time.Millisecond
	askTimeout = 5 * time.Second // for one answer
)

// Kube is a client of a Kubernetes API.
type Kube struct {
	*kubeapi.Client

	mu       sync.Mutex
	returned chan struct{} // closed and replaced when the API server answers again
}

// NewKube makes a client from the content of a kubeconfig. It sends no request.
func NewKube(kubeconfig []byte, calls *Calls) (*Kube, error) {
	client, err := kubeapi.New(kubeconfig, 0, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			calls.Add()
			return next.RoundTrip(r)
		})
	})
	if err != nil {
		return nil, err
	}
	return &Kube{Client: client, returned: make(chan struct{})}, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// watchReadiness asks /readyz until ctx ends, and publishes each answer unless publish is nil. When the server answers again, every watch
// is started again: if the server went away without closing its connections, a watch receives nothing for minutes.
func (k *Kube) watchReadiness(ctx context.Context, publish func(gate.APIServer)) {
	gone, ready, lost := false, false, 0
	for first := true; ctx.Err() == nil; first = false {
		answer := asked(ctx, first, func() gate.APIServer { return k.askReady(ctx) }, func(a gate.APIServer) bool { return temporary(a.Err) })
		if ctx.Err() != nil {
			return
		}
		if gone && answer.Err == nil {
			k.restartWatches()
		}
		if ready && !answer.Ready {
			lost++
		}
		gone, ready, answer.Lost = answer.Err != nil, answer.Ready, lost
		if publish != nil {
			publish(answer)
		}
		pause(ctx, pollEvery)
	}
}

func (k *Kube) restartWatches() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.returned)
	k.returned = make(chan struct{})
}

func (k *Kube) comesBack() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.returned
}

func (k *Kube) askReady(ctx context.Context) gate.APIServer {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	response, err := k.Get(ctx, "/readyz")
	if err != nil {
		return gate.APIServer{Asked: true, Err: broken(err)}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	answer := gate.APIServer{Asked: true, Ahead: ahead(response.Header.Get("Date"), time.Now())}
	switch {
	case err != nil:
		return gate.APIServer{Asked: true, Err: broken(err)}
	case response.StatusCode == http.StatusOK:
		answer.Ready = true
		return answer
	case response.StatusCode == http.StatusUnauthorized, response.StatusCode == http.StatusForbidden:
		return gate.APIServer{Asked: true,
			Err: &health.Broken{Reason: "answers " + response.Status + ": the kubeconfig's credentials are refused", Hopeless: true}}
	}
	for line := range strings.Lines(string(body)) {
		if failing, ok := strings.CutPrefix(line, "[-]"); ok {
			answer.Failing = append(answer.Failing, strings.TrimSpace(failing))
		}
	}
	if len(answer.Failing) == 0 {
		answer.Failing = []string{"answers " + response.Status}
	}
	return answer
}

// version asks the API server at an address of a control plane for its version. The port is that of the kubeconfig's server.
func (k *Kube) version(ctx context.Context, address netip.Addr) gate.Version {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	server, err := k.At(address.String())
	if err != nil {
		return gate.Version{Err: broken(err)}
	}
	response, err := server.Get(ctx, "/version")
	if err != nil {
		return gate.Version{Err: broken(err)}
	}
	defer response.Body.Close()
	var info version.Info
	if err := json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&info); err != nil || info.GitVersion == "" {
		return gate.Version{Err: broken(fmt.Errorf("/version answers %s", response.Status))}
	}
	return gate.Version{Runs: info.GitVersion}
}

// ahead returns by how much a server's Date is ahead of now: 0 without a date, and below two seconds, because a Date has whole seconds.
func ahead(date string, now time.Time) time.Duration {
	there, err := http.ParseTime(date)
	if err != nil {
		return 0
	}
	if difference := there.Sub(now).Round(time.Second); difference.Abs() >= 2*time.Second {
		return difference
	}
	return 0
}
