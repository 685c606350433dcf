package talos_test

import (
	"testing"

	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/stretchr/testify/require"
)

func TestMachined_ShowsWhatTalosctlAsksForAnUpgradeOfKubernetesAndTheTime(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeControlPlane, 11)
	w.eventually("its API is up", func() bool { return w.service(11, "apid").Healthy })
	require.Contains(t, resource[*k8s.APIServerConfig](w, 11, k8s.ControlPlaneNamespaceName, k8s.APIServerConfigID).TypedSpec().Image, "kube-apiserver:v1.35.8")
	require.Contains(t, resource[*k8s.SchedulerConfig](w, 11, k8s.ControlPlaneNamespaceName, k8s.SchedulerConfigID).TypedSpec().Image, "kube-scheduler:v1.35.8")
	answer, err := w.admin(11).Time(w.ctx)
	require.NoError(t, err)
	require.NotEmpty(t, answer.Messages[0].Server)
}
