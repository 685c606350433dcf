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
		"(?s)cp-1 is back, but not all is well with it: the checks after cp-1: .*last: payments: no order": func(f *fake, _ *fakeNode) {
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
		require.ErrorContains(t, err, "kube-apiserver on cp-1 is not changed: cp-1's turn: gave up after 10m0s (last: payments: no order")
		assert.Empty(t, only(f.log, "kube"))
	})
}

// The new release may be what fixes them, and no run would ever come to the machine configurations, which may fix them, too.
func TestRun_AStaticPodThatIsNotReadyBeforeKeepsNothingFromTheUpgrade(t *testing.T) {
	for _, names := range [][]string{{"cp-3"}, {"cp-1", "cp-2", "cp-3"}} {
		synctest.Test(t, func(t *testing.T) {
			f, spec := newFake()
			spec.Talos = "v1.12.6"
			for _, name := range names {
				f.node(name).runs[versions.Scheduler] = ""
			}
			report, err := f.run(t, spec)
			require.NoError(t, err, names)
			assert.Len(t, report.Kubernetes, 14)
			assert.Empty(t, f.skew)
		})
	}
}

func TestRun_AControlPlaneThatIsNotWellTakesNoTurnForAStaticPod(t *testing.T) {
	for name, ill := range map[string]func(*fakeNode){
		"etcd": func(node *fakeNode) { node.etcd = "Failed" }, "kubelet": func(node *fakeNode) { node.heals = "v1.35.8" },
	} {
		synctest.Test(t, func(t *testing.T) {
			f, spec := newFake()
			spec.Talos, spec.Checks, f.unmet = "v1.12.6", []cluster.Check{{Name: "payments"}}, "payments: no order goes through"
			ill(f.node("cp-1"))
			_, err := f.run(t, spec)
			require.ErrorContains(t, err, "kube-apiserver on cp-2 is not changed: cp-2's turn: gave up after 10m0s (last: payments: no order goes "+
				"through)", "that one is well, and the check may fail because of the other")
			assert.Equal(t, []string{"kube-apiserver on cp-1"}, only(f.log, "kube"), name)
		})
	}
}
