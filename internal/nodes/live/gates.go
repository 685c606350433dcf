package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"

	"github.com/slipway-platform/slipway/cluster/machineconfig"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// gate is a line of an API server's metrics: it knows each feature gate of its release, those of the other components among them, because
// all are in one list (k8s.io/kubernetes/pkg/features).
var gate = regexp.MustCompile(`(?m)^kubernetes_feature_enabled\{name="(\w+)"`)

// UnknownGates returns the feature gates of a machine configuration that the running Kubernetes does not know, each with its path: a
// component does not start with one.
func (c *Cluster) UnknownGates(ctx context.Context, configuration string) ([]string, error) {
	wanted, err := configloader.NewFromBytes([]byte(configuration))
	if err != nil {
		return nil, RefusedError("its machine configuration cannot be read") // the cause may quote the configuration
	}
	gates := machineconfig.FeatureGates(wanted)
	if len(gates) == 0 {
		return nil, nil
	}
	known, err := c.knownGates(ctx)
	if err != nil {
		return nil, err
	}
	var unknown []string
	for _, path := range slices.Sorted(maps.Keys(gates)) {
		for _, name := range gates[path] {
			if !known[name] {
				unknown = append(unknown, fmt.Sprintf("%s: %s is no feature gate of the Kubernetes that runs", path, name))
			}
		}
	}
	return unknown, nil
}

// knownGates asks the API servers, one after the other, until one says which feature gates it knows.
func (c *Cluster) knownGates(ctx context.Context) (map[string]bool, error) {
	problem := errors.New("there is no control plane")
	for _, address := range c.kube.addresses {
		metrics, err := c.Metrics(ctx, turn.Node{Address: address})
		if err != nil {
			problem = err
			continue
		}
		known := map[string]bool{"AllAlpha": true, "AllBeta": true}
		for _, line := range gate.FindAllStringSubmatch(metrics, -1) {
			known[line[1]] = true
		}
		if len(known) > 2 {
			return known, nil
		}
		problem = errors.New("the metrics of the API server name no feature gate")
	}
	return nil, problem
}
