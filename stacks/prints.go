package stacks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/cilium"
)

// prints are fingerprints: each changes when anything does that its part of the cluster is made from. A gate that vouches
// for the part runs again then. They hold no secret.
type prints struct {
	machines string
	network  string // Cilium's values, certificates apart
}

func newPrints(c *cluster.Cluster) (p prints, err error) {
	values, err := cilium.Values{Cluster: c}.Render(cilium.Keys{})
	if err != nil {
		return p, err
	}
	if p.network, err = printOf(values); err != nil {
		return p, err
	}
	p.machines, err = printOf([]any{c.Network, c.NodePools, c.Talos, c.Kubernetes})
	return p, err
}

func printOf(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}
