package live

import (
	"context"
	"fmt"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (s *talos) Containers(_ context.Context, in *machine.ContainersRequest) (*machine.ContainersResponse, error) {
	var all []*machine.ContainerInfo
	add := func(pod, name, id, status string) {
		all = append(all, &machine.ContainerInfo{
			Namespace: in.Namespace, PodId: pod, Name: name, Id: pod + ":" + name + ":" + id, Status: status,
		})
	}
	add("kube-system/kube-apiserver-cp-1", "kube-system/kube-apiserver-cp-1", "a", "SANDBOX_READY")
	add("kube-system/kube-apiserver-cp-1", "kube-apiserver", "running", "CONTAINER_RUNNING")
	add("kube-system/kube-apiserver-cp-1", "kube-apiserver", "ended", "CONTAINER_EXITED")
	add("kube-system/kube-scheduler-cp-1", "kube-scheduler", "b", "CONTAINER_RUNNING")
	return &machine.ContainersResponse{Messages: []*machine.Container{{Containers: all}}}, nil
}

// Logs sends seven lines, of which one has a token.
func (s *talos) Logs(in *machine.LogsRequest, out machine.MachineService_LogsServer) error {
	for i := range 7 {
		line := fmt.Sprintf("2026-01-02T03:04:05.6Z stderr F %d of %s, token=ghp_0123456789abcdef0123456789abcdef0123\n", i, in.GetId())
		if err := out.Send(&common.Data{Bytes: []byte(line)}); err != nil {
			return err
		}
	}
	return nil
}

func TestLastLines_AreThoseOfTheContainersThatDoNotStartWithoutSecrets(t *testing.T) {
	live, node, _, talos := rigOf(t, "v1.12.7")
	for name, ready := range map[string]string{"kube-apiserver": "False", "kube-scheduler": "True"} {
		pod := k8s.NewStaticPodStatus(k8s.NamespaceName, "kube-system/"+name+"-cp-1")
		pod.TypedSpec().PodStatus = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready}}}
		require.NoError(t, talos.resources.Create(t.Context(), pod))
	}
	lines := live.LastLines(t.Context(), node)
	require.Len(t, lines, 1+lastLines)
	assert.Equal(t, "log of kube-apiserver:", lines[0])
	assert.Regexp(t, `^\| 6 of kube-system/kube-apiserver-cp-1:kube-apiserver:ended, token=`, lines[lastLines])
	assert.NotContains(t, fmt.Sprint(lines), "0123456789abcdef")
}
