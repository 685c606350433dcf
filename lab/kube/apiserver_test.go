package kube

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/lab/kube/kubetest"
	"github.com/slipway-platform/slipway/lab/kube/process"
)

func TestProgramVersion_IsTheTag(t *testing.T) {
	for image, version := range map[string]string{
		"registry.k8s.io/kube-apiserver:v1.35.9": "v1.35.9", "host:5000/kube-apiserver": "", "host:5000/x:v1.35.9@sha256:abc": "v1.35.9", "": "",
	} {
		require.Equal(t, version, ProgramVersion(image), image)
	}
}

func TestControlPlane_AnswersOnEachAddressInItsVersion(t *testing.T) {
	var table process.Table
	o := Options{Name: "infra", Dir: t.TempDir(), Loopback: kubetest.Loopback(), Config: kubetest.Config(t, nil),
		Binary: kubetest.Binary(t, "kube"), Processes: &table}
	c, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	await(t, c)
	next := kubetest.Config(t, func(c *v1alpha1.Config) {
		c.ClusterConfig.APIServerConfig.ContainerImage = "registry.k8s.io/kube-apiserver:" + kubetest.Later
		c.ClusterConfig.ControllerManagerConfig.ContainerImage = "registry.k8s.io/kube-controller-manager:" + kubetest.Later
	})
	version := func(a netip.Addr) string { return versionAt(t, c, a) }
	eventually := func(what string, is func() bool) {
		t.Helper()
		require.Eventually(t, is, time.Minute, 50*time.Millisecond, what)
	}
	servers := func() (n int) {
		for _, p := range table.List() {
			if p.Name == "kube-apiserver" {
				n++
			}
		}
		return n
	}
	one, two := o.Loopback.Next(), o.Loopback.Next().Next()
	endOne, err := c.Serve(one, nil)
	require.NoError(t, err)
	endTwo, err := c.Serve(two, nil)
	require.NoError(t, err)
	eventually("both answer", func() bool { return version(one) == kubetest.Version && version(two) == kubetest.Version })
	require.Equal(t, 1, servers(), "one process for one version")

	endOne()
	require.NoError(t, c.Prepare(t.Context(), "kube-apiserver", next, func() {}))
	endOne, err = c.Serve(one, next)
	require.NoError(t, err)
	eventually("one is newer", func() bool { return version(one) == kubetest.Later })
	require.Equal(t, kubetest.Version, version(two))
	require.Equal(t, 2, servers())
	endTwo()
	eventually("nobody needs the older one", func() bool { return servers() == 1 })
	eventually("the lab's own address answers", func() bool { return version(o.Loopback) == kubetest.Later })

	c.Manage("kube-controller-manager", next)
	eventually("the controller manager reports its version", func() bool {
		log, err := os.ReadFile(filepath.Join(o.Dir, "logs", "kube-controller-manager.log"))
		return err == nil && strings.Contains(string(log), kubetest.Later)
	})
	c.Manage("kube-scheduler", nil)
	eventually("no scheduler works", func() bool {
		for _, p := range table.List() {
			if p.Name == "kube-scheduler" {
				return false
			}
		}
		return true
	})
	endOne()
}

// versionAt is the version that answers on an address; empty if nothing does.
func versionAt(t *testing.T, c *ControlPlane, a netip.Addr) string {
	t.Helper()
	direct := c.RESTConfig()
	direct.Host, direct.Timeout = "https://"+netip.AddrPortFrom(a, apiPort).String(), 2*time.Second
	client, err := kubernetes.NewForConfig(direct)
	require.NoError(t, err)
	info, err := client.Discovery().ServerVersion()
	if err != nil {
		return ""
	}
	return info.GitVersion
}

// Each part needs a program that is built on demand: lab tools kube-1.35 kube-1.37.
func TestControlPlane_RunsEachMinorVersionWithItsProgram(t *testing.T) {
	for _, one := range []struct{ tool, older, newer string }{
		{"kube-1.35", "v1.35.7", kubetest.Version}, {"kube-1.37", kubetest.Version, "v1.37.1"},
	} {
		t.Run(one.tool, func(t *testing.T) {
			minor := "v" + strings.TrimPrefix(one.tool, "kube-")
			o := Options{Name: "infra", Dir: t.TempDir(), Loopback: kubetest.Loopback(), Config: configOf(t, one.older),
				Binary: kubetest.Binary(t, "kube"), Minors: map[string]string{minor: kubetest.Binary(t, one.tool)}}
			c, err := Start(t.Context(), o)
			require.NoError(t, err)
			t.Cleanup(c.Stop)
			await(t, c)
			eventually := func(a netip.Addr, version string) {
				t.Helper()
				require.Eventually(t, func() bool { return versionAt(t, c, a) == version }, time.Minute, 50*time.Millisecond)
			}
			first, second := o.Loopback.Next(), o.Loopback.Next().Next()
			endFirst, err := c.Serve(first, nil)
			require.NoError(t, err)
			endSecond, err := c.Serve(second, nil)
			require.NoError(t, err)
			eventually(first, one.older)

			next := configOf(t, one.newer)
			endFirst()
			require.NoError(t, c.Prepare(t.Context(), "kube-apiserver", next, func() {}))
			endFirst, err = c.Serve(first, next)
			require.NoError(t, err)
			eventually(first, one.newer)
			eventually(second, one.older)
			require.NoError(t, c.KubeletError(one.older))
			require.ErrorContains(t, c.KubeletError(one.newer), "is newer than the API server "+one.older)
			endSecond()
			require.NoError(t, c.KubeletError(one.newer))
			for _, component := range []string{controllerManager, schedulerName} {
				c.Manage(component, next)
				require.Eventually(t, func() bool {
					log, err := os.ReadFile(filepath.Join(o.Dir, "logs", component+".log"))
					return err == nil && strings.Contains(string(log), one.newer)
				}, time.Minute, 50*time.Millisecond, component)
			}
			endFirst()
		})
	}
}

func TestControlPlane_PreparesAManagerThatDoesNotLeadAndNoneThatDoesNotStart(t *testing.T) {
	var table process.Table
	o := Options{Name: "infra", Dir: t.TempDir(), Loopback: kubetest.Loopback(), Config: kubetest.Config(t, nil),
		Binary: kubetest.Binary(t, "kube"), Processes: &table}
	c, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	await(t, c)
	wrong := kubetest.Config(t, func(c *v1alpha1.Config) {
		unknown := v1alpha1.Args{"no-such-flag": v1alpha1.NewArgValue("1", nil)}
		c.ClusterConfig.ControllerManagerConfig.ExtraArgsConfig = unknown
		c.ClusterConfig.SchedulerConfig = &v1alpha1.SchedulerConfig{ExtraArgsConfig: unknown}
	})
	for _, component := range []string{controllerManager, schedulerName} {
		running := func() (n int) {
			for _, p := range table.List() {
				if p.Name == component {
					n++
				}
			}
			return n
		}
		require.NoError(t, c.Prepare(t.Context(), component, o.Config.(config.Provider), func() { t.Error("has ended") }), component)
		require.Eventually(t, func() bool { return running() == 1 }, time.Minute, 50*time.Millisecond, "the one that leads")

		ctx, cancel := context.WithCancel(t.Context())
		result, ended := make(chan error, 1), make(chan struct{})
		go func() { result <- c.Prepare(ctx, component, wrong, func() { close(ended) }) }()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal(component, "has not ended")
		}
		log, err := c.Log(component, wrong)
		require.NoError(t, err)
		require.Contains(t, string(log), "unknown flag: --no-such-flag")
		log, err = c.Log(component, o.Config.(config.Provider))
		require.NoError(t, err)
		require.NotContains(t, string(log), "no-such-flag")
		require.Empty(t, result, "it is tried again")
		cancel()
		require.ErrorIs(t, <-result, context.Canceled)
	}
}

// configOf is the configuration of a control plane in a version of Kubernetes.
func configOf(t *testing.T, version string) config.Provider {
	t.Helper()
	return kubetest.Config(t, func(c *v1alpha1.Config) {
		c.ClusterConfig.APIServerConfig.ContainerImage = "registry.k8s.io/kube-apiserver:" + version
		c.ClusterConfig.ControllerManagerConfig.ContainerImage = "registry.k8s.io/kube-controller-manager:" + version
		c.ClusterConfig.SchedulerConfig.ContainerImage = "registry.k8s.io/kube-scheduler:" + version
	})
}
