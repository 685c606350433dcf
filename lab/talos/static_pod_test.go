package talos_test

import (
	"testing"

	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/require"
)

func TestStaticPods_AreMadeAnewByTheKubeletOfAnotherMinorRelease(t *testing.T) {
	w := newWorld(t)
	w.cluster(2, 0)
	pods := func() map[string]string {
		hashes := map[string]string{}
		if k, runs := w.kube.kubelet(node(11)); runs {
			for _, p := range k.StaticPods() {
				if p.Runs {
					hashes[p.Name] = p.Hash
				}
			}
		}
		return hashes
	}
	becomes := func(version string) {
		_, err := w.admin(11).ApplyConfiguration(w.ctx, auto(w.config(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
			c.MachineConfig.MachineKubelet.KubeletImage = "ghcr.io/siderolabs/kubelet:" + version
		})))
		require.NoError(t, err)
		w.eventually("the kubelet has the new version", func() bool {
			k, runs := w.kube.kubelet(node(11))
			return runs && k.KubernetesVersion == version
		})
	}
	w.eventually("all run", func() bool { return len(pods()) == 3 })
	before, boot := pods(), bootID(w, w.admin(11))
	becomes("v1.35.9")
	require.Equal(t, before, pods(), "a patch release makes the same pods")

	others := func() bool {
		now := pods()
		for name, hash := range before {
			if now[name] == "" || now[name] == hash {
				return false
			}
		}
		return w.kube.answers(w.addr(11))
	}
	becomes("v1.34.9")
	w.eventually("the API server of the node is away, unless that was too short to see", func() bool {
		return !w.kube.answers(w.addr(11)) || others()
	})
	require.True(t, w.kube.answers(w.addr(12)))
	w.eventually("all are others", others)
	require.Equal(t, boot, bootID(w, w.admin(11)), "nothing reboots")
}
