package observe

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/tools/remotecommand"
)

// exec runs a command in a container and returns its standard output.
func (k *Kube) exec(ctx context.Context, namespace, pod, container string, command ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	query := url.Values{"container": {container}, "command": command, "stdout": {"true"}, "stderr": {"true"}}
	target, err := url.Parse(k.URL("/api/v1/namespaces/" + namespace + "/pods/" + pod + "/exec?" + query.Encode()))
	if err != nil {
		return nil, err
	}

	websocket, err := remotecommand.NewWebSocketExecutor(k.Config, "GET", target.String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(k.Config, "POST", target)
	if err != nil {
		return nil, err
	}
	executor, err := remotecommand.NewFallbackExecutor(websocket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return nil, err
	}
	var stdout, stderr output
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		if said := strings.TrimSpace(string(stderr.bytes())); said != "" {
			return nil, fmt.Errorf("%w: %s", err, said)
		}
		return nil, err
	}
	return stdout.bytes(), nil
}

// output collects a stream. The executor may still write to it after it has given up on ctx.
type output struct {
	mu      sync.Mutex
	content []byte
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.content = append(o.content, p...)
	return len(p), nil
}

func (o *output) bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.content)
}
