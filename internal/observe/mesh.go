package observe

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"github.com/siderolabs/gen/xslices"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/secrecy"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
	"github.com/slipway-platform/slipway/internal/health/mesh"
)

// addressEvery is how often an address that does not answer is tried again: the server behind it takes seconds at least to come up.
const addressEvery = time.Second

// Mesh reads what the checks of package mesh judge. It changes nothing: it lists and watches objects, connects to the mesh addresses up to
// the TLS handshake, and runs commands in the agents and in kvstoremesh that print their status.
type Mesh struct {
	*observer[mesh.Spec, mesh.Cluster]
	askers
}

// NewMesh returns a Mesh that has read nothing yet.
func NewMesh(spec *mesh.Spec, client *Kube) *Mesh {
	m := &Mesh{observer: newObserver(spec, client, mesh.Evaluate)}
	copies := m.pods((*mesh.Cluster).AnsweringCopies, (*mesh.Cluster).CopyHolds, m.askCopy,
		func(seen *mesh.Cluster) *map[string]mesh.Report { return &seen.Copies })
	agents := m.pods((*mesh.Cluster).AnsweringAgents, (*mesh.Cluster).AgentHolds, m.askAgent,
		func(seen *mesh.Cluster) *map[string]mesh.Report { return &seen.Reports })
	m.askers = askers{m.addresses(), copies, agents}
	return m
}

// Watch reads until ctx ends, and returns when everything it started has ended.
func (m *Mesh) Watch(ctx context.Context) {
	w := m.watches(ctx)
	defer w.Wait()
	named := func(of schema.GroupVersionResource) kind {
		return kind{GroupVersionResource: of, Namespace: m.spec.Namespace, Name: mesh.ServerName}
	}
	labelled := func(labels string) kind {
		return kind{GroupVersionResource: kubeapi.Pods, Namespace: m.spec.Namespace, Labels: labels}
	}
	keep(w, named(kubeapi.Services), plain(meshService), func(seen *mesh.Cluster) *health.Seen[mesh.Service] { return &seen.Services })
	keep(w, named(kubeapi.Deployments), plain(workload), func(seen *mesh.Cluster) *health.Seen[kube.Workload] { return &seen.Servers })
	keep(w, labelled(mesh.ServerSelector), kubePod, func(seen *mesh.Cluster) *health.Seen[kube.Pod] { return &seen.Pods })
	keep(w, labelled(cluster.CiliumAgentSelector), kubePod, func(seen *mesh.Cluster) *health.Seen[kube.Pod] { return &seen.Agents })
	for _, one := range m.askers {
		w.Go(func() { one.watch(ctx) })
	}
}

// addresses tries the mesh addresses of all clusters, the own one included.
func (m *Mesh) addresses() asker {
	at, none := map[string]netip.Addr{m.spec.Name: m.spec.Address}, map[string]string{m.spec.Name: ""}
	for _, peer := range m.spec.Peers {
		at[peer.Name], none[peer.Name] = peer.Address, ""
	}
	dialer := newMeshDialer(m.spec)
	return &inquiry[mesh.Cluster, mesh.Answer]{
		store: m.store, slots: make(chan struct{}, agentsAtOnce), again: addressEvery, fresh: fresh,
		targets: func(*mesh.Cluster) map[string]string { return none },
		answers: func(seen *mesh.Cluster) *map[string]mesh.Answer { return &seen.Answers },
		ask:     func(ctx context.Context, name, _ string) mesh.Answer { return dialer.try(ctx, name, at[name]) },
		silent:  func(answer mesh.Answer) bool { return answer.Err != "" },
		good: func(seen *mesh.Cluster, name string) bool {
			answer := seen.Answers[name]
			return answer.Asked && answer.Err == "" && answer.TLS == ""
		},
	}
}

// pods asks every Ready one of some pods for its report.
func (m *Mesh) pods(
	ready func(*mesh.Cluster) []kube.Pod, holds func(*mesh.Cluster, *mesh.Spec, string) bool,
	ask func(ctx context.Context, pod string) mesh.Report, answers func(*mesh.Cluster) *map[string]mesh.Report,
) asker {
	return &inquiry[mesh.Cluster, mesh.Report]{
		store: m.store, slots: make(chan struct{}, agentsAtOnce), again: pollEvery, fresh: fresh,
		targets: func(seen *mesh.Cluster) map[string]string {
			return xslices.ToMap(ready(seen), func(pod kube.Pod) (string, string) { return pod.Name, pod.Name })
		},
		answers: answers,
		ask:     func(ctx context.Context, _, pod string) mesh.Report { return ask(ctx, pod) },
		silent:  func(report mesh.Report) bool { return report.Err != "" },
		good:    func(seen *mesh.Cluster, pod string) bool { return holds(seen, m.spec, pod) },
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

// askCopy asks for kvstoremesh's report. Its connections are tried anew, too, if this computer cannot try the addresses.
func (m *Mesh) askCopy(ctx context.Context, pod string) mesh.Report {
	anew := false
	m.read(func(seen *mesh.Cluster) { anew = seen.TriesAnew(m.spec) })
	report := meshReport(m.copyStatus(ctx, pod, anew))
	report.Tried = anew
	return report
}

// copyStatus asks for kvstoremesh's status, and for Cilium's errors of the missing connections, or of all. The status
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
	status, err := m.kube.agentStatus(ctx, m.spec.Namespace, pod)
	return meshReport(status.Mesh.Clusters, status.Controllers, err)
}

// meshReport converts the answer of kvstoremesh or of an agent for the checks.
func meshReport(clusters []remoteCluster, controllers []controllerStatus, err error) mesh.Report {
	report := mesh.Report{Asked: true, Peers: map[string]mesh.Remote{}}
	if err != nil {
		report.Err = secrecy.Line(firstLine(err.Error()))
		return report
	}
	for _, cluster := range clusters {
		remote := mesh.Remote{
			Connected: cluster.Connected, Ready: cluster.Ready, Retrieved: cluster.Config.Retrieved, ID: cluster.Config.ClusterID,
			Nodes: cluster.Nodes, Status: secrecy.Line(firstLine(cluster.Status)), Failures: cluster.Failures,
		}
		for _, one := range controllers {
			connects := one.Name == controllerOf(cluster.Name) || one.Name == controllerOf(cluster.Name)+"-cluster-config"
			if connects && one.Status.Failures > 0 && one.Status.Message != "" {
				remote.Errors = append(remote.Errors, secrecy.Line(firstLine(one.Status.Message)))
			}
		}
		report.Peers[cluster.Name] = remote
	}
	return report
}

// meshService reads the Service of the mesh API server.
func meshService(object *unstructured.Unstructured) (mesh.Service, error) {
	service, err := kubeapi.Typed[corev1.Service](object)
	if err != nil {
		return mesh.Service{}, err
	}
	as := cmp.Or(service.Spec.Type, corev1.ServiceTypeClusterIP)
	seen := mesh.Service{Namespace: service.Namespace, Name: service.Name, Type: string(as)}
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		if ingress.IP != "" {
			seen.Addresses = append(seen.Addresses, ingress.IP)
		}
	}
	for _, condition := range service.Status.Conditions {
		if condition.Type == "cilium.io/IPAMRequestSatisfied" && condition.Status == metav1.ConditionFalse {
			seen.Refusal = secrecy.Line(firstLine(cmp.Or(condition.Message, condition.Reason)))
		}
	}
	return seen, nil
}
