package observe

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/internal/health"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// How often what cannot be watched is asked again, and how long an answer may take. The gate is to open within a second of the last
// condition, so this and the stability window together stay below that.
const (
	pollEvery  = 250 * time.Millisecond
	askTimeout = 5 * time.Second
)

// Kube is a read-only view of a Kubernetes API.
type Kube struct {
	context string
	config  *rest.Config
	client  dynamic.Interface
	http    *http.Client

	mu       sync.Mutex
	returned chan struct{} // closed, and made anew, when the API server comes back
}

// NewKube makes a client from the content of a kubeconfig and asks nothing yet.
func NewKube(kubeconfig []byte, calls *Calls) (*Kube, error) {
	content, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config, err := clientcmd.NewDefaultClientConfig(*content, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.UserAgent = "slipway-probe"
	config.QPS, config.Burst = 100, 200
	config.WarningHandler = rest.NoWarnings{}
	// One connection a request: a watch, or a question that times out, then takes nothing else down with it. Over HTTP/2 all of them
	// share one connection, and one to a machine that was switched off is believed in for 45 seconds.
	config.NextProtos = []string{"http/1.1"}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			calls.Add()
			return next.RoundTrip(r)
		})
	})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	objects, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return &Kube{context: content.CurrentContext, config: config, client: objects, http: client, returned: make(chan struct{})}, nil
}

// Context is the name of the kubeconfig's context.
func (k *Kube) Context() string { return k.context }

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// WatchReadiness asks /readyz until ctx ends. When the server comes back after it did not answer, every watch starts anew: a watch on a
// server that went away without closing its connections would be silent for minutes.
func (k *Kube) WatchReadiness(ctx context.Context, publish func(health.APIServer)) {
	gone, ready, lost := false, false, 0
	for ctx.Err() == nil {
		answer := k.askReady(ctx)
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
		publish(answer)
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

func (k *Kube) askReady(ctx context.Context) health.APIServer {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(k.config.Host, "/")+"/readyz", nil)
	if err != nil {
		return health.APIServer{Asked: true, Err: broken(err)}
	}
	response, err := k.http.Do(request)
	if err != nil {
		return health.APIServer{Asked: true, Err: broken(err)}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	answer := health.APIServer{Asked: true, Ahead: ahead(response.Header.Get("Date"), time.Now())}
	switch {
	case err != nil:
		return health.APIServer{Asked: true, Err: broken(err)}
	case response.StatusCode == http.StatusOK:
		answer.Ready = true
		return answer
	case response.StatusCode == http.StatusUnauthorized, response.StatusCode == http.StatusForbidden:
		return health.APIServer{Asked: true, Err: &health.Broken{Reason: "answers " + response.Status + ": the kubeconfig's credentials are refused", Hopeless: true}}
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

// ahead is by how much a server's Date is ahead of now. It has whole seconds only, so less than two are none. 0 without a date.
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
