package cilium_test

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/components/cilium"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func pool() cilium.LoadBalancers {
	return cilium.LoadBalancers{
		Start: netip.MustParseAddr("10.25.11.100"), Stop: netip.MustParseAddr("10.25.11.150"), Mesh: netip.MustParseAddr("10.25.11.100"),
	}
}

// options are the choices, each alone and those that lean on each other together, by the name of their golden file.
var options = map[string]func(*cilium.Values){
	"values":     func(*cilium.Values) {},
	"dual-stack": func(v *cilium.Values) { v.PodCIDR6 = netip.MustParsePrefix("fd00:10:244::/56") },
	"native":     func(v *cilium.Values) { v.Routing = cilium.RoutingNative },
	"bpf-bbr":    func(v *cilium.Values) { v.Masquerade, v.Bandwidth = cilium.MasqueradeBPF, cilium.BandwidthBBR },
	"edt":        func(v *cilium.Values) { v.Bandwidth = cilium.BandwidthEDT },
	"gateway":    func(v *cilium.Values) { v.GatewayAPI = true },
	"no-hubble":  func(v *cilium.Values) { v.Hubble = &cilium.Hubble{} },
	"hubble-ui":  func(v *cilium.Values) { v.Hubble = &cilium.Hubble{Enabled: true, Relay: true, UI: true} },
	"bgp":        func(v *cilium.Values) { v.BGP = true },
	"l2":         func(v *cilium.Values) { v.L2Announcements = true },
	"wireguard":  func(v *cilium.Values) { v.Encryption = cilium.EncryptionWireGuard },
	"mesh":       func(v *cilium.Values) { v.Mesh, v.LoadBalancers = true, pool() },
	"default-words": func(v *cilium.Values) {
		v.Routing, v.Masquerade = cilium.RoutingTunnel, cilium.MasqueradeIPTables
		v.Encryption, v.Bandwidth = cilium.EncryptionNone, cilium.BandwidthNone
		v.Hubble = &cilium.Hubble{Enabled: true, Relay: true}
	},
}

func rendered(t *testing.T, set func(*cilium.Values)) map[string]any {
	t.Helper()
	values := validValues()
	set(&values)
	pair := func(name string) cilium.Pair {
		return cilium.Pair{Certificate: name + " certificate", Key: name + " key"}
	}
	tree, err := values.Render(cilium.Keys{
		CA: "ca certificate", Server: pair("server"), Relay: pair("relay"),
		Mesh: cilium.MeshKeys{Server: pair("mesh server"), Admin: pair("mesh admin"), Remote: pair("mesh remote")},
	})
	require.NoError(t, err)
	return tree
}

// changed is what a tree has that another one has not, or has otherwise; what only the other one has is null.
func changed(tree, from map[string]any) map[string]any {
	diff := map[string]any{}
	for key := range from {
		if _, there := tree[key]; !there {
			diff[key] = nil
		}
	}
	for key, value := range tree {
		below, isTree := value.(map[string]any)
		was, wasTree := from[key].(map[string]any)
		if isTree && wasTree {
			if part := changed(below, was); len(part) != 0 {
				diff[key] = part
			}
			continue
		}
		if !assert.ObjectsAreEqual(from[key], value) {
			diff[key] = value
		}
	}
	return diff
}

func TestValues_RenderWhatTheGoldenFilesShow(t *testing.T) {
	usual := rendered(t, options["values"])
	for name, set := range options {
		tree := rendered(t, set)
		if name != "values" { // the whole is in one file; the others show what their option sets
			tree = changed(tree, usual)
		}
		got, err := yaml.Marshal(tree)
		require.NoError(t, err)
		file := filepath.Join("testdata", name+".yaml")
		if *update {
			require.NoError(t, os.WriteFile(file, got, 0o600))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), name)
	}
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	assert.Len(t, files, len(options), "each golden file belongs to an option")
}

func TestValues_FollowTheClusterTheyAreFor(t *testing.T) {
	tree := rendered(t, func(v *cilium.Values) { v.ClusterName, v.ClusterID, v.KubePrismPort = "apps", 2, 7446 })
	assert.Equal(t, map[string]any{"name": "apps", "id": 2.0}, tree["cluster"])
	assert.Equal(t, 7446.0, tree["k8sServicePort"])
	assert.Equal(t, "10.244.0.0/16", tree["ipv4NativeRoutingCIDR"])
}

func TestValues_RefuseWhatCannotWork(t *testing.T) {
	cidr, addr := netip.MustParsePrefix, netip.MustParseAddr
	for problem, break_ := range map[string]func(*cilium.Values){
		`clusterName: "Infra"`:          func(v *cilium.Values) { v.ClusterName = "Infra" },
		`clusterName: "default"`:        func(v *cilium.Values) { v.ClusterName = "default" },
		"clusterID: 0":                  func(v *cilium.Values) { v.ClusterID = 0 },
		"clusterID: 256":                func(v *cilium.Values) { v.ClusterID = 256 },
		"podCIDR: 10.244.0.1/16":        func(v *cilium.Values) { v.PodCIDR = cidr("10.244.0.1/16") },
		"podCIDR: fd00::/56":            func(v *cilium.Values) { v.PodCIDR = cidr("fd00::/56") },
		"podCIDR6: 10.245.0.0/16":       func(v *cilium.Values) { v.PodCIDR6 = cidr("10.245.0.0/16") },
		"podCIDR6: fd00::1/56":          func(v *cilium.Values) { v.PodCIDR6 = cidr("fd00::1/56") },
		"podCIDR6: ::ffff:10.0.0.0/104": func(v *cilium.Values) { v.PodCIDR6 = cidr("::ffff:10.0.0.0/104") },
		"kubePrismPort: 0":              func(v *cilium.Values) { v.KubePrismPort = 0 },
		`routing: "vxlan" is no choice; write one of tunnel, native`: func(v *cilium.Values) { v.Routing = "vxlan" },
		`masquerade: "BPF" is no choice`:                             func(v *cilium.Values) { v.Masquerade = "BPF" },
		`encryption: "ipsec" is no choice`:                           func(v *cilium.Values) { v.Encryption = "ipsec" },
		`bandwidth: "fq" is no choice`:                               func(v *cilium.Values) { v.Bandwidth = "fq" },
		"masquerade: bpf breaks cluster DNS": func(v *cilium.Values) {
			v.Masquerade, v.HostDNSForwarding = cilium.MasqueradeBPF, true
		},
		"bandwidth: bbr does not work with masquerading by iptables": func(v *cilium.Values) { v.Bandwidth = cilium.BandwidthBBR },
		"hubble.relay: true without Hubble":                          func(v *cilium.Values) { v.Hubble = &cilium.Hubble{Relay: true} },
		"hubble.ui: true without the relay":                          func(v *cilium.Values) { v.Hubble = &cilium.Hubble{Enabled: true, UI: true} },
		"loadBalancers: invalid IP to invalid IP is no range":        func(v *cilium.Values) { v.Mesh = true },
		"loadBalancers: 10.0.0.9 to 10.0.0.1 is no range": func(v *cilium.Values) {
			v.LoadBalancers = cilium.LoadBalancers{Start: addr("10.0.0.9"), Stop: addr("10.0.0.1")}
		},
		"loadBalancers: 10.0.0.9 to fd00::1 is no range": func(v *cilium.Values) {
			v.LoadBalancers = cilium.LoadBalancers{Start: addr("10.0.0.9"), Stop: addr("fd00::1")}
		},
		"loadBalancers.mesh: missing": func(v *cilium.Values) {
			v.Mesh, v.LoadBalancers = true, pool()
			v.LoadBalancers.Mesh = netip.Addr{}
		},
		"loadBalancers.mesh: 10.25.11.99 is outside the pool": func(v *cilium.Values) {
			v.LoadBalancers = pool()
			v.LoadBalancers.Mesh = addr("10.25.11.99")
		},
		"loadBalancers.mesh: 10.25.11.151 is outside the pool": func(v *cilium.Values) {
			v.Mesh, v.LoadBalancers = true, pool()
			v.LoadBalancers.Mesh = addr("10.25.11.151")
		},
	} {
		values := validValues()
		break_(&values)
		assert.ErrorContains(t, values.Validate(), problem)
		_, err := values.Render(cilium.Keys{})
		assert.Error(t, err, problem)
	}
}

func TestValues_TakeWhatIsAtTheEdge(t *testing.T) {
	for name, set := range map[string]func(*cilium.Values){
		"the pool's last address":       func(v *cilium.Values) { v.LoadBalancers = pool(); v.LoadBalancers.Mesh = v.LoadBalancers.Stop },
		"a pool without a mesh address": func(v *cilium.Values) { v.LoadBalancers = pool(); v.LoadBalancers.Mesh = netip.Addr{} },
		"host DNS with iptables":        func(v *cilium.Values) { v.HostDNSForwarding = true },
		"the last id":                   func(v *cilium.Values) { v.ClusterID = 255 },
		"a name of 32 characters":       func(v *cilium.Values) { v.ClusterName = "a2345678901234567890123456789012" },
	} {
		values := validValues()
		set(&values)
		assert.NoError(t, values.Validate(), name)
	}
}

func TestValues_SayEverythingThatIsWrongAtOnce(t *testing.T) {
	_, err := cilium.Values{}.Render(cilium.Keys{})
	require.Error(t, err)
	for _, path := range []string{"clusterName", "clusterID", "podCIDR", "kubePrismPort"} {
		assert.ErrorContains(t, err, path)
	}
}
