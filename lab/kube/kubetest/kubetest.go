// Package kubetest holds what tests of the lab's Kubernetes share: a machine configuration, a loopback address of their
// own, and the multi-call binary. Tests are skipped if that is missing.
package kubetest

import (
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/semver"

	"github.com/slipway-platform/slipway/lab/tools"
)

// Version is the Kubernetes version in the tests' machine configuration: that of the multi-call binary.
const Version = "v" + tools.KubernetesVersion

// Later is a later patch release of the same minor version, which the binary reports when it is asked for.
var Later = semver.MajorMinor(Version) + ".99"

// machineSecrets are created once per test binary, because generating the RSA 4096 service-account key is slow.
var machineSecrets = sync.OnceValues(func() (*secrets.Bundle, error) {
	return secrets.NewBundle(secrets.NewFixedClock(time.Now()), config.TalosVersion1_12)
})

// Config generates a control plane's machine configuration without CNI. change, if not nil, can modify it.
func Config(t testing.TB, change func(*v1alpha1.Config)) config.Provider {
	t.Helper()
	bundle, err := machineSecrets()
	require.NoError(t, err)
	in, err := generate.NewInput("test", "https://10.25.11.10:6443", Version[1:], generate.WithVersionContract(config.TalosVersion1_12),
		generate.WithSecretsBundle(bundle))
	require.NoError(t, err)
	cfg, err := in.Config(machine.TypeControlPlane)
	require.NoError(t, err)
	patched, err := cfg.PatchV1Alpha1(func(c *v1alpha1.Config) error {
		c.ClusterConfig.ClusterNetwork.CNI = &v1alpha1.CNIConfig{CNIName: "none"}
		c.ClusterConfig.ClusterNetwork.PodSubnet = []string{"10.244.0.0/16"}
		c.ClusterConfig.ClusterNetwork.ServiceSubnet = []string{"10.245.0.0/16"}
		off := true
		c.ClusterConfig.ProxyConfig = &v1alpha1.ProxyConfig{Disabled: &off}
		if change != nil {
			change(c)
		}
		return nil
	})
	require.NoError(t, err)
	return patched
}

// Loopback is an address on which no other test process of this machine listens. It is derived from the process id.
func Loopback() netip.Addr {
	pid := os.Getpid()
	return netip.AddrFrom4([4]byte{127, byte(64 + pid>>14&63), byte(pid >> 7 & 127), byte(2 + pid&127)})
}

// Binary finds the newest multi-call binary in the tools' cache, or skips the test. Tests do not build tools.
func Binary(t testing.TB, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the real " + name)
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	var best string
	var newest time.Time
	for _, depth := range []string{"*/", "*/*/", "*/*/*/"} {
		found, err := filepath.Glob(filepath.Join(cache, "slipway", depth+name))
		require.NoError(t, err)
		for _, f := range found {
			if i, err := os.Stat(f); err == nil && i.Mode().IsRegular() && i.Mode()&0o111 != 0 && i.ModTime().After(newest) {
				best, newest = f, i.ModTime()
			}
		}
	}
	if best == "" {
		t.Skipf("no %s under %s; build the lab's tools first", name, filepath.Join(cache, "slipway"))
	}
	return best
}
