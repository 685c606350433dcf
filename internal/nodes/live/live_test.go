package live

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	cosi "github.com/cosi-project/runtime/pkg/state/protobuf/server"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/tests/fakes/talosapitest"
)

// talos is the part of a node's Talos API that the package uses.
type talos struct {
	machine.UnimplementedMachineServiceServer
	kubeconfig, version string
	did                 []string
	resources           state.State
	applies             bool // it takes configurations, and not only dry runs
	member              *machine.EtcdMemberStatus
}

func (s *talos) Version(context.Context, *emptypb.Empty) (*machine.VersionResponse, error) {
	return &machine.VersionResponse{Messages: []*machine.Version{{Version: &machine.VersionInfo{Tag: s.version}}}}, nil
}

// ApplyConfiguration notes what is applied, and answers a dry run as a release of Talos does that reboots for another machine.env.
func (s *talos) ApplyConfiguration(_ context.Context, in *machine.ApplyConfigurationRequest) (*machine.ApplyConfigurationResponse, error) {
	mode := machine.ApplyConfigurationRequest_NO_REBOOT
	switch text := string(in.GetData()); {
	case in.GetMode() == machine.ApplyConfigurationRequest_STAGED && !in.GetDryRun():
		s.did = append(s.did, "stage "+text)
		return &machine.ApplyConfigurationResponse{}, nil
	case s.applies && !in.GetDryRun():
		return s.activate(in)
	case !in.GetDryRun() || in.GetMode() != machine.ApplyConfigurationRequest_AUTO:
		return nil, status.Error(codes.PermissionDenied, "the configuration would be changed")
	case text == "wrong":
		return nil, status.Error(codes.InvalidArgument, "unknown key")
	case text == "busy":
		return nil, status.Error(codes.Unavailable, "later")
	case strings.Contains(text, "env") && s.version < "v1.14":
		mode = machine.ApplyConfigurationRequest_REBOOT
	}
	return &machine.ApplyConfigurationResponse{Messages: []*machine.ApplyConfiguration{{Mode: mode}}}, nil
}

func (s *talos) Reboot(_ context.Context, in *machine.RebootRequest) (*machine.RebootResponse, error) {
	s.did = append(s.did, "reboot "+in.GetMode().String())
	return &machine.RebootResponse{Messages: []*machine.Reboot{{}}}, nil
}

func (s *talos) Read(in *machine.ReadRequest, out machine.MachineService_ReadServer) error {
	return out.Send(&common.Data{Bytes: []byte(strings.TrimPrefix(in.Path, "/proc/sys/kernel/random/") + " of this boot\n")})
}

func (s *talos) ServiceList(context.Context, *emptypb.Empty) (*machine.ServiceListResponse, error) {
	return &machine.ServiceListResponse{Messages: []*machine.ServiceList{{Services: []*machine.ServiceInfo{
		{Id: "etcd", State: "Running", Health: &machine.ServiceHealth{Healthy: true}, Events: &machine.ServiceEvents{
			Events: []*machine.ServiceEvent{{Ts: timestamppb.New(time.Unix(5, 0))}, {Ts: timestamppb.New(time.Unix(7, 0))}},
		}},
		{Id: "ext-x", State: "Running", Health: &machine.ServiceHealth{Unknown: true}},
	}}}}, nil
}

func (s *talos) EtcdStatus(context.Context, *emptypb.Empty) (*machine.EtcdStatusResponse, error) {
	return &machine.EtcdStatusResponse{Messages: []*machine.EtcdStatus{{MemberStatus: s.member}}}, nil
}

func (s *talos) EtcdSnapshot(_ *machine.EtcdSnapshotRequest, stream grpc.ServerStreamingServer[common.Data]) error {
	return stream.Send(&common.Data{Bytes: []byte("data")})
}

func (s *talos) EtcdMemberList(context.Context, *machine.EtcdMemberListRequest) (*machine.EtcdMemberListResponse, error) {
	return &machine.EtcdMemberListResponse{Messages: []*machine.EtcdMembers{{Members: []*machine.EtcdMember{
		{Id: 7, Hostname: "cp-1", PeerUrls: []string{"https://10.25.11.11:2380"}},
		{Id: 8, Hostname: "cp-2", PeerUrls: []string{"https://[fd25::12]:2380"}, IsLearner: true},
	}}}}, nil
}

func (s *talos) EtcdForfeitLeadership(
	context.Context, *machine.EtcdForfeitLeadershipRequest,
) (*machine.EtcdForfeitLeadershipResponse, error) {
	return nil, errors.New("failed to forfeit leadership: cannot forfeit leadership, only one member")
}

func (s *talos) EtcdRemoveMemberByID(
	_ context.Context, in *machine.EtcdRemoveMemberByIDRequest,
) (*machine.EtcdRemoveMemberByIDResponse, error) {
	switch in.MemberId {
	case 7:
		return nil, errors.New("failed to remove member: failed to remove member 7: etcdserver: unhealthy cluster")
	case 8:
		return &machine.EtcdRemoveMemberByIDResponse{Messages: []*machine.EtcdRemoveMemberByID{{}}}, nil
	}
	return nil, status.Error(codes.NotFound, "etcdserver: member not found")
}

func (s *talos) Shutdown(_ context.Context, in *machine.ShutdownRequest) (*machine.ShutdownResponse, error) {
	if !in.Force {
		return nil, errors.New("it would drain the node again")
	}
	return &machine.ShutdownResponse{Messages: []*machine.Shutdown{{}}}, nil
}

func (s *talos) Kubeconfig(_ *emptypb.Empty, out machine.MachineService_KubeconfigServer) error {
	var archive bytes.Buffer
	zip := gzip.NewWriter(&archive)
	files := tar.NewWriter(zip)
	_ = files.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "kubeconfig", Size: int64(len(s.kubeconfig)), Mode: 0o600})
	_, _ = files.Write([]byte(s.kubeconfig))
	_, _ = files.Close(), zip.Close()
	return out.Send(&common.Data{Bytes: archive.Bytes()})
}

// api is a Kubernetes API that answers each "VERB path" with a fixed text, and notes the bodies that it is sent.
type api struct {
	mu      sync.Mutex
	answers map[string]string
	codes   map[string]int
	bodies  map[string]string
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := r.Method + " " + r.URL.Path
	body, _ := io.ReadAll(r.Body)
	a.bodies[key] = string(body)
	w.Header().Set("Content-Type", "application/json")
	if a.answers[key] == "" {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		return
	}
	if code := a.codes[key]; code != 0 {
		w.WriteHeader(code)
	}
	fmt.Fprint(w, a.answers[key])
}

func pemOf(der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}) }

// rig starts one control plane, and returns the package's client of it.
func rig(t *testing.T) (*Cluster, turn.Node, *api) {
	t.Helper()
	live, node, kube, _ := rigOf(t, "v1.12.7")
	return live, node, kube
}

// rigOf does the same with a version of Talos.
func rigOf(t *testing.T, version string) (*Cluster, turn.Node, *api, *talos) {
	t.Helper()
	kube := &api{answers: map[string]string{}, codes: map[string]int{}, bodies: map[string]string{}}
	https := httptest.NewTLSServer(kube)
	t.Cleanup(https.Close)
	authority := base64.StdEncoding.EncodeToString(pemOf(https.Certificate().Raw))
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: %q,
certificate-authority-data: %s}}], users: [{name: a, user: {token: t}}], contexts: [{name: a, context: {cluster: a, user: a}}]}`,
		// The name stands for the virtual IP, which nobody answers for.
		strings.Replace(https.URL, "127.0.0.1", "vip.invalid", 1), authority)

	stage := runtime.NewMachineStatus()
	stage.TypedSpec().Stage = runtime.MachineStageRunning
	stage.TypedSpec().Status.UnmetConditions = []runtime.UnmetCondition{{Name: "staticPods", Reason: "kube-scheduler not ready"}}
	resources := state.WrapCore(namespaced.NewState(inmem.Build))
	require.NoError(t, resources.Create(t.Context(), stage))
	active, err := configloader.NewFromBytes([]byte("machine: {type: controlplane}"))
	require.NoError(t, err)
	require.NoError(t, resources.Create(t.Context(), config.NewMachineConfig(active)))
	server := &talos{kubeconfig: kubeconfig, version: version, resources: resources}
	connect, client := talosapitest.Serve(t, true, func(registrar *grpc.Server) {
		machine.RegisterMachineServiceServer(registrar, server)
		v1alpha1.RegisterStateServer(registrar, cosi.NewState(resources))
	})
	node := turn.Node{Name: "cp-1", Role: cluster.ControlPlane, Address: talosapitest.Address}
	live, err := Dial(t.Context(), client, []turn.Node{node}, connect)
	require.NoError(t, err)
	t.Cleanup(live.Close)
	return live, node, kube, server
}

func TestCluster_ReadsMachineAndMembersFromTheTalosAPI(t *testing.T) {
	live, node, _ := rig(t)
	seen, err := live.Machine(t.Context(), node)
	require.NoError(t, err)
	assert.Equal(t, turn.Machine{Boot: "boot_id of this boot", Version: "v1.12.7", Stage: "running", Services: map[string]talosapi.Service{
		"etcd": {State: "Running", Known: true, Healthy: true, Since: time.Unix(7, 0).UTC()}, "ext-x": {State: "Running"},
	}, Unmet: map[string]string{"staticPods": "kube-scheduler not ready"}}, seen)
	members, err := live.Members(t.Context(), node)
	require.NoError(t, err)
	assert.Equal(t, []talosapi.Member{
		{ID: 7, Name: "cp-1", Addresses: []netip.Addr{netip.MustParseAddr("10.25.11.11")}},
		{ID: 8, Name: "cp-2", Addresses: []netip.Addr{netip.MustParseAddr("fd25::12")}, Learner: true},
	}, members)
}

func TestCluster_AsksWhatAConfigurationWouldDo(t *testing.T) {
	const etcd = "machine: {type: controlplane}\ncluster: {etcd: {extraArgs: {a: b}}}"
	for configuration, want := range map[string][2]Effect{ // on Talos 1.12 and 1.14
		"machine: {type: controlplane, sysctls: {a: b}}":                                  {KeepsRunning, KeepsRunning},
		"machine: {type: controlplane, env: {a: b}}":                                      {Reboots, NeedsReboot},
		"machine: {type: worker, env: {a: b}}":                                            {NeedsMachine, NeedsMachine},
		"machine: {type: controlplane, registries: {config: {a: {auth: {username: b}}}}}": {KeepsRunning, RestartsCRI},
		etcd:                            {NeedsReboot, NeedsReboot},
		"machine: {type: controlplane}": {Unchanged, Unchanged},
		"kind: LaterConfig\napiVersion: v1alpha1": {NeedsReboot, NeedsReboot},
		"wrong": {Refused, Refused}, "busy": {Unknown, Unknown},
	} {
		for i, version := range []string{"v1.12.7", "v1.14.6"} {
			live, node, _, talos := rigOf(t, version)
			effect, part, err := live.Effect(t.Context(), node, configuration)
			assert.Equal(t, want[i], effect, "%s: %s", version, configuration)
			assert.Equal(t, effect == Refused || effect == Unknown, err != nil, configuration)
			assert.Equal(t, effect == Refused || effect == Unknown || effect == KeepsRunning || effect == Unchanged, part == "", configuration)
			assert.Empty(t, talos.did, "it only asks")
		}
	}
	live, node, _ := rig(t)
	configured, err := live.Configured(t.Context(), node)
	require.NoError(t, err)
	assert.True(t, configured, "it asks for a client certificate")
}

// Talos takes a configuration that does not fit its disks, and cannot open them at its next boot.
func TestCluster_KnowsAnEncryptionThatTheDisksDoNotHave(t *testing.T) {
	const encrypted = "machine: {type: controlplane}\n---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: STATE\n" +
		"encryption: {provider: luks2, keys: [{slot: 0, KEY}]}"
	for _, c := range []struct {
		name   string
		made   *block.VolumeStatusSpec
		key    string // of the configuration; "" for one without encryption
		needed bool   // another machine
	}{
		{"no volume yet", nil, "nodeID: {}", false},
		{"made without", &block.VolumeStatusSpec{Phase: block.VolumePhaseReady}, "nodeID: {}", true},
		{"made without, and stays so", &block.VolumeStatusSpec{Phase: block.VolumePhaseReady}, "", false},
		{"not known yet", &block.VolumeStatusSpec{Phase: block.VolumePhaseWaiting}, "nodeID: {}", false},
		{"the same key", encryptedBy("nodeID"), "nodeID: {}", false},
		{"another key", encryptedBy("nodeID"), "tpm: {}", true},
		{"made with, and none is declared", encryptedBy("tpm"), "", true},
	} {
		live, node, _, talos := rigOf(t, "v1.12.7")
		if c.made != nil {
			status := block.NewVolumeStatus(block.NamespaceName, "STATE")
			*status.TypedSpec() = *c.made
			require.NoError(t, talos.resources.Create(t.Context(), status))
		}
		configuration := "machine: {type: controlplane, sysctls: {a: b}}"
		if c.key != "" {
			configuration = strings.Replace(encrypted, "KEY", c.key, 1)
		}
		effect, part, err := live.Effect(t.Context(), node, configuration)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.needed, effect == NeedsMachine, "%s: %s", c.name, part)
		if c.needed {
			assert.Equal(t, "talos.diskEncryption, with the volume STATE,", part, c.name)
		}
	}
}

func encryptedBy(key string) *block.VolumeStatusSpec {
	return &block.VolumeStatusSpec{
		Phase: block.VolumePhaseReady, EncryptionProvider: block.EncryptionProviderLUKS2, ConfiguredEncryptionKeys: []string{key},
	}
}

func TestCluster_StagesAConfigurationAndReboots(t *testing.T) {
	live, node, _, talos := rigOf(t, "v1.14.6")
	const former = "machine: {type: worker}"
	require.NoError(t, talos.put(config.PersistentID, former))
	undo, err := live.Stage(t.Context(), node, "machine: {}")
	require.NoError(t, err)
	require.NoError(t, live.Reboot(t.Context(), node))
	assert.Equal(t, []string{"stage machine: {}", "reboot DEFAULT"}, talos.did)
	require.NoError(t, undo(t.Context()))
	require.Len(t, talos.did, 3)
	assert.Equal(t, "stage "+former, talos.did[2])
}

func TestCredentials_AreThoseOfTheCurrentContext(t *testing.T) {
	config := Credentials{CA: "a", Certificate: "b", Key: "c"}.Config()
	assert.Equal(t, &clientconfig.Context{CA: "a", Crt: "b", Key: "c"}, config.Contexts[config.Context])
}

func TestCluster_ReadsNodesAtTheControlPlanesOwnAddress(t *testing.T) {
	live, _, kube := rig(t)
	kube.answers["GET /api/v1/nodes"] = `{"kind":"NodeList","apiVersion":"v1","items":[
{"kind":"Node","apiVersion":"v1","metadata":{"name":"cp-1","annotations":{"slipway.dev/cordoned":"true"}},
 "spec":{"unschedulable":true,"taints":[{"key":"node-role.kubernetes.io/control-plane","effect":"NoSchedule"}]},
 "status":{"nodeInfo":{"kubeletVersion":"v1.35.8","osImage":"Talos (v1.12.7)","bootID":"b"},
  "addresses":[{"type":"InternalIP","address":"10.25.11.11"}],
  "conditions":[{"type":"Ready","status":"True"}]}},
{"kind":"Node","apiVersion":"v1","metadata":{"name":"worker-1"},
 "spec":{"taints":[{"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"},{"key":"a","effect":"PreferNoSchedule"}]},
 "status":{"conditions":[{"type":"Ready","status":"Unknown"}]}},
{"kind":"Node","apiVersion":"v1","metadata":{"name":"worker-2"},
 "spec":{"taints":[{"key":"node.cilium.io/agent-not-ready","effect":"NoSchedule"}]},
 "status":{"conditions":[{"type":"Ready","status":"True"}]}}]}`
	nodes, err := live.Nodes(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]turn.KubeNode{
		"cp-1": {
			Ready: true, Unschedulable: true, Ours: true, Repels: true, Kubelet: "v1.35.8", System: "Talos (v1.12.7)",
			Address: netip.MustParseAddr("10.25.11.11"), Boot: "b",
		},
		"worker-1": {}, "worker-2": {Ready: true, NoAgent: true},
	}, nodes)
}

func TestCluster_TakesNoSnapshotOfALearnerOrOfAMemberWithoutALeader(t *testing.T) {
	live, node, _, talos := rigOf(t, "v1.12.7")
	for why, member := range map[string]*machine.EtcdMemberStatus{
		"": {Leader: 7}, "its etcd is a learner": {Leader: 7, IsLearner: true}, "its etcd knows no leader": {},
	} {
		talos.member = member
		data, err := live.EtcdSnapshot(t.Context(), node)
		if why != "" {
			require.ErrorContains(t, err, why)
			continue
		}
		require.NoError(t, err)
		read, err := io.ReadAll(data)
		require.NoError(t, err)
		assert.Equal(t, "data", string(read))
	}
}

func TestCluster_KnowsTheNodesThatAReleaseBeforeHasCordoned(t *testing.T) {
	for _, key := range []string{cluster.AnnotationCordoned, cluster.OldAnnotationCordoned} {
		live, _, kube := rig(t)
		kube.answers["GET /api/v1/nodes"] = `{"kind":"NodeList","apiVersion":"v1","items":[
{"kind":"Node","apiVersion":"v1","metadata":{"name":"cp-1","annotations":{"` + key + `":"true"}},"spec":{"unschedulable":true}}]}`
		nodes, err := live.Nodes(t.Context())
		require.NoError(t, err)
		assert.True(t, nodes["cp-1"].Ours, key)
	}
}

func TestCluster_CordonsWithItsAnnotation(t *testing.T) {
	const none = `{"slipway-platform.github.io/cordoned":null,"slipway.dev/cordoned":null}`
	live, _, kube := rig(t)
	kube.answers["PATCH /api/v1/nodes/cp-1"] = `{"kind":"Node","apiVersion":"v1","metadata":{"name":"cp-1"}}`
	require.NoError(t, live.Cordon(t.Context(), "cp-1"))
	assert.JSONEq(t, `{"metadata":{"annotations":{"slipway-platform.github.io/cordoned":"true"}},"spec":{"unschedulable":true}}`,
		kube.bodies["PATCH /api/v1/nodes/cp-1"])
	require.NoError(t, live.Uncordon(t.Context(), "cp-1"))
	assert.JSONEq(t, `{"metadata":{"annotations":`+none+`},"spec":{"unschedulable":null}}`,
		kube.bodies["PATCH /api/v1/nodes/cp-1"])
	require.NoError(t, live.Forget(t.Context(), "cp-1"))
	assert.JSONEq(t, `{"metadata":{"annotations":`+none+`}}`, kube.bodies["PATCH /api/v1/nodes/cp-1"])
}

func TestCluster_KnowsWhichPodsADrainLeaves(t *testing.T) {
	live, _, kube := rig(t)
	pod := func(name, metadata, phase string) string {
		return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"a","uid":%[1]q%s},"status":{"phase":%q}}`,
			name, metadata, phase)
	}
	kube.answers["GET /api/v1/pods"] = `{"kind":"PodList","apiVersion":"v1","items":[` + strings.Join([]string{
		pod("web", "", "Running"), pod("ended", "", "Succeeded"), pod("static", `,"annotations":{"kubernetes.io/config.mirror":"x"}`, "Running"),
		pod("agent", `,"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"d","uid":"d","controller":true}]`, "Running"),
		pod("leaving", `,"deletionTimestamp":"2026-01-01T00:00:00Z"`, "Running"),
	}, ",") + `]}`
	pods, err := live.Pods(t.Context(), "cp-1")
	require.NoError(t, err)
	var stays, leaves []string
	for _, pod := range pods {
		if pod.Stays {
			stays = append(stays, pod.Name)
		} else {
			leaves = append(leaves, fmt.Sprint(pod, pod.Deleting))
		}
	}
	assert.Equal(t, []string{"ended", "static", "agent"}, stays)
	assert.Equal(t, []string{"a/web false", "a/leaving true"}, leaves)
}

func TestCluster_EvictsOnePodAndNamesTheBudgetThatRefuses(t *testing.T) {
	live, _, kube := rig(t)
	pod, path := turn.Pod{Namespace: "a", Name: "web", UID: "u-1"}, "POST /api/v1/namespaces/a/pods/web/eviction"
	require.ErrorIs(t, live.Evict(t.Context(), pod), turn.ErrGone)

	kube.answers[path] = `{"kind":"Status","apiVersion":"v1","status":"Success"}`
	require.NoError(t, live.Evict(t.Context(), pod))
	assert.Contains(t, kube.bodies[path], `"uid":"u-1"`, "not a newer pod of that name")

	kube.codes[path] = http.StatusTooManyRequests
	kube.answers[path] = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,
"message":"Cannot evict pod as it would violate the pod's disruption budget.","details":{"causes":[
{"reason":"DisruptionBudget","message":"The disruption budget web needs 3 healthy pods and has 3 currently"}]}}`
	err := live.Evict(t.Context(), pod)
	require.ErrorAs(t, err, new(turn.BlockedError))
	require.ErrorContains(t, err, "The disruption budget web needs 3 healthy pods and has 3 currently")
}

func TestCluster_AsksAControlPlaneForVersionAndStaticPods(t *testing.T) {
	live, node, kube := rig(t)
	kube.answers["GET /readyz"] = "ok"
	kube.answers["GET /version"] = `{"gitVersion":"v1.35.8"}`
	version, err := live.Version(t.Context(), node)
	require.NoError(t, err)
	assert.Equal(t, "v1.35.8", version)
	kube.codes["GET /readyz"] = http.StatusInternalServerError
	_, err = live.Version(t.Context(), node)
	require.ErrorContains(t, err, "/readyz answers 500")

	image, _, err := live.Image(t.Context(), node, "kube-scheduler")
	require.NoError(t, err)
	assert.Empty(t, image)
	kube.answers["GET /api/v1/namespaces/kube-system/pods/kube-scheduler-cp-1"] = `{"kind":"Pod","apiVersion":"v1","spec":{"containers":[
{"name":"kube-scheduler","image":"registry.k8s.io/kube-scheduler:v1.35.8"}]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`
	image, ready, err := live.Image(t.Context(), node, "kube-scheduler")
	require.NoError(t, err)
	assert.Equal(t, "registry.k8s.io/kube-scheduler:v1.35.8", image)
	assert.True(t, ready)
}

func TestPodHash_ComesWithTheTimeAtWhichTheKubeletSawThePodFirst(t *testing.T) {
	live, node, kube := rig(t)
	hash, seen, err := live.PodHash(t.Context(), node, "kube-scheduler")
	require.NoError(t, err)
	assert.Empty(t, hash, "there is no such pod")
	assert.Zero(t, seen)
	kube.answers["GET /api/v1/namespaces/kube-system/pods/kube-scheduler-cp-1"] = `{"kind":"Pod","apiVersion":"v1","metadata":{
"annotations":{"kubernetes.io/config.hash":"ab12","kubernetes.io/config.seen":"2026-11-30T09:00:00.25Z"}}}`
	hash, seen, err = live.PodHash(t.Context(), node, "kube-scheduler")
	require.NoError(t, err)
	assert.Equal(t, "ab12", hash)
	assert.Equal(t, time.Date(2026, 11, 30, 9, 0, 0, 250_000_000, time.UTC), seen)
}

func TestCluster_RemovesMemberMachineAndNodeObject(t *testing.T) {
	live, node, kube := rig(t)
	require.NoError(t, live.RemoveMember(t.Context(), node, 8))
	require.ErrorIs(t, live.RemoveMember(t.Context(), node, 9), turn.ErrGone)
	require.EqualError(t, live.RemoveMember(t.Context(), node, 7),
		"failed to remove member: failed to remove member 7: etcdserver: unhealthy cluster")
	require.ErrorContains(t, live.ForfeitLeadership(t.Context(), node), "only one member")
	require.NoError(t, live.Shutdown(t.Context(), node))

	require.ErrorIs(t, live.DeleteNode(t.Context(), "worker-1"), turn.ErrGone)
	kube.answers["DELETE /api/v1/nodes/worker-1"] = `{"kind":"Status","apiVersion":"v1","status":"Success"}`
	require.NoError(t, live.DeleteNode(t.Context(), "worker-1"))
}
