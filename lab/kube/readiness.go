package kube

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/lab/wait"
)

// waitReady waits until a path of a component answers ok, or ctx ends.
func waitReady(ctx context.Context, cfg *rest.Config, path string) error {
	short := rest.CopyConfig(cfg)
	short.Timeout = 2 * time.Second
	client, err := discovery.NewDiscoveryClientForConfig(short)
	if err != nil {
		return err
	}
	for {
		body, err := client.RESTClient().Get().AbsPath(path).DoRaw(ctx)
		if err == nil && string(body) == "ok" {
			return nil
		}
		if !wait.Pause(ctx, 100*time.Millisecond) {
			return fmt.Errorf("%w (last: %w)", context.Cause(ctx), err)
		}
	}
}
