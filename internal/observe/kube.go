package observe

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

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
	context string
	config  *rest.Config
	client  dynamic.Interface
	http    *http.Client

	mu       sync.Mutex
	returned chan struct{} // closed and replaced when the API server answers again
}

// NewKube makes a client from the content of a kubeconfig. It sends no request.
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
	// HTTP/1.1 uses one connection for each request. Over HTTP/2 all requests share one connection, so a watch or a request that times out
	// breaks the others; and after a machine was switched off, its connection is used for 45 more seconds.
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

// Context returns the name of the kubeconfig's current context.
func (k *Kube) Context() string { return k.context }

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// watchReadiness asks /readyz until ctx ends, and publishes each answer unless publish is nil. When the server answers again after it did
// not, every watch is started again: a watch on a server that went away without closing its connections receives nothing for minutes.
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
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(k.config.Host, "/")+"/readyz", nil)
	if err != nil {
		return gate.APIServer{Asked: true, Err: broken(err)}
	}
	response, err := k.http.Do(request)
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
func (k *Kube) version(ctx context.Context, address string) gate.Version {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	server, err := url.Parse(k.config.Host)
	if err != nil {
		return gate.Version{Err: broken(err)}
	}
	server.Host = net.JoinHostPort(address, cmp.Or(server.Port(), "443"))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.JoinPath("version").String(), nil)
	if err != nil {
		return gate.Version{Err: broken(err)}
	}
	response, err := k.http.Do(request)
	if err != nil {
		return gate.Version{Err: broken(err)}
	}
	defer response.Body.Close()
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
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
