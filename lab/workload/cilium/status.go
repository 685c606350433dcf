package cilium

import (
	"fmt"
	"io"
	"math/big"
	"net/netip"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
)

// status is the agent's report on a node that supports all that the configuration asks for.
func (a *agent) status() agentStatus {
	kubernetes := strings.TrimPrefix(a.KubernetesVersion, "v")
	s := agentStatus{
		Cilium:           &componentStatus{State: "Ok", Msg: fmt.Sprintf("%s (v%s-lab)", version(a.Container), version(a.Container))},
		CNIFile:          &componentStatus{State: "Ok", Msg: "successfully wrote CNI configuration file to /host/etc/cni/net.d/05-cilium.conflist"},
		ContainerRuntime: &componentStatus{State: "Disabled"},
		Controllers: []controllerStatus{{Name: "cilium-health-ep", Status: controllerState{SuccessCount: 1}},
			{Name: "sync-to-k8s-ciliumendpoint", Status: controllerState{SuccessCount: 1}}},
		IPAM:       &ipamStatus{},
		Kubernetes: &componentStatus{State: "Ok", Msg: fmt.Sprintf("%[1]s (v%[1]s) [linux/amd64]", kubernetes)},
		Kvstore:    &componentStatus{State: "Disabled"},
	}
	a.mesh.report(&s)
	if !olderThan120(version(a.Container)) {
		s.ContainerRuntime = nil // which it does not report
	}
	if n := a.self(); n != nil {
		s.IPAM.Status = a.usedAddresses(n)
	}
	return s
}

// usedAddresses says how many addresses of the node's ranges are in use: those of its pods, the router's and the health endpoint's.
func (a *agent) usedAddresses(n *corev1.Node) string {
	pods := map[string]string{}
	if a.Cluster.PodAddresses != nil {
		pods = a.Cluster.PodAddresses(a.Node)
	}
	var four, six string
	for _, r := range PodCIDRs(n, a.Cluster.Faults) {
		p, err := netip.ParsePrefix(r)
		if err != nil {
			continue
		}
		used := 2
		for ip := range pods {
			if address, err := netip.ParseAddr(ip); err == nil && p.Contains(address) {
				used++
			}
		}
		all := new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-p.Bits()))
		text := fmt.Sprintf("%d/%d allocated from %s", used, all.Sub(all, big.NewInt(2)), p)
		if p.Addr().Is4() {
			four = "IPv4: " + text
		} else {
			six = "IPv6: " + text
		}
	}
	return four + ", " + six // with the comma if a family is off, too
}

// statusText prints the report as `cilium-dbg status` does.
func (a *agent) statusText(w io.Writer, f statusFlags) (int, error) {
	s := a.status()
	if f.short {
		_, err := fmt.Fprintln(w, "OK")
		return 0, err
	}
	t := tabwriter.NewWriter(w, 2, 0, 3, ' ', 0)
	fmt.Fprintf(t, "KVStore:\t%s\t%s\n", s.Kvstore.State, s.Kvstore.Msg)
	fmt.Fprintf(t, "Kubernetes:\t%s\t%s\n", s.Kubernetes.State, s.Kubernetes.Msg)
	fmt.Fprintf(t, "CNI Config file:\t%s\n", s.CNIFile.Msg)
	fmt.Fprintf(t, "Cilium:\t%s   %s\n", s.Cilium.State, s.Cilium.Msg)
	fmt.Fprintf(t, "IPAM:\t%s\n", s.IPAM.Status)
	printHealth(t, a.health(), f.verbose, f.verbose)
	return 0, t.Flush()
}
