package upgrade

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/nodes/versions"
)

func TestRun_AfterAComponentThatDidNotStartNoOtherNodeGetsIt(t *testing.T) {
	for _, component := range append(slices.Clone(versions.StaticPods), versions.Kubelet) {
		synctest.Test(t, func(t *testing.T) {
			f, spec := newFake()
			f.broken = map[versions.Component]string{component: "cp-1"}
			for try := range 3 {
				report, err := f.run(t, spec)
				if left := try > 0 && component != versions.APIServer; left { // the configurations may correct it
					require.NoError(t, err)
					assert.Equal(t, string(component)+" on cp-1", report.Left)
					assert.Contains(t, report.Sentence(), "to their machine configurations")
				} else {
					require.ErrorContains(t, err, "cp-1")
					require.ErrorContains(t, err, "log of "+string(component)+":\n  | unknown flag")
				}
				assert.NotContains(t, f.log, string(component)+" on cp-2")
				assert.NotContains(t, f.log, string(component)+" on worker-1")
			}
			f.broken = nil // it was fixed on the node
			f.node("cp-1").runs[component] = repositories[component] + ":v1.35.8"
			if component == versions.Kubelet {
				f.node("cp-1").kube.Kubelet, f.node("cp-1").kube.Ready = "v1.35.8", true
			}
			report, err := f.run(t, spec)
			require.NoError(t, err)
			assert.Empty(t, report.Left)
			assert.Contains(t, f.log, "kubelet on worker-2")
		})
	}
}

func TestRun_GoesBackToTheFormerReleaseIfAnAPIServerDoesNotStart(t *testing.T) {
	for _, test := range []struct {
		broken        string
		controlPlanes int
		want          []string
	}{
		{"cp-1", 1, []string{"kube-apiserver on cp-1"}},
		{"cp-1", 3, []string{"kube-apiserver on cp-1"}},
		{"cp-2", 3, []string{"kube-apiserver on cp-2", "kube-apiserver on cp-1"}}, // the others wait for what is broken
	} {
		synctest.Test(t, func(t *testing.T) {
			f, spec := newFake()
			f.nodes, spec.Nodes = slices.Delete(f.nodes, test.controlPlanes, 3), slices.Delete(spec.Nodes, test.controlPlanes, 3)
			f.broken = map[versions.Component]string{versions.APIServer: test.broken}
			_, err := f.run(t, spec)
			require.ErrorContains(t, err, test.broken)
			require.ErrorContains(t, err, "declare the former kubernetes.version with the setting corrected, run up, and upgrade again")

			f.broken, f.log, spec.Kubernetes = nil, nil, "v1.34.2"
			start := time.Now()
			_, err = f.run(t, spec)
			require.NoError(t, err)
			assert.Equal(t, test.want, only(f.log, "kube"))
			assert.Less(t, time.Since(start), 5*time.Minute)
			for _, node := range f.nodes {
				for component, image := range node.runs {
					assert.Equal(t, repositories[component]+":v1.34.2", image, node.Name)
				}
			}
			assert.Empty(t, f.skew)
		})
	}
}

// The turns of Talos's upgrade wait for the API server, so that no run would ever come to it.
func TestRun_GoesBackBeforeItChangesTheExtensions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.broken = map[versions.Component]string{versions.APIServer: "cp-1"}
		_, err := f.run(t, spec)
		require.Error(t, err)
		f.log, spec.Kubernetes, spec.Schematic = nil, "v1.34.2", "bb"
		_, _ = f.run(t, spec)
		require.NotEmpty(t, f.log)
		assert.Equal(t, "kube-apiserver on cp-1", f.log[0])
	})
}

// The turns of the kubelets wait for the component, so that no run would ever come to the configurations.
func TestRun_AComponentThatDoesNotStartOnTheLastNodeIsLeftToo(t *testing.T) {
	for _, component := range versions.StaticPods {
		synctest.Test(t, func(t *testing.T) {
			f, spec := newFake()
			f.broken = map[versions.Component]string{component: "cp-3"}
			_, err := f.run(t, spec)
			require.ErrorContains(t, err, "cp-3")
			f.log = nil
			report, err := f.run(t, spec)
			if component == versions.APIServer {
				require.ErrorContains(t, err, "declare the former kubernetes.version")
			} else {
				require.NoError(t, err)
				assert.Equal(t, string(component)+" on cp-3", report.Left)
			}
			assert.Empty(t, only(f.log, "kube"))
		})
	}
}

// Talos's new version on the workers shows nothing of the kubelet's.
func TestRun_AKubeletThatDoesNotStartIsOnOneWorkerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		spec.MaxUnavailable = "2"
		f.broken = map[versions.Component]string{versions.Kubelet: "worker-1"}
		_, err := f.run(t, spec)
		require.ErrorContains(t, err, "worker-1 is not back")
		assert.Contains(t, f.log, "kubelet on worker-1")
		assert.NotContains(t, f.log, "kubelet on worker-2")

		report, err := f.run(t, spec)
		require.NoError(t, err)
		assert.Equal(t, "kubelet on worker-1", report.Left)
		assert.NotContains(t, f.log, "kubelet on worker-2")

		f.node("worker-1").kube.Kubelet = spec.Kubernetes // it has started, and is not Ready for another reason
		report, err = f.run(t, spec)
		require.NoError(t, err)
		assert.Empty(t, report.Left)
		assert.Contains(t, f.log, "kubelet on worker-2")
	})
}
