package cilium

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

var clusterNameForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`)

// Validate returns everything that the chart or Cilium would reject or, worse, take.
func (v Values) Validate() error {
	return errors.Join(slices.Concat(v.identityProblems(), v.networkProblems(), v.choiceProblems(), v.meshProblems())...)
}

func (v Values) identityProblems() (problems []error) {
	if !clusterNameForm.MatchString(v.ClusterName) || v.ClusterName == "default" {
		problems = append(problems, fmt.Errorf("clusterName: %q is not a name Cilium takes; give a lower-case label of at most 32 characters other than default",
			v.ClusterName))
	}
	if v.ClusterID < 1 || v.ClusterID > 255 {
		problems = append(problems, fmt.Errorf("clusterID: %d is not in 1 to 255; give each cluster its own", v.ClusterID))
	}
	return problems
}

func (v Values) networkProblems() (problems []error) {
	if !isNetwork(v.PodCIDR) || !v.PodCIDR.Addr().Is4() {
		problems = append(problems, fmt.Errorf("podCIDR: %s is not an IPv4 network; give the one that Talos got", v.PodCIDR))
	}
	if v.PodCIDR6 != (netip.Prefix{}) && (!isNetwork(v.PodCIDR6) || !v.PodCIDR6.Addr().Is6() || v.PodCIDR6.Addr().Is4In6()) {
		problems = append(problems, fmt.Errorf("podCIDR6: %s is not an IPv6 network; give the one that Talos got, or none", v.PodCIDR6))
	}
	if v.KubePrismPort < 1 || v.KubePrismPort > 65535 {
		problems = append(problems, fmt.Errorf("kubePrismPort: %d is not a port; give the one that Talos got", v.KubePrismPort))
	}
	return problems
}

func isNetwork(p netip.Prefix) bool { return p.IsValid() && p == p.Masked() }

func (v Values) choiceProblems() []error {
	problems := []error{
		choice("routing", v.Routing, RoutingTunnel, RoutingNative),
		choice("masquerade", v.Masquerade, MasqueradeIPTables, MasqueradeBPF),
		choice("encryption", v.Encryption, EncryptionNone, EncryptionWireGuard),
		choice("bandwidth", v.Bandwidth, BandwidthNone, BandwidthEDT, BandwidthBBR),
	}
	// CoreDNS would forward to a link-local address of the host, which packets masqueraded by BPF do not come back from.
	if v.Masquerade == MasqueradeBPF && v.HostDNSForwarding {
		problems = append(problems, errors.New("masquerade: bpf breaks cluster DNS while Talos forwards it to the host; turn forwardKubeDNSToHost off or masquerade with iptables"))
	}
	// BBR's pacing survives only where packets skip the host's stack, which masquerading with iptables needs: the agent
	// ends with an error instead of starting without it.
	if v.Bandwidth == BandwidthBBR && v.Masquerade != MasqueradeBPF {
		problems = append(problems, errors.New("bandwidth: bbr does not work with masquerading by iptables; set masquerade to bpf, or bandwidth to edt"))
	}
	if hubble := v.hubble(); hubble.Relay && !hubble.Enabled {
		problems = append(problems, errors.New("hubble.relay: true without Hubble; enable Hubble or leave relay out"))
	} else if hubble.UI && !hubble.Relay {
		problems = append(problems, errors.New("hubble.ui: true without the relay that it shows; enable relay or leave the UI out"))
	}
	return problems
}

// choice is the problem of a value that is none of those there are; empty means the first.
func choice[T ~string](path string, value T, choices ...T) error {
	if value == "" || slices.Contains(choices, value) {
		return nil
	}
	words := make([]string, len(choices))
	for i, word := range choices {
		words[i] = string(word)
	}
	return fmt.Errorf("%s: %q is no choice; write one of %s", path, value, strings.Join(words, ", "))
}

func (v Values) meshProblems() []error {
	pool := v.LoadBalancers
	if pool == (LoadBalancers{}) && !v.Mesh {
		return nil
	}
	if !pool.Start.IsValid() || !pool.Stop.IsValid() || pool.Start.BitLen() != pool.Stop.BitLen() || pool.Stop.Less(pool.Start) {
		return []error{fmt.Errorf("loadBalancers: %s to %s is no range; give its first and last address", pool.Start, pool.Stop)}
	}
	if !pool.Mesh.IsValid() {
		if v.Mesh {
			return []error{errors.New("loadBalancers.mesh: missing; give the mesh API server an address of the pool, for peers have to know it")}
		}
		return nil
	}
	if pool.Mesh.BitLen() != pool.Start.BitLen() || pool.Mesh.Less(pool.Start) || pool.Stop.Less(pool.Mesh) {
		return []error{fmt.Errorf("loadBalancers.mesh: %s is outside the pool %s to %s; pick an address in it", pool.Mesh, pool.Start, pool.Stop)}
	}
	return nil
}
