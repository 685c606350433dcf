package machineconfig

import (
	"errors"
	"fmt"
	"strings"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// standInSchematic takes the place of the schematic's id, which is known only once the image factory has answered.
var standInSchematic = strings.Repeat("0", 64)

// assemble makes a node's whole configuration the way the Talos provider will: generated, then patched in order.
func assemble(c Cluster, n Node) (config.Provider, error) {
	generated, err := generated(c, n)
	if err != nil {
		return nil, err
	}
	patches, err := patches(c, n)
	if err != nil {
		return nil, err
	}
	patched, err := configpatcher.Apply(configpatcher.WithConfig(generated), patches)
	if err != nil {
		return nil, fmt.Errorf("patches: %w", err)
	}
	return patched.Config()
}

// generated is what Talos makes of the versions and secrets alone. The options are those of the Talos provider.
func generated(c Cluster, n Node) (config.Provider, error) {
	kind, err := machine.ParseType(string(n.Role))
	if err != nil {
		return nil, fmt.Errorf("role %q: %w; write %s or %s", n.Role, err, ControlPlane, Worker)
	}
	contract, err := config.ParseContractFromVersion(c.TalosVersion)
	if err != nil {
		return nil, err
	}
	input, err := generate.NewInput(c.Name, c.Endpoint(), strings.TrimPrefix(c.KubernetesVersion, "v"),
		generate.WithVersionContract(contract),
		generate.WithSecretsBundle(standInSecrets()),
		generate.WithClusterDiscovery(true),
		generate.WithDNSDomain(constants.DefaultDNSDomain),
		generate.WithInstallDisk(DefaultInstallDisk),
		generate.WithInstallImage("ghcr.io/siderolabs/installer:"+c.TalosVersion),
		generate.WithPersist(true),
	)
	if err != nil {
		return nil, err
	}
	return input.Config(kind)
}

// patches loads what Render and InstallerImage give. A patch of the user's that cannot be read is named by its path.
func patches(c Cluster, n Node) ([]configpatcher.Patch, error) {
	rendered, err := Render(c, n)
	if err != nil {
		return nil, err
	}
	image, err := InstallerImage("factory.talos.dev/nocloud-installer/" + standInSchematic + ":" + c.TalosVersion)
	if err != nil {
		return nil, err
	}
	paths := []string{"rendered patch", "installer image"}
	texts := []string{rendered[0], image}
	for _, user := range c.userPatches(n) {
		paths, texts = append(paths, user.path), append(texts, user.text)
	}

	var (
		loaded []configpatcher.Patch
		errs   []error
	)
	for i, text := range texts {
		patch, err := configpatcher.LoadPatch([]byte(text))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", paths[i], err))
			continue
		}
		loaded = append(loaded, patch)
	}
	return loaded, errors.Join(errs...)
}

// standInSecrets has the shape of machine secrets and no entropy: validation looks at the shape alone, and making real
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

func indexed(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
