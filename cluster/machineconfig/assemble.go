package machineconfig

import (
	"fmt"
	"strings"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"

	"github.com/slipway-platform/slipway/cluster"
)

// standInSchematic takes the place of the schematic's id, which is known only after the image factory has answered.
var standInSchematic = strings.Repeat("0", 64)

// standInManifest takes the place of the contents of an inline manifest.
const standInManifest = "# contents of an inline manifest"

// assemble makes a node's whole configuration the way the Talos provider does: generated first, then patched in order.
func assemble(c model, n cluster.Machine) (config.Provider, error) {
	full, _, err := withoutUserPatches(c, n)
	if err != nil {
		return nil, err
	}
	for _, user := range c.userPatches(n) {
		patch, err := loadPatch(user.text)
		if err == nil {
			full, err = applyPatch(full, patch)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", user.path, describe(err, user.text))
		}
	}
	return full, nil
}

// withoutUserPatches makes the configuration that a node has if the user declares no patches, and the tree of what Slipway renders of
// it. A stand-in takes the place of the contents of each inline manifest.
func withoutUserPatches(c model, n cluster.Machine) (full config.Provider, rendered map[string]any, err error) {
	texts, err := ownPatches(c, n)
	if err != nil {
		return nil, nil, err
	}
	if full, err = generated(c, n); err != nil {
		return nil, nil, err
	}
	var own config.Provider
	for _, text := range texts {
		var patch, again configpatcher.StrategicMergePatch // applied patches share memory with the configuration
		if patch, err = loadPatch(text); err == nil {
			full, err = applyPatch(full, patch)
		}
		if err == nil {
			again, err = loadPatch(text)
		}
		switch {
		case err == nil && own == nil:
			own = again.Provider()
		case err == nil:
			own, err = applyPatch(own, again)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("rendered patch: %w", err)
		}
	}
	if rendered, err = documents(own); err != nil {
		return nil, nil, err
	}
	prune("", rendered)
	return full, rendered, nil
}

// ownPatches are the patches that Slipway makes for a node.
func ownPatches(c model, n cluster.Machine) ([]string, error) {
	own, err := renderOwn(c, n)
	if err != nil {
		return nil, err
	}
	image, err := InstallerImage("factory.talos.dev/nocloud-installer/" + standInSchematic + ":" + c.Talos.Version)
	if err != nil {
		return nil, err
	}
	texts := []string{own, image}
	if n.Role == cluster.ControlPlane && c.Cilium.Inline() { // the program adds the contents
		manifest, err := InlineManifest(CiliumManifest, standInManifest)
		if err != nil {
			return nil, err
		}
		texts = append(texts, manifest)
	}
	return texts, nil
}

// generated makes the configuration that Talos generates from the versions and secrets alone, with the options of the Talos
// provider.
func generated(c model, n cluster.Machine) (config.Provider, error) {
	kind, err := machine.ParseType(string(n.Role))
	if err != nil {
		return nil, err
	}
	contract, err := config.ParseContractFromVersion(string(c.Talos.Contract))
	if err != nil {
		return nil, err
	}
	input, err := generate.NewInput(c.Identity.Name, c.Network.Endpoint(), strings.TrimPrefix(c.Kubernetes.Version, "v"),
		generate.WithVersionContract(contract),
		generate.WithSecretsBundle(standInSecrets()),
		generate.WithClusterDiscovery(true),
		generate.WithDNSDomain(cluster.DNSDomain),
		generate.WithInstallDisk(cluster.FirstDisk),
		generate.WithInstallImage("ghcr.io/siderolabs/installer:"+c.Talos.Version),
	)
	if err != nil {
		return nil, err
	}
	return input.Config(kind)
}

// standInSecrets returns machine secrets of the right form with fixed contents. Validation checks the form only, and making real
// ones takes seconds.
func standInSecrets() *secrets.Bundle {
	pair := func(name string) *x509.PEMEncodedCertificateAndKey {
		return &x509.PEMEncodedCertificateAndKey{Crt: []byte("stand-in " + name + " certificate"), Key: []byte("stand-in " + name + " key")}
	}
	return &secrets.Bundle{
		Cluster:    &secrets.Cluster{ID: "stand-in-id", Secret: "stand-in-secret"},
		Secrets:    &secrets.Secrets{BootstrapToken: "standi.nstandinstandin0", SecretboxEncryptionSecret: "stand-in-secretbox"},
		TrustdInfo: &secrets.TrustdInfo{Token: "standi.nstandinstandin1"},
		Certs: &secrets.Certs{
			Etcd:              pair("etcd"),
			K8s:               pair("kubernetes"),
			K8sAggregator:     pair("aggregator"),
			K8sServiceAccount: &x509.PEMEncodedKey{Key: []byte("stand-in service account key")},
			OS:                pair("os"),
		},
	}
}
