package talos_test

import (
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	clusterres "github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	serviceres "github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/talos"
)

func TestStatus_SaysWhyAMachineIsNotReadyInTalossWords(t *testing.T) {
	w := newWorld(t)
	w.kube.set(func() { w.kube.noCNI = true })
	w.install(configmachine.TypeControlPlane, 11)
	status := func() runtime.MachineStatusSpec {
		return *resource[*runtime.MachineStatus](w, 11, runtime.NamespaceName, runtime.MachineStatusID).TypedSpec()
	}
	w.eventually("etcd waits for it", func() bool { return w.service(11, "etcd").State == "Preparing" && w.service(11, "apid").Healthy })
	w.eventually("the kubelet waits for the API", func() bool {
		return reflect.DeepEqual(status(), runtime.MachineStatusSpec{
			Stage: runtime.MachineStageBooting,
			Status: runtime.MachineStatusStatus{UnmetConditions: []runtime.UnmetCondition{
				{Name: "services", Reason: "kubelet not healthy, etcd not running"},
				{Name: "nodeReady", Reason: `node "node-11" status is not available yet`},
			}},
		})
	})
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	w.eventually("without CNI it runs and is not ready", func() bool {
		return reflect.DeepEqual(status(), runtime.MachineStatusSpec{
			Stage: runtime.MachineStageRunning,
			Status: runtime.MachineStatusStatus{UnmetConditions: []runtime.UnmetCondition{
				{Name: "nodeReady", Reason: `node "node-11" is not ready`},
			}},
		})
	})
	w.kube.mu.Lock()
	report := w.kube.kubelets[node(11)].NodeStatus
	w.kube.mu.Unlock()
	report(&k8s.NodeStatusSpec{Nodename: node(11), NodeReady: true, Unschedulable: true})
	require.Equal(t, runtime.MachineStatusSpec{Stage: runtime.MachineStageRunning, Status: runtime.MachineStatusStatus{Ready: true}}, status())
	require.True(t, resource[*k8s.NodeStatus](w, 11, k8s.NamespaceName, node(11)).TypedSpec().Unschedulable)
	report(nil)
	require.Equal(t, `node "node-11" status is not available yet`, status().Status.UnmetConditions[0].Reason)
}

func TestAPI_RolesDecideWhatAClientMayDo(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 0)
	reader := w.admin(11, role.Reader)
	_, err := reader.Version(w.ctx)
	require.NoError(t, err)
	require.Equal(t, codes.PermissionDenied, client.StatusCode(reader.Reboot(w.ctx)))
	_, err = reader.ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{Data: []byte("x")})
	require.Equal(t, codes.PermissionDenied, client.StatusCode(err))
	_, err = safe.StateListAll[*clusterres.Member](w.ctx, reader.COSI)
	require.NoError(t, err)
	_, err = safe.StateListAll[*configres.MachineConfig](w.ctx, reader.COSI)
	require.Equal(t, codes.PermissionDenied, client.StatusCode(err), "the machine configuration holds keys")
	configs, err := safe.StateListAll[*configres.MachineConfig](w.ctx, w.admin(11).COSI)
	require.NoError(t, err)
	require.Equal(t, 2, configs.Len(), "that which it runs, and that on its disk")
}

func TestAPI_AWorkerAnswersOnlyOnceAControlPlaneSignsForIt(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeWorker, 21)
	w.stage(21, talos.StageBooting)
	w.eventually("apid waits", func() bool { return w.service(21, "apid").Message == "Waiting for api certificates" })
	w.install(configmachine.TypeControlPlane, 11)
	c := w.admin(21)
	w.eventually("the worker answers", func() bool { _, err := c.Version(w.ctx); return err == nil })
}

func TestApid_ForwardsToNodesAndReportsThoseThatDoNotAnswer(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 1)
	cp, worker, gone := w.addr(11).String(), w.addr(21).String(), w.addr(77).String()
	c := w.admin(11)

	resp, err := c.Version(client.WithNodes(w.ctx, cp, worker))
	require.NoError(t, err)
	require.Len(t, resp.Messages, 2)
	hostnames := []string{resp.Messages[0].Metadata.Hostname, resp.Messages[1].Metadata.Hostname}
	require.ElementsMatch(t, []string{cp, worker}, hostnames, "in the order in which they have answered")

	resp, err = c.Version(client.WithNodes(w.ctx, worker, gone))
	require.Error(t, err)
	require.Len(t, resp.Messages, 1, "the node that answers is not lost")
	require.ErrorContains(t, err, gone)
	require.ErrorContains(t, err, "no route to host")

	host, err := c.MachineClient.Hostname(client.WithNode(w.ctx, worker), &emptypb.Empty{})
	require.NoError(t, err)
	require.Equal(t, node(21), host.Messages[0].Hostname)
	_, err = c.Version(client.WithNode(w.ctx, gone))
	require.Equal(t, codes.Unavailable, client.StatusCode(err))

	disks, err := c.Disks(client.WithNodes(w.ctx, cp, worker))
	require.NoError(t, err)
	require.Len(t, disks.Messages, 2)

	name, err := safe.StateGetByID[*k8s.Nodename](client.WithNode(w.ctx, worker), c.COSI, k8s.NodenameID)
	require.NoError(t, err)
	require.Equal(t, node(21), name.TypedSpec().Nodename)
	_, err = safe.StateGetByID[*k8s.Nodename](client.WithNodes(w.ctx, cp, worker), c.COSI, k8s.NodenameID)
	require.Equal(t, codes.InvalidArgument, client.StatusCode(err))

	_, err = w.admin(21).Version(client.WithNode(w.ctx, cp))
	require.Equal(t, codes.PermissionDenied, client.StatusCode(err), "workers do not forward")
}

func TestServices_AreListedWithStateHealthAndEvents(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 0)
	infos, err := w.admin(11).ServiceInfo(w.ctx, "kubelet")
	require.NoError(t, err)
	require.Equal(t, "Running", infos[0].Service.State)
	require.True(t, infos[0].Service.Health.Healthy)
	require.NotEmpty(t, infos[0].Service.Events.Events)
	list, err := w.admin(11).ServiceList(w.ctx)
	require.NoError(t, err)
	var ids []string
	for _, s := range list.Messages[0].Services {
		ids = append(ids, s.Id)
	}
	require.Equal(t, []string{"apid", "auditd", "containerd", "cri", "dashboard", "etcd", "ext-qemu-guest-agent", "kubelet", "machined",
		"syslogd", "trustd", "udevd"}, ids)
	res, err := safe.StateGetByID[*serviceres.Service](w.ctx, w.admin(11).COSI, "kubelet")
	require.NoError(t, err)
	require.True(t, res.TypedSpec().Healthy)
}

func TestServices_KubeletIsUnhealthyUntilTheClusterIsBootstrapped(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeControlPlane, 11)
	w.eventually("kubelet runs and is not healthy", func() bool {
		s := w.service(11, "kubelet")
		return s.State == "Running" && !s.Healthy && strings.Contains(s.Message, "connection refused")
	})
	require.Equal(t, "Preparing", w.service(11, "etcd").State)
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	k, runs := w.kube.kubelet(node(11))
	require.True(t, runs)
	require.Equal(t, "v1.35.8", k.KubernetesVersion)
	require.Equal(t, []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}}, k.Taints)
	require.Contains(t, k.Labels, "node-role.kubernetes.io/control-plane")
}

func TestServices_OnlyWhatTalosAllowsIsStartedStoppedAndRestarted(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 0)
	c := w.admin(11)
	_, err := c.ServiceStop(w.ctx, "kubelet")
	require.ErrorContains(t, err, "doesn't support stop operation via API")
	_, err = c.ServiceRestart(w.ctx, "etcd")
	require.ErrorContains(t, err, "doesn't support restart operation via API")
	_, err = c.ServiceRestart(w.ctx, "nonsense")
	require.ErrorContains(t, err, `service "nonsense" not defined`)
	_, err = c.ServiceRestart(w.ctx, "kubelet")
	require.NoError(t, err)
	w.eventually("kubelet is back", func() bool { _, runs := w.kube.kubelet(node(11)); return runs && w.service(11, "kubelet").Healthy })
}

func TestFault_AKubeletThatIsDownWaitsAndSaysWhyUntilTheFaultIsOff(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 1)
	require.NoError(t, w.faults.On(fault.Fault{Kind: fault.KubeletDown, Target: node(21)}))
	w.eventually("kubelet failed", func() bool {
		_, runs := w.kube.kubelet(node(21))
		return !runs && w.service(21, "kubelet").State == "Waiting"
	})
	require.Equal(t, `Error running Containerd(kubelet), going to restart forever: task "kubelet" failed: exit code 1 (last log "")`,
		w.service(21, "kubelet").Message)
	require.True(t, w.service(11, "kubelet").Healthy, "only the node that the fault names")
	c := w.admin(11)
	w.eventually("the machine is not ready", func() bool {
		st, err := safe.StateGetByID[*runtime.MachineStatus](client.WithNode(w.ctx, w.addr(21).String()), c.COSI, runtime.MachineStatusID)
		return err == nil && !st.TypedSpec().Status.Ready
	})
	w.faults.Clear()
	w.eventually("kubelet is back", func() bool { _, runs := w.kube.kubelet(node(21)); return runs && w.service(21, "kubelet").Healthy })
}

func TestApply_TheSameConfigurationNeedsNoReboot(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 0)
	c := w.admin(11)
	boot := bootID(w, c)
	resp, err := c.ApplyConfiguration(w.ctx, auto(w.config(configmachine.TypeControlPlane, 11)))
	require.NoError(t, err)
	require.Equal(t, machine.ApplyConfigurationRequest_NO_REBOOT, resp.Messages[0].Mode)
	require.Equal(t, boot, bootID(w, c))
}

func TestApply_ChangesTakeEffectAtOnceOrByReboot(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 0)
	c := w.admin(11)
	boot := bootID(w, c)
	labelled := w.config(configmachine.TypeControlPlane, 11,
		func(c *v1alpha1.Config) { c.MachineConfig.MachineNodeLabels = map[string]string{"zone": "a"} })
	dry, err := c.ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{Data: labelled, DryRun: true,
		Mode: machine.ApplyConfigurationRequest_AUTO})
	require.NoError(t, err)
	require.Contains(t, dry.Messages[0].ModeDetails, "zone: a")
	_, err = c.ApplyConfiguration(w.ctx, auto(labelled))
	require.NoError(t, err)
	w.eventually("the kubelet has the label", func() bool { k, _ := w.kube.kubelet(node(11)); return k.Labels["zone"] == "a" })
	require.Equal(t, boot, bootID(w, c))

	udev := w.config(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
		c.MachineConfig.MachineUdev = &v1alpha1.UdevConfig{UdevRules: []string{`SUBSYSTEM=="drm"`}}
	})
	_, err = c.ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{Data: udev, Mode: machine.ApplyConfigurationRequest_NO_REBOOT})
	require.Equal(t, codes.InvalidArgument, client.StatusCode(err))
	resp, err := c.ApplyConfiguration(w.ctx, auto(udev))
	require.NoError(t, err)
	require.Equal(t, machine.ApplyConfigurationRequest_REBOOT, resp.Messages[0].Mode)
	w.eventually("the node rebooted", func() bool { id := tryBootID(w, c); return id != "" && id != boot })
	_, err = c.ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{Data: []byte("machine: {}")})
	require.Equal(t, codes.InvalidArgument, client.StatusCode(err))
}

func TestApply_TryModeIsRevertedByItself(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 0)
	labelled := w.config(configmachine.TypeControlPlane, 11,
		func(c *v1alpha1.Config) { c.MachineConfig.MachineNodeLabels = map[string]string{"zone": "a"} })
	_, err := w.admin(11).ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{
		Data: labelled, Mode: machine.ApplyConfigurationRequest_TRY, TryModeTimeout: durationpb.New(200 * time.Millisecond),
	})
	require.NoError(t, err)
	w.eventually("the label is there", func() bool { k, _ := w.kube.kubelet(node(11)); return k.Labels["zone"] == "a" })
	w.eventually("the label is gone", func() bool { k, ok := w.kube.kubelet(node(11)); return ok && k.Labels["zone"] == "" })
}

func TestReset_SendsEventsAndLeadsBackToMaintenance(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 1)
	c := w.admin(21)
	events := make(chan client.EventResult)
	require.NoError(t, c.EventsWatchV2(w.ctx, events))
	_, err := c.ResetGenericWithResponse(w.ctx, &machine.ResetRequest{Reboot: true, SystemPartitionsToWipe: []*machine.ResetPartitionSpec{
		{Label: "STATE", Wipe: true}, {Label: "EPHEMERAL", Wipe: true},
	}})
	require.NoError(t, err)
	for e := range events {
		require.NoError(t, e.Error)
		if task, ok := e.Event.Payload.(*machine.TaskEvent); ok && task.Task == "stopAllServices" {
			require.Equal(t, machine.TaskEvent_START, task.Action)
			break
		}
	}
	w.stage(21, talos.StageMaintenance)
	w.apply(21, w.config(configmachine.TypeWorker, 21))
	w.stage(21, talos.StageRunning)
}

func TestPower_RebootChangesTheBootIDAndShutdownEndsTheGuest(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 0)
	c := w.admin(11)
	before := bootID(w, c)
	require.NoError(t, c.Reboot(w.ctx))
	w.eventually("it is another boot", func() bool { id := tryBootID(w, c); return id != "" && id != before })
	w.stage(11, talos.StageRunning) // a node whose kubelet is not up yet cannot be cordoned
	require.NoError(t, c.Shutdown(w.ctx))
	w.stage(11, talos.StageOff)
}

func TestKubeconfig_HoldsAnAdminOfTheClusterAndItsEndpoint(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 1)
	content, err := w.admin(11).Kubeconfig(w.ctx)
	require.NoError(t, err)
	cfg, err := clientcmd.Load(content)
	require.NoError(t, err)
	require.Equal(t, "https://"+w.vip().String()+":6443", cfg.Clusters["test"].Server)
	require.Equal(t, "admin@test", cfg.CurrentContext)
	_, err = w.admin(21).Kubeconfig(w.ctx)
	require.Equal(t, codes.Unimplemented, client.StatusCode(err), "workers have none")
}

// auto applies as the provider does: Talos decides whether to reboot.
func auto(data []byte) *machine.ApplyConfigurationRequest {
	return &machine.ApplyConfigurationRequest{Data: data, Mode: machine.ApplyConfigurationRequest_AUTO}
}

func bootID(w *world, c *client.Client) string {
	w.t.Helper()
	id := tryBootID(w, c)
	require.NotEmpty(w.t, id)
	return id
}

func tryBootID(w *world, c *client.Client) string {
	r, err := c.Read(w.ctx, "/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	defer r.Close()
	out, err := io.ReadAll(r)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
