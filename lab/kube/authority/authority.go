// Package authority reads the certificate authorities of Kubernetes in a machine configuration, for control planes and nodes alike.
package authority

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
)

// Accepted are the certificates of the authorities whose clients and servers a node accepts, PEM: the one that issues is the last.
func Accepted(cfg config.ClusterConfig) []byte {
	var all []byte
	for _, one := range cfg.AcceptedCAs() {
		all = slices.Concat(all, one.Crt, []byte("\n"))
	}
	return slices.Concat(all, cfg.IssuingCA().Crt)
}

// Checksum distinguishes the authorities of configurations: the issuing authority, and the accepted ones.
func Checksum(cfg config.ClusterConfig) string {
	sum := sha256.Sum256(slices.Concat(cfg.IssuingCA().Crt, Accepted(cfg)))
	return hex.EncodeToString(sum[:6])
}
