package upgrade

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/semver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/nodes/versions"
	"github.com/slipway-platform/slipway/tests/fakes/talosapitest"
)

// Times of the fake.
const (
	bootTime    = 40 * time.Second
	restartTime = 10 * time.Second // of a component with another image
	remakeTime  = 20 * time.Second // of all static pods, by a kubelet of another minor release
)

// fakeNode is one machine. Its components run the images that its configuration has had for restartTime.
type fakeNode struct {
	turn.Node
	answer
	boot    int
	booted  time.Time
	down    error
	kube    turn.KubeNode
	exists  bool
	runs    map[versions.Component]string
	started time.Time // its kubelet, after the change of its image
	seen    time.Time // its static pods, by the kubelet that has made them
	remade  int       // times at which its kubelet has made its static pods anew
	pulled  map[string]bool
	version string // that the next boot runs
	image   string // of the installer that has installed what the next boot runs
	etcd    string // state of its etcd; "" for Running
	heals   string // version without which its kubelet is not healthy; "" for none
}

// fake is a cluster in memory, whose etcd follows its control planes. It has no pods.
type fake struct {
	mu    sync.Mutex
	nodes []*fakeNode
	log   []string

	onUpgrade   func(*fakeNode) error // before the installation; nil: succeeds
	onInstalled func(*fakeNode) error // between the installation and the reboot; nil: succeeds
	onReboot    func(*fakeNode) error // nil: succeeds
	metrics     string
	etcd        []byte   // snapshot
	cilium      []string // versions
	objects     map[string][]unstructured.Unstructured
	skew        []string // violations of Kubernetes' version skew that were seen
	lost        int      // times at which two control planes were away
	holder      int      // of the virtual IP
	stays       error    // why the virtual IP cannot move

	onImage func(*fakeNode, versions.Component) // when a component runs another image; nil: nothing
	unmet   string                              // check of the stack file that fails

	broken map[versions.Component]string // node on which the new version of a component does not start
	silent int                           // restarts of the API server behind the virtual IP

	alike       bool // kubelets of all releases make the same pods
	unread      int  // how often the API does not say from what a static pod was made
	serversAway int  // most API servers that were away at once while kubelets made their pods anew
}

var virtualIP = netip.MustParseAddr("10.25.11.10")

var repositories = map[versions.Component]string{
	versions.Kubelet: "ghcr.io/siderolabs/kubelet", versions.APIServer: "registry.k8s.io/kube-apiserver",
	versions.ControllerManager: "registry.k8s.io/kube-controller-manager", versions.Scheduler: "registry.k8s.io/kube-scheduler",
}

// newFake returns three control planes and two workers that run Talos v1.12.6 and Kubernetes v1.34.2, and a spec for v1.12.7 and v1.35.8.
func newFake() (*fake, *Spec) {
	f := &fake{}
	spec := &Spec{Declared: turn.Declared{Target: turn.Target{Cluster: "infra", Talosconfig: "x"}}, Installers: map[string]string{},
		Releases: versions.Releases{Talos: "v1.12.7", Schematic: "aa", Kubernetes: "v1.35.8"}}
	cluster.SetDefaults(&spec.TurnLimits)
	for i := range 5 {
		node := &fakeNode{Node: turn.Node{Name: fmt.Sprintf("worker-%d", i-2), Role: cluster.Worker}, exists: true, seen: time.Now(),
			runs: map[versions.Component]string{}, pulled: map[string]bool{}}
		if i < 3 {
			node.Node = turn.Node{Name: fmt.Sprintf("cp-%d", i+1), Role: cluster.ControlPlane}
		}
		spec.Installers[node.Name] = "factory/installer/aa:v1.12.7"
		node.Address = talosapitest.AddressOf(node.Name)
		node.answer = answer{configured: true, stage: "running", running: versions.Running{
			Node: node.Node, Talos: "v1.12.6", Schematic: "aa", Images: map[versions.Component]string{}}}
		for component, image := range repositories {
			if node.Role == cluster.ControlPlane || component == versions.Kubelet {
				node.running.Images[component] = image + ":v1.34.2"
				node.runs[component] = image + ":v1.34.2"
			}
		}
		node.kube = turn.KubeNode{Ready: true, Kubelet: "v1.34.2", Repels: node.Role == cluster.ControlPlane}
		f.nodes = append(f.nodes, node)
		spec.Nodes = append(spec.Nodes, node.Node)
	}
	return f, spec
}

func (f *fake) node(name string) *fakeNode {
	return f.nodes[slices.IndexFunc(f.nodes, func(n *fakeNode) bool { return n.Name == name })]
}

func (f *fake) did(format string, args ...any) { f.log = append(f.log, fmt.Sprintf(format, args...)) }

// run runs a spec and returns its report and what it said.
func (f *fake) run(t *testing.T, spec *Spec) (Report, error) {
	t.Helper()
	return run(t.Context(), spec, f, logger{t})
}

type logger struct{ t *testing.T }

func (l logger) Write(text []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(text)))
	return len(text), nil
}

var _ io.Writer = logger{}

// current makes all nodes run what the spec declares.
func (f *fake) current(spec *Spec) {
	for _, node := range f.nodes {
		node.running.Talos, node.kube.Kubelet = spec.Talos, spec.Kubernetes
		for component := range node.runs {
			image := repositories[component] + ":" + spec.Kubernetes
			node.runs[component], node.running.Images[component] = image, image
		}
	}
}

func (f *fake) Look(_ context.Context, of turn.Node) (answer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	node := f.node(of.Name)
	if node.down != nil {
		return answer{}, node.down
	}
	seen := node.answer
	seen.running.Images, seen.running.Next = maps.Clone(seen.running.Images), f.next(node)
	return seen, nil
}

func (f *fake) Machine(_ context.Context, of turn.Node) (turn.Machine, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	node := f.node(of.Name)
	healthy := strings.HasSuffix(node.runs[versions.Kubelet], node.heals)
	services, unmet := map[string]talosapi.Service{"kubelet": {State: "Running", Known: true, Healthy: healthy, Started: node.started}},
		map[string]string{}
	if node.Role == cluster.ControlPlane {
		services["etcd"] = talosapi.Service{State: cmp.Or(node.etcd, talosapi.Running), Known: true, Healthy: true}
	}
	for component, image := range node.runs {
		if image == "" && component != versions.Kubelet {
			unmet["staticPods"] = "kube-system/" + string(component) + "-" + node.Name + " not ready"
		}
	}
	if !node.configured && node.down == nil {
		return turn.Machine{}, errors.New("tls: certificate required")
	}
	return turn.Machine{
		Boot: fmt.Sprint(node.boot), Version: node.running.Talos, Stage: node.stage, Services: services, Unmet: unmet,
	}, node.down
}

func (f *fake) Members(_ context.Context, asked turn.Node) ([]talosapi.Member, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var members []talosapi.Member
	for i, node := range f.nodes {
		if node.Role == cluster.ControlPlane && node.configured {
			members = append(members, talosapi.Member{ID: uint64(i), Name: node.Name})
		}
	}
	return members, f.node(asked.Name).down
}

func (f *fake) Nodes(context.Context) (map[string]turn.KubeNode, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]turn.KubeNode{}
	if !slices.ContainsFunc(f.nodes, func(node *fakeNode) bool { return node.runs[versions.APIServer] != "" }) {
		return nil, errors.New("no API server runs")
	}
	for _, node := range f.nodes {
		if node.exists {
			all[node.Name] = node.kube
		}
	}
	return all, nil
}

func (f *fake) Cordon(_ context.Context, node string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.node(node).kube.Unschedulable, f.node(node).kube.Ours = true, true
	f.did("cordon %s", node)
	return nil
}

func (f *fake) Uncordon(_ context.Context, node string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.node(node).kube.Unschedulable, f.node(node).kube.Ours = false, false
	f.did("uncordon %s", node)
	return nil
}

func (f *fake) Forget(_ context.Context, node string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.node(node).kube.Ours = false
	f.did("forget %s", node)
	return nil
}

func (f *fake) Pods(context.Context, string) ([]turn.Pod, error) { return nil, nil }
func (f *fake) Ceph(context.Context) (turn.Ceph, error)          { return turn.Ceph{}, nil }
func (f *fake) Unmet(context.Context, []cluster.Check) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unmet, nil
}

func (f *fake) LastLines(_ context.Context, of turn.Node) []string {
	for component, name := range f.broken {
		if name == of.Name {
			return []string{"log of " + string(component) + ":", "| unknown flag"}
		}
	}
	return nil
}

func (f *fake) Evict(context.Context, turn.Pod) error { return errors.New("there are no pods") }

func (f *fake) Next(_ context.Context, of turn.Node) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next(f.node(of.Name)), f.node(of.Name).down
}

// next returns the version that is installed and has not booted. The caller holds the mutex.
func (f *fake) next(node *fakeNode) string {
	if node.image == "" {
		return ""
	}
	return node.version
}

func (f *fake) Upgrade(_ context.Context, of turn.Node, image string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	node := f.node(of.Name)
	f.did("upgrade %s to %s", of.Name, image)
	node.version = image[strings.LastIndex(image, ":")+1:]
	for _, fails := range []func(*fakeNode) error{f.onUpgrade, func(*fakeNode) error { node.image = image; return nil }, f.onInstalled} {
		if fails != nil {
			if err := fails(node); err != nil {
				return err
			}
		}
	}
	f.reboot(node)
	return nil
}

func (f *fake) Reboot(_ context.Context, of turn.Node) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.onReboot != nil {
		return f.onReboot(f.node(of.Name))
	}
	f.did("reboot %s", of.Name)
	f.reboot(f.node(of.Name))
	return nil
}

// reboot reboots a machine into what is installed. The caller holds the mutex.
func (f *fake) reboot(node *fakeNode) {
	f.away(node)
	time.AfterFunc(bootTime, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		node.boot++
		node.booted, node.down = time.Now(), nil
		if node.image == "" {
			return
		}
		node.running.Talos = node.version
		parts := strings.Split(node.image, "/")
		node.running.Schematic, _, _ = strings.Cut(parts[len(parts)-1], ":")
		node.image = ""
	})
}

// away makes a machine not answer.
func (f *fake) away(node *fakeNode) {
	for _, other := range f.nodes {
		if other.down != nil && other.Role == cluster.ControlPlane && node.Role == cluster.ControlPlane {
			f.lost++
		}
	}
	node.down = errors.New("no route")
}

func (f *fake) Pull(_ context.Context, of turn.Node, _ versions.Component, image string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.node(of.Name).pulled[image] = true
	return nil
}

// StepAside gives the virtual IP to the control plane after the one that has it.
func (f *fake) StepAside(_ context.Context, of turn.Node) (netip.Addr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nodes[f.holder].Name != of.Name {
		return netip.Addr{}, f.stays
	}
	if f.stays == nil {
		f.did("virtual IP leaves %s", of.Name)
		f.holder = (f.holder + 1) % 3
	}
	return virtualIP, f.stays
}

func (f *fake) Holds(_ context.Context, of turn.Node, address netip.Addr) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return address == virtualIP && f.nodes[f.holder].Name == of.Name, f.node(of.Name).down
}

func (f *fake) SetImage(_ context.Context, of turn.Node, component versions.Component, image string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	node := f.node(of.Name)
	if !node.pulled[image] {
		return fmt.Errorf("%s was not pulled before", image)
	}
	node.running.Images[component] = image
	f.did("%s on %s", component, of.Name)
	if component == versions.APIServer && f.nodes[f.holder] == node {
		f.silent++
	}
	node.runs[component] = "" // it restarts
	time.AfterFunc(restartTime, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.broken[component] == of.Name {
			node.kube.Ready = component != versions.Kubelet
			return
		}
		node.runs[component] = image
		if f.onImage != nil {
			f.onImage(node, component)
		}
		if component == versions.Kubelet {
			former := node.kube.Kubelet
			node.started = time.Now()
			node.kube.Kubelet, _ = versions.ImageVersion(image)
			if semver.MajorMinor(former) != semver.MajorMinor(node.kube.Kubelet) && node.Role == cluster.ControlPlane && !f.alike {
				time.AfterFunc(restartTime, func() { f.remake(node) })
			}
		}
		f.checkSkew()
	})
	return nil
}

// checkSkew notes components that are newer than an API server: each talks to any of them.
func (f *fake) checkSkew() {
	for _, server := range f.nodes {
		api, err := versions.ImageVersion(server.runs[versions.APIServer])
		if err != nil {
			continue
		}
		for _, node := range f.nodes {
			for component, image := range node.runs {
				if version, err := versions.ImageVersion(image); component != versions.APIServer && err == nil && version > api {
					f.skew = append(f.skew, fmt.Sprintf("%s of %s runs %s, the API server of %s %s", component, node.Name, version, server.Name, api))
				}
			}
		}
	}
}

func (f *fake) Version(_ context.Context, of turn.Node) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	node := f.node(of.Name)
	if node.down != nil {
		return "", node.down
	}
	return versions.ImageVersion(node.runs[versions.APIServer])
}

func (f *fake) Image(_ context.Context, of turn.Node, component string) (string, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	node := f.node(of.Name)
	runs := node.runs[versions.Component(component)]
	return runs, runs != "" && node.kube.Ready, nil // without its kubelet, nobody says that a pod is ready
}

func (f *fake) CiliumVersions(context.Context) ([]string, error) { return f.cilium, nil }
func (f *fake) Objects(_ context.Context, of schema.GroupVersionResource) ([]unstructured.Unstructured, error) {
	return f.objects[of.Resource], nil
}

func (f *fake) Metrics(_ context.Context, of turn.Node) (string, error) {
	if f.node(of.Name).runs[versions.APIServer] == "" {
		return "", errors.New("connection refused")
	}
	return f.metrics, nil
}

func (f *fake) Booted(_ context.Context, of turn.Node) (time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.node(of.Name).booted, f.node(of.Name).down
}

func (f *fake) EtcdSnapshot(_ context.Context, of turn.Node) (io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did("snapshot of %s", of.Name)
	return io.NopCloser(bytes.NewReader(f.etcd)), nil
}

// left returns the nodes that are cordoned.
func (f *fake) left(t *testing.T) []string {
	t.Helper()
	nodes, err := f.Nodes(t.Context())
	require.NoError(t, err)
	var names []string
	for name, node := range nodes {
		if node.Unschedulable {
			names = append(names, name)
		}
	}
	return names
}
