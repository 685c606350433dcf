package talos_test

import (
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/client"
	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime/extensions"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/talos"
)

// log returns a service's log.
func (w *world) log(host byte, id string, tail int32) (string, error) {
	w.t.Helper()
	stream, err := w.admin(host).Logs(w.ctx, "system", 0, id, false, tail)
	require.NoError(w.t, err)
	var all strings.Builder
	for {
		data, err := stream.Recv()
		if err != nil {
			if all.Len() > 0 {
				err = nil
			}
			return all.String(), err
		}
		all.Write(data.Bytes)
	}
}

func TestLogs_ReportWhatTheSimulatorDidInTheFormOfTheService(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 0)
	require.Contains(t, w.dmesg(11), "boot sequence: done")
	for id, says := range map[string]string{"kubelet": `kubeletVersion="v1.35.8"`, "etcd": `"msg":"starting an etcd server"`, "machined": "[talos] boot sequence: done"} {
		text, err := w.log(11, id, -1)
		require.NoError(t, err)
		require.Contains(t, text, says)
	}
	_, err := w.log(11, "ext-lldpd", -1)
	require.ErrorContains(t, err, `log "ext-lldpd" was not registered`)

	w.breaks(fault.KubeletDown, node(11), "flag provided but not defined: --what")
	w.eventually("the kubelet's last line says why", func() bool {
		text, err := w.log(11, "kubelet", 1)
		return err == nil && strings.Contains(text, `"command failed" err="failed to run Kubelet: flag provided but not defined: --what"`)
	})
	c := w.admin(11)
	names, err := c.MachineClient.LogsContainers(w.ctx, &emptypb.Empty{})
	require.NoError(t, err)
	require.Subset(t, names.Messages[0].Ids, []string{"apid", "etcd", "kubelet", "machined"})
	_, err = c.MachineClient.Processes(w.ctx, &emptypb.Empty{})
	require.Equal(t, codes.Unimplemented, client.StatusCode(err))
	require.ErrorContains(t, err, "not modelled")
}

func TestExtension_LLDPDWaitsForItsConfiguration(t *testing.T) {
	w := newWorld(t)
	hw := w.hardware(11)
	hw.ISO.Extensions = []string{agent, "siderolabs/lldpd"}
	plain := w.config(configmachine.TypeControlPlane, 11)
	w.boots(hw, plain)
	w.bootstrap(11)
	w.eventually("it waits", func() bool {
		s := w.service(11, "ext-lldpd")
		return s.State == "Waiting" && s.Message == "Waiting for extension service config"
	})
	require.Equal(t, "Running", w.service(11, "ext-qemu-guest-agent").State)
	w.eventually("everything else runs", func() bool { return w.service(11, "kubelet").Healthy })
	require.Equal(t, talos.StageBooting, w.status(11).Stage)

	configure := func(content string) configconfig.Document {
		doc := extensions.NewServicesConfigV1Alpha1()
		doc.ServiceName = "lldpd"
		doc.ServiceConfigFiles = extensions.ConfigFileList{{ConfigFileContent: content, ConfigFileMountPath: "/usr/local/etc/lldpd/lldpd.conf"}}
		return doc
	}
	_, err := w.admin(11).ApplyConfiguration(w.ctx, auto(w.with(plain, configure("configure lldp portidsubtype ifname"))))
	require.NoError(t, err)
	w.stage(11, talos.StageRunning)
	_, err = w.admin(11).ApplyConfiguration(w.ctx, auto(w.with(plain, configure("configure system hostname x"))))
	require.NoError(t, err)
	w.eventually("it starts anew with another configuration", func() bool {
		text, err := w.log(11, "ext-lldpd", -1)
		return err == nil && strings.Count(text, "started") == 2
	})
}

func TestLogs_OfAStaticPodAreThoseOfItsProcessInTheFormOfCRI(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 0)
	id := ""
	w.eventually("the container runs", func() bool {
		reply, err := w.admin(11).Containers(w.ctx, constants.K8sContainerdNamespace, common.ContainerDriver_CRI)
		require.NoError(t, err)
		for _, c := range reply.Messages[0].Containers {
			if c.Name == "kube-apiserver" && c.PodId == "kube-system/kube-apiserver-"+node(11) && c.Status == "CONTAINER_RUNNING" {
				id = c.Id
			}
		}
		return id != ""
	})
	read := func(namespace string, driver common.ContainerDriver, id string) (string, error) {
		stream, err := w.admin(11).Logs(w.ctx, namespace, driver, id, false, 1)
		require.NoError(t, err)
		data, err := stream.Recv()
		return string(data.GetBytes()), err
	}
	text, err := read(constants.K8sContainerdNamespace, common.ContainerDriver_CRI, id)
	require.NoError(t, err)
	require.Regexp(t, `^\S+Z stderr F kube-apiserver of .*:v1.35.8\n$`, text, "only the last line was asked for")
	_, err = read(constants.K8sContainerdNamespace, common.ContainerDriver_CRI, "kube-system/nothing:nothing")
	require.ErrorContains(t, err, `container "kube-system/nothing:nothing" not found`)
	_, err = read("other", common.ContainerDriver_CRI, id)
	require.ErrorContains(t, err, "CRI inspector is supported only for K8s namespace")
}
