package kube

import (
	"net/netip"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/kube/kubetest"
)

func TestFlags_ExtraArgsAddReplaceOrAreRefused(t *testing.T) {
	f := flags{"enable-admission-plugins": "NodeRestriction", "profiling": "false", "bind-address": "127.0.1.1"}
	refused := f.merge(map[string]string{
		"enable-admission-plugins": "AlwaysPullImages", "profiling": "true", "v": "4",
		"bind-address": "0.0.0.0", "oidc-ca-file": "/etc/x", "etcd-servers": "https://elsewhere:2379",
	})
	require.Equal(t, []string{"bind-address", "etcd-servers", "oidc-ca-file"}, refused)
	require.Equal(t, []string{"--bind-address=127.0.1.1", "--enable-admission-plugins=NodeRestriction,AlwaysPullImages", "--profiling=true",
		"--v=4"}, f.args())
}

func TestFlags_TheAPIServerNeverAdvertisesALoopbackAddress(t *testing.T) {
	cfg := kubetest.Config(t, nil).Cluster()
	lo, node := netip.MustParseAddr("127.0.1.1"), netip.MustParseAddr("10.25.11.11")
	require.Equal(t, "none", apiServerFlags(cfg, "/pki", lo, lo, lo)["endpoint-reconciler-type"])
	require.Equal(t, "none", apiServerFlags(cfg, "/pki", lo, lo, netip.Addr{})["endpoint-reconciler-type"])
	f := apiServerFlags(cfg, "/pki", lo, lo, node)
	require.Equal(t, "10.25.11.11", f["advertise-address"])
	require.NotContains(t, f, "endpoint-reconciler-type")
	require.Equal(t, "https://10.25.11.10:6443", f["service-account-issuer"])
	require.Equal(t, "10.245.0.0/16", f["service-cluster-ip-range"])
	require.Equal(t, "10.244.0.0/16", controllerManagerFlags(cfg, "/pki", lo)["cluster-cidr"])
}

func TestFlags_HaveBothFamiliesAndTheMaskThatTheConfigurationAsksFor(t *testing.T) {
	cfg := kubetest.Config(t, func(c *v1alpha1.Config) {
		c.ClusterConfig.ClusterNetwork.PodSubnet = []string{"10.244.0.0/16", "fd00:10:244::/56"}
		c.ClusterConfig.ClusterNetwork.ServiceSubnet = []string{"10.245.0.0/16", "fd00:10:245::/112"}
		c.ClusterConfig.ControllerManagerConfig = &v1alpha1.ControllerManagerConfig{ExtraArgsConfig: v1alpha1.Args{
			"node-cidr-mask-size-ipv6": v1alpha1.NewArgValue("72", nil)}}
	}).Cluster()
	lo := netip.MustParseAddr("127.0.1.1")
	require.Equal(t, "10.245.0.0/16,fd00:10:245::/112", apiServerFlags(cfg, "/pki", lo, lo, lo)["service-cluster-ip-range"])
	f := controllerManagerFlags(cfg, "/pki", lo)
	require.Empty(t, f.merge(oneEach(cfg.ControllerManager().ExtraArgs())))
	require.Equal(t, "10.244.0.0/16,fd00:10:244::/56", f["cluster-cidr"])
	require.Equal(t, "10.245.0.0/16,fd00:10:245::/112", f["service-cluster-ip-range"])
	require.Equal(t, "72", f["node-cidr-mask-size-ipv6"])
}
