package observe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
	"github.com/slipway-platform/slipway/internal/health/mesh"
	"github.com/slipway-platform/slipway/internal/redact"
)

var servicesKind = schema.GroupVersionResource{Version: "v1", Resource: "services"}

// addressEvery is how often an address that does not answer is tried again: the server behind it takes seconds at least to come up.
const addressEvery = time.Second

// Mesh reads what the checks of package mesh judge. It changes nothing: it lists and watches objects, connects to the mesh addresses up to
// the TLS handshake, and runs commands in the agents and in kvstoremesh that print their status.
type Mesh struct {
	*store[mesh.Cluster]
	Answerer

	spec      *mesh.Spec
	inquiries []*inquiry
}

// NewMesh returns a Mesh that has read nothing yet.
func NewMesh(spec *mesh.Spec, client *Kube) *Mesh {
	m := &Mesh{store: newStore[mesh.Cluster](), Answerer: Answerer{kube: client}, spec: spec}
	m.inquiries = []*inquiry{m.addresses(), m.copies(), m.agents()}
	return m
}

// Evaluate judges what was read.
func (m *Mesh) Evaluate() []health.Result {
	return m.evaluate(func(seen *mesh.Cluster) []health.Result { return mesh.Evaluate(m.spec, seen) })
}

// Watch reads until ctx ends, and returns when everything it started has ended.
func (m *Mesh) Watch(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	named := func(of schema.GroupVersionResource) kind {
		return kind{GroupVersionResource: of, Namespace: m.spec.Namespace, Name: mesh.ServerName}
	}
	labelled := func(labels string) kind {
		return kind{GroupVersionResource: podsKind, Namespace: m.spec.Namespace, Labels: labels}
	}
	running.Go(func() {
		watchAll(ctx, m.kube, named(servicesKind), plain(meshService),
			into(m.store, func(seen *mesh.Cluster) *health.Seen[mesh.Service] { return &seen.Services }))
	})
	running.Go(func() {
		watchAll(ctx, m.kube, named(deploymentsKind), plain(workload),
			into(m.store, func(seen *mesh.Cluster) *health.Seen[kube.Workload] { return &seen.Servers }))
	})
	running.Go(func() {
		watchAll(ctx, m.kube, labelled(mesh.ServerSelector), kubePod,
			into(m.store, func(seen *mesh.Cluster) *health.Seen[kube.Pod] { return &seen.Pods }))
	})
	running.Go(func() {
		watchAll(ctx, m.kube, labelled(mesh.AgentSelector), kubePod,
			into(m.store, func(seen *mesh.Cluster) *health.Seen[kube.Pod] { return &seen.Agents }))
	})
	running.Go(func() { m.kube.watchReadiness(ctx, nil) }) // a watch alone does not notice that the server went away
	for _, one := range m.inquiries {
		running.Go(func() { one.watch(ctx) })
	}
}

// Confirm asks again for what cannot be watched, unless the answer is fresh, and returns when the answers are stored.
func (m *Mesh) Confirm(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, one := range m.inquiries {
		running.Go(func() { one.confirm(ctx) })
	}
}

// addresses tries the mesh addresses of all clusters, the own one included.
func (m *Mesh) addresses() *inquiry {
	at, names := map[string]string{m.spec.Name: m.spec.Address}, []string{m.spec.Name}
	for _, peer := range m.spec.Peers {
		at[peer.Name], names = peer.Address, append(names, peer.Name)
	}
	dialer := newMeshDialer(m.spec)
	return &inquiry{
		again:   addressEvery,
		targets: func() []string { return names },
		good: func(name string) (good bool) {
			m.read(func(seen *mesh.Cluster) { good = seen.Answers[name].Err == "" && seen.Answers[name].TLS == "" })
			return good
		},
		ask: func(ctx context.Context, name string) {
			first := false
			m.read(func(seen *mesh.Cluster) { first = !seen.Answers[name].Asked })
			answer := asked(ctx, first, func() mesh.Answer { return dialer.try(ctx, name, at[name]) }, func(a mesh.Answer) bool { return a.Err != "" })
			m.keep(ctx, func(seen *mesh.Cluster) { put(&seen.Answers, name, answer) })
		},
	}
}

// copies asks kvstoremesh in every Ready pod of the mesh API server.
func (m *Mesh) copies() *inquiry {
	return m.pods(
		func(seen *mesh.Cluster) []kube.Pod {
			return slices.DeleteFunc(slices.Clone(seen.Pods.Items), func(pod kube.Pod) bool {
				return !slices.ContainsFunc(pod.Containers, func(c kube.Container) bool { return c.Name == mesh.CopyContainer })
			})
		},
		(*mesh.Cluster).CopyHolds, m.askCopy, func(seen *mesh.Cluster) *map[string]mesh.Report { return &seen.Copies })
}

// agents asks every Ready agent.
func (m *Mesh) agents() *inquiry {
	return m.pods(func(seen *mesh.Cluster) []kube.Pod { return seen.Agents.Items }, (*mesh.Cluster).AgentHolds, m.askAgent,
		func(seen *mesh.Cluster) *map[string]mesh.Report { return &seen.Reports })
}

// pods asks every Ready one of some pods for its report.
func (m *Mesh) pods(
	all func(*mesh.Cluster) []kube.Pod, holds func(*mesh.Cluster, *mesh.Spec, string) bool,
	ask func(ctx context.Context, pod string) mesh.Report, place func(*mesh.Cluster) *map[string]mesh.Report,
) *inquiry {
	return &inquiry{
		again: pollEvery,
		targets: func() (names []string) {
			m.read(func(seen *mesh.Cluster) {
				for _, pod := range all(seen) {
					if pod.Ready && !pod.Deleting {
						names = append(names, pod.Name)
					}
				}
			})
			return names
		},
		good: func(pod string) (good bool) {
			m.read(func(seen *mesh.Cluster) { good = holds(seen, m.spec, pod) })
			return good
		},
		ask: func(ctx context.Context, pod string) {
			first := false
			m.read(func(seen *mesh.Cluster) { first = !(*place(seen))[pod].Asked })
			report := asked(ctx, first, func() mesh.Report { return ask(ctx, pod) }, func(r mesh.Report) bool { return r.Err != "" })
			m.keep(ctx, func(seen *mesh.Cluster) { put(place(seen), pod, report) })
		},
	}
}

// keep stores an answer, unless ctx has ended: then it may be incomplete.
func (m *Mesh) keep(ctx context.Context, store func(*mesh.Cluster)) {
	if ctx.Err() == nil {
		m.update(store)
	}
}

// remoteCluster is the part of Cilium's RemoteCluster that the checks read. Cilium leaves out what is false or 0.
type remoteCluster struct {
	Name      string `json:"name"`
	Connected bool   `json:"connected"`
	Ready     bool   `json:"ready"`
	Status    string `json:"status"`
	Nodes     int    `json:"num-nodes"`
	Failures  int    `json:"num-failures"`
	Config    struct {
		ClusterID int  `json:"cluster-id"`
		Retrieved bool `json:"retrieved"`
	} `json:"config"`
}

// controllerStatus is the part of Cilium's ControllerStatus that the checks read. A RemoteCluster does not tell why its connection fails.
// The controller that makes it does.
type controllerStatus struct {
	Name   string `json:"name"`
	Status struct {
		Failures int    `json:"consecutive-failure-count"`
		Message  string `json:"last-failure-msg"`
	} `json:"status"`
}

// askCopy asks for kvstoremesh's report. The connections that it has are tried anew, too, if this machine cannot try the addresses.
func (m *Mesh) askCopy(ctx context.Context, pod string) mesh.Report {
	anew := false
	m.read(func(seen *mesh.Cluster) { anew = seen.TriesAnew(m.spec) })
	report := meshReport(m.copyStatus(ctx, pod, anew))
	report.Tried = anew
	return report
}

// copyStatus asks for kvstoremesh's status, and for what Cilium finds wrong in the connections that it lacks, or in all of them. The status
// does not say why one is missing.
func (m *Mesh) copyStatus(ctx context.Context, pod string, all bool) (clusters []remoteCluster, wrong []controllerStatus, err error) {
	out, err := m.kube.exec(ctx, m.spec.Namespace, pod, mesh.CopyContainer, "clustermesh-apiserver", "kvstoremesh-dbg", "status", "-o", "json")
	if err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(out, &clusters); err != nil {
		return nil, nil, fmt.Errorf("kvstoremesh's status is not the expected JSON: %w", err)
	}
	for _, cluster := range clusters {
		if cluster.Connected && !all {
			continue
		}
		findings, err := m.kube.troubleshoot(ctx, m.spec.Namespace, pod, mesh.CopyContainer, cluster.Name)
		if err != nil {
			return nil, nil, err
		}
		for _, finding := range findings {
			wrong = append(wrong, connects(cluster.Name, finding))
		}
	}
	return clusters, wrong, nil
}

// connects is the state of the controller that connects to a peer, after a failure.
func connects(peer, failure string) controllerStatus {
	status := controllerStatus{Name: controllerOf(peer)}
	status.Status.Failures, status.Status.Message = 1, failure
	return status
}

// controllerOf is the name of the controller that connects to a peer.
func controllerOf(peer string) string { return "remote-etcd-" + peer }

func (m *Mesh) askAgent(ctx context.Context, pod string) mesh.Report {
	return meshReport(m.agentStatus(ctx, pod))
}

func (m *Mesh) agentStatus(ctx context.Context, pod string) ([]remoteCluster, []controllerStatus, error) {
	out, err := m.kube.exec(ctx, m.spec.Namespace, pod, mesh.AgentContainer, "cilium-dbg", "status", "-o", "json")
	if err != nil {
		return nil, nil, err
	}
	var status struct {
		Cilium *component `json:"cilium"`
		Mesh   struct {
			Clusters []remoteCluster `json:"clusters"`
		} `json:"cluster-mesh"`
		Controllers []controllerStatus `json:"controllers"`
	}
	if err := json.Unmarshal(out, &status); err != nil {
		return nil, nil, fmt.Errorf("the agent's status is not the expected JSON: %w", err)
	}
	if status.Cilium == nil {
		return nil, nil, errors.New("the agent's status lacks the state of Cilium")
	}
	return status.Mesh.Clusters, status.Controllers, nil
}

// meshReport converts the answer of kvstoremesh or of an agent for the checks.
func meshReport(clusters []remoteCluster, controllers []controllerStatus, err error) mesh.Report {
	report := mesh.Report{Asked: true, Peers: map[string]mesh.Remote{}}
	if err != nil {
		report.Err = redact.Line(firstLine(err.Error()))
		return report
	}
	for _, cluster := range clusters {
		remote := mesh.Remote{
			Connected: cluster.Connected, Ready: cluster.Ready, Retrieved: cluster.Config.Retrieved, ID: cluster.Config.ClusterID,
			Nodes: cluster.Nodes, Status: redact.Line(firstLine(cluster.Status)), Failures: cluster.Failures,
		}
		for _, one := range controllers {
			connects := one.Name == controllerOf(cluster.Name) || one.Name == controllerOf(cluster.Name)+"-cluster-config"
			if connects && one.Status.Failures > 0 && one.Status.Message != "" {
				remote.Errors = append(remote.Errors, redact.Line(firstLine(one.Status.Message)))
			}
		}
		report.Peers[cluster.Name] = remote
	}
	return report
}

// meshService reads the Service of the mesh API server.
func meshService(object *unstructured.Unstructured) (mesh.Service, error) {
	service, err := typed[corev1.Service](object)
	if err != nil {
		return mesh.Service{}, err
	}
	seen := mesh.Service{Namespace: service.Namespace, Name: service.Name, Type: string(cmp.Or(service.Spec.Type, corev1.ServiceTypeClusterIP))}
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		if ingress.IP != "" {
			seen.Addresses = append(seen.Addresses, ingress.IP)
		}
	}
	for _, condition := range service.Status.Conditions {
		if condition.Type == "cilium.io/IPAMRequestSatisfied" && condition.Status == metav1.ConditionFalse {
			seen.Refusal = redact.Line(firstLine(cmp.Or(condition.Message, condition.Reason)))
		}
	}
	return seen, nil
}
