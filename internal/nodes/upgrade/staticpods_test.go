package upgrade

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/versions"
)

func TestRun_NoSecondControlPlaneGetsAStaticPodBeforeAllIsWellWithTheFirst(t *testing.T) {
	for want, harm := range map[string]func(*fake, *fakeNode){
		"(?s)cp-1 is back, but not all is well with it: the checks after cp-1: .*last: payments: no order goes through": func(f *fake, _ *fakeNode) {
			f.unmet = "payments: no order goes through"
		},
		"(?s)cp-1 is not back: .*last: etcd is Failed": func(_ *fake, node *fakeNode) { node.etcd = "Failed" },
	} {
		for _, component := range versions.StaticPods {
			synctest.Test(t, func(t *testing.T) {
				f, spec := newFake()
				spec.Talos, spec.Checks = "v1.12.6", []cluster.Check{{Name: "payments"}}
				f.onImage = func(node *fakeNode, changed versions.Component) {
					if changed == component {
						harm(f, node)
					}
				}
				_, err := f.run(t, spec)
				require.Error(t, err)
				require.Regexp(t, want, err.Error())
				assert.Contains(t, f.log, string(component)+" on cp-1")
				assert.NotContains(t, f.log, string(component)+" on cp-2")
			})
		}
	}
}

func TestRun_NoStaticPodIsChangedWhileACheckFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		spec.Talos, spec.Checks, f.unmet = "v1.12.6", []cluster.Check{{Name: "payments"}}, "payments: no order goes through"
		_, err := f.run(t, spec)
		require.ErrorContains(t, err, "cp-1 is not changed, because the cluster cannot spare it: ")
		require.ErrorContains(t, err, "payments: no order goes through")
		assert.Empty(t, only(f.log, "kube"))
	})
}

// The machine configurations come after this step: what corrects the static pod must not wait for it.
func TestRun_ChangesNothingWhileTheStaticPodsOfAControlPlaneAreNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		spec.Talos = "v1.12.6"
		f.node("cp-3").runs[versions.Scheduler] = ""
		_, err := f.run(t, spec)
		require.ErrorContains(t, err, "nothing was changed: the static pods: gave up after 10m0s (last: cp-3: its static pods are not ready: "+
			"kube-system/kube-scheduler-cp-3 not ready); fix them, or take back kubernetes.version for one run, so that a corrected configuration "+
			"comes first")
		assert.Empty(t, f.log)
	})
}
