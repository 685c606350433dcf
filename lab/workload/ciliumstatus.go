package workload

import (
	"fmt"
	"io"
)

// The types below have the form of Cilium's own models (api/v1/models StatusResponse), as far as the lab fills them.
type (
	agentStatus struct {
		Cilium               componentStatus     `json:"cilium"`
		Cluster              clusterStatus       `json:"cluster"`
		ContainerRuntime     componentStatus     `json:"container-runtime"`
		Controllers          []any               `json:"controllers"`
		Kubernetes           componentStatus     `json:"kubernetes"`
		KubeProxyReplacement map[string]string   `json:"kube-proxy-replacement"`
		Kvstore              componentStatus     `json:"kvstore"`
		Ipam                 map[string]any      `json:"ipam"`
		NodeMonitor          map[string]any      `json:"nodeMonitor"`
		Proxy                map[string]any      `json:"proxy"`
		Identity             map[string][]string `json:"identity-range,omitempty"`
	}
	componentStatus struct {
		State string `json:"state"`
		Msg   string `json:"msg,omitempty"`
	}
	clusterStatus struct {
		CiliumHealth componentStatus `json:"ciliumHealth"`
		Nodes        []clusterNode   `json:"nodes"`
		Self         string          `json:"self"`
	}
	clusterNode struct {
		Name string `json:"name"`
	}
)

// status is the agent's own report.
func (a *agent) status() agentStatus {
	h := a.health()
	reachable := 0
	s := agentStatus{
		Cilium:               componentStatus{"Ok", ciliumVersion + " (v" + ciliumVersion + "-lab)"},
		Cluster:              clusterStatus{Self: h.Local.Name, CiliumHealth: componentStatus{State: "Ok"}},
		ContainerRuntime:     componentStatus{State: "Disabled"},
		Controllers:          []any{},
		Kubernetes:           componentStatus{"Ok", a.KubernetesVersion + " [linux/amd64]"},
		KubeProxyReplacement: map[string]string{"mode": "True"},
		Kvstore:              componentStatus{State: "Disabled"},
		Ipam:                 map[string]any{"status": "not modelled"},
		NodeMonitor:          map[string]any{},
		Proxy:                map[string]any{},
	}
	for _, n := range h.Nodes {
		s.Cluster.Nodes = append(s.Cluster.Nodes, clusterNode{n.Name})
		if n.Host.PrimaryAddress.HTTP.Status == "" && n.HealthEndpoint.PrimaryAddress.HTTP.Status == "" {
			reachable++
		}
	}
	s.Cluster.CiliumHealth.Msg = fmt.Sprintf("%d/%d reachable", reachable, len(h.Nodes))
	if !a.Instance.Ready() {
		s.Cilium.State, s.Cilium.Msg = "Failure", "agent is starting"
	}
	return s
}

func (a *agent) statusText(w io.Writer, brief bool) error {
	s := a.status()
	if brief {
		_, err := fmt.Fprintln(w, map[bool]string{true: "OK", false: "error: " + s.Cilium.Msg}[s.Cilium.State == "Ok"])
		return err
	}
	_, err := fmt.Fprintf(w, "KVStore:                 %s\nKubernetes:              %s   %s\nKubeProxyReplacement:    %s\nCilium:                  %s   %s\nCluster health:          %s\n",
		s.Kvstore.State, s.Kubernetes.State, s.Kubernetes.Msg, s.KubeProxyReplacement["mode"], s.Cilium.State, s.Cilium.Msg, s.Cluster.CiliumHealth.Msg)
	return err
}
