package live

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const gated = `version: v1alpha1
machine:
  type: controlplane
  kubelet: {extraArgs: {feature-gates: "NoGate=true,CPUManager=true"}, extraConfig: {featureGates: {AllBeta: true, OtherGate: false}}}
cluster:
  apiServer: {extraArgs: {feature-gates: "kube:SidecarContainers=true, kube:LateGate=true"}}
  scheduler: {extraArgs: {feature-gates: "SidecarContainers=false"}}
`

func TestUnknownGates_AreThoseThatTheMetricsOfTheAPIServerDoNotName(t *testing.T) {
	live, _, kube := rig(t)
	unknown, err := live.UnknownGates(t.Context(), "machine: {type: worker}")
	require.NoError(t, err)
	assert.Empty(t, unknown, "nothing is asked for")
	_, err = live.UnknownGates(t.Context(), gated)
	require.Error(t, err, "no API server says what it knows")

	kube.answers["GET /version"] = "{}"
	kube.answers["GET /metrics"] = "# TYPE kubernetes_feature_enabled gauge\n" +
		`kubernetes_feature_enabled{name="CPUManager",stage=""} 1` + "\n" +
		`kubernetes_feature_enabled{name="SidecarContainers",stage="BETA"} 1` + "\n"
	unknown, err = live.UnknownGates(t.Context(), gated)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"cluster.apiServer.extraArgs.feature-gates: LateGate is no feature gate of the Kubernetes that runs",
		"machine.kubelet.extraArgs.feature-gates: NoGate is no feature gate of the Kubernetes that runs",
		"machine.kubelet.extraConfig.featureGates: OtherGate is no feature gate of the Kubernetes that runs",
	}, unknown)
}
