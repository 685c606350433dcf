package stacks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/cilium/chart"
)

// fingerprints are checksums of the configuration of parts of the cluster. A gate that verifies a part runs again when its
// checksum changes.
type fingerprints struct {
	machines      string // without the secret patches
	secretPatches string // secret, because a short secret can be guessed from its checksum; "" means that there are no secret patches
	network       string // Cilium's values without certificates
}

func newFingerprints(c *cluster.Cluster) (p fingerprints, err error) {
	network := chart.Values{Cluster: c}
	render := network.Render
	if c.Cilium.Owner == cluster.OwnerFlux { // Flux rolls out the user's values, at any time
		render = network.RenderOwn
	}
	values, err := render(chart.Keys{})
	if err != nil {
		return p, err
	}
	if p.network, err = fingerprint(values); err != nil {
		return p, err
	}
	if patches := c.TalosSecretPatches.Reveal(); patches != "" {
		if p.secretPatches, err = fingerprint(patches); err != nil {
			return p, err
		}
	}
	pools := slices.Clone(c.NodePools)
	for i := range pools {
		pools[i].Hosts = nil // where new machines would go
	}
	p.machines, err = fingerprint([]any{c.Network, pools, c.Talos, c.Kubernetes})
	return p, err
}

func fingerprint(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}
