package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
)

// other returns a second cluster that conflicts in nothing with the fixture "ipv6", which is stack "home".
func other(t *testing.T, changes ...string) *cluster.Cluster {
	t.Helper()
	text := strings.NewReplacer(
		"name: home\n", "name: other\n", "id: 1\n", "id: 2\n", "home-1", "other-1", "vmId: 101", "vmId: 201", "00:01:11", "00:02:11",
		"10.25.11.", "10.25.12.", "10.244.", "10.246.", "10.245.", "10.247.", "fd25:11:", "fd25:12:",
	).Replace(fixtures.Get("ipv6").Text)
	for i := 0; i < len(changes); i += 2 {
		require.Equal(t, 1, strings.Count(text, changes[i]), changes[i])
		text = strings.Replace(text, changes[i], changes[i+1], 1)
	}
	stack, err := loadText(nil, "Pulumi.other.yaml", []byte(text))
	require.NoError(t, err)
	return stack
}

func TestCompare_FindsConflictsBetweenStacks(t *testing.T) {
	home, err := loadFixture("ipv6")
	require.NoError(t, err)
	home.GitOps.Settings = map[string]string{cluster.DomainSetting: "home.arpa"}
	for name, test := range map[string]struct{ changes, want []string }{
		"nothing shared": {},
		"cluster id": {[]string{"id: 2\n", "id: 1\n"},
			[]string{"cluster.id: 1 is cluster.id of home; pick another"}},
		"cluster name": {[]string{"name: other\n", "name: home\n"},
			[]string{"cluster.name: home is cluster.name of home; pick another"}},
		"a cluster with the name of a machine": {[]string{"name: other\n", "name: home-1\n"}, nil},
		"machine name": {[]string{"other-1", "home-1"},
			[]string{"nodePools[0].nodes[0].name: home-1 is nodePools[0].nodes[0].name of home; pick another"}},
		"VM id": {[]string{"vmId: 201", "vmId: 101"},
			[]string{"nodePools[0].nodes[0].vmId: 101 is nodePools[0].nodes[0].vmId of home; pick another"}},
		"VM id behind another endpoint": {[]string{"vmId: 201", "vmId: 101", "https://pve.home.arpa:8006/", "https://pve.other.arpa:8006/"},
			[]string{"nodePools[0].nodes[0].vmId: 101 is nodePools[0].nodes[0].vmId of home; " +
				"pick another, or set proxmox.cluster, if they are two Proxmox clusters"}},
		"VM id in another Proxmox cluster": {[]string{"vmId: 201", "vmId: 101", "https://pve.home.arpa:8006/", "https://pve.other.arpa:8006/",
			"nodes: [pve1]", "nodes: [pve1]\n    cluster: other"}, nil},
		"VM id in the Proxmox cluster of the same endpoint": {
			[]string{"vmId: 201", "vmId: 101", "https://pve.home.arpa:8006/", "https://PVE.home.arpa:8006",
				"nodes: [pve1]", "nodes: [pve1]\n    cluster: other"},
			[]string{"nodePools[0].nodes[0].vmId: 101 is nodePools[0].nodes[0].vmId of home; pick another",
				"proxmox.cluster: other is pve for home, at the same endpoint; write the same in both"}},
		"endpoint at another's VIP": {[]string{"https://pve.home.arpa:8006/", "https://10.25.11.10:8006/"},
			[]string{"proxmox.endpoint: 10.25.11.10 is network.vip of home; write another address"}},
		"endpoint in another's pool": {[]string{"https://pve.home.arpa:8006/", "https://10.25.11.130:8006/"}, nil},
		"MAC address": {[]string{"00:02:11", "00:01:11"},
			[]string{"nodePools[0].nodes[0].mac: BC:24:11:00:01:11 is nodePools[0].nodes[0].mac of home; pick another"}},
		"pods on another's machines": {[]string{"podCIDR: 10.246.0.0/16", "podCIDR: 10.25.8.0/22"},
			[]string{"network.podCIDR: 10.25.8.0/22 overlaps network.nodeCIDR 10.25.11.0/24 of home; pick a disjoint range"}},
		"services on another's pods": {[]string{"serviceCIDR: 10.247.0.0/16", "serviceCIDR: 10.244.128.0/17"},
			[]string{"network.serviceCIDR: 10.244.128.0/17 overlaps network.podCIDR 10.244.0.0/16 of home; pick a disjoint range"}},
		"domain behind the gateway": {
			[]string{"platform/slipway.git\n", "platform/slipway.git\n    settings: {DOMAIN: Home.arpa}\n"},
			[]string{"gitops.settings.DOMAIN: home.arpa is gitops.settings.DOMAIN of home; pick another"}},
		"pods of IPv6": {[]string{"podCIDR: fd25:12:1::/56", "podCIDR: fd25:11:1::/60"},
			[]string{"network.ipv6.podCIDR: fd25:11:1::/60 overlaps network.ipv6.podCIDR fd25:11:1::/56 of home; pick a disjoint range"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := cluster.Compare([]*cluster.Cluster{home, other(t, test.changes...)})
			require.Len(t, found, 2)
			assert.Empty(t, found[0], "the first stack has no problems")
			var says []string
			for _, problem := range found[1] {
				says = append(says, problem.Error())
			}
			assert.Equal(t, test.want, says)
		})
	}
}

func TestCompare_FindsAnAddressOfOneUseInAnother(t *testing.T) {
	home, err := loadFixture("ipv6")
	require.NoError(t, err)
	twin := other(t)
	twin.Network.LoadBalancers.Mesh, twin.Network.LoadBalancers.Gateway = home.Network.LoadBalancers.Mesh, home.NodePools[0].Nodes[0].Address
	assert.EqualError(t, cluster.Compare([]*cluster.Cluster{home, twin})[1],
		"network.loadBalancers.mesh: 10.25.11.100 is network.loadBalancers.mesh of home; pick another\n"+
			"network.loadBalancers.gateway: 10.25.11.11 is nodePools[0].nodes[0].address of home; pick another")
}

// byDefault returns a cluster whose file has neither an id nor networks of pods and Services, after a change of its text.
func byDefault(t *testing.T, stack, third string, changes ...string) *cluster.Cluster {
	t.Helper()
	text := strings.NewReplacer(append(changes, "name: home\n", "name: "+stack+"\n", "home-1", stack+"-1", "vmId: 101", "vmId: "+third+"01",
		"00:01:11", "00:"+third+":11", "10.25.11.", "10.25."+third+".")...).Replace(fixtures.Get("network-by-default").Text)
	c, err := loadText(fixtures.Tree(), "Pulumi."+stack+".yaml", []byte(text))
	require.NoError(t, err)
	return c
}

func TestCompare_DefaultsMayBeTheSameInClustersThatAreInNoMesh(t *testing.T) {
	one, two := byDefault(t, "one", "21"), byDefault(t, "two", "22")
	require.Equal(t, one.Identity.ID, two.Identity.ID)
	require.Equal(t, one.Network.PodCIDR, two.Network.PodCIDR)
	assert.Empty(t, cluster.Compare([]*cluster.Cluster{one, two})[1])

	written := byDefault(t, "two", "22", "    name: home\n", "    name: two\n    id: 1\n",
		"    vip:", "    podCIDR: 10.244.0.0/16\n    serviceCIDR: 10.96.0.0/16\n    vip:")
	assert.Empty(t, cluster.Compare([]*cluster.Cluster{one, written})[1], "one of the two still takes the defaults")
}

func TestCompare_DefaultsAreComparedInAMesh(t *testing.T) {
	one, two := byDefault(t, "one", "21"), byDefault(t, "two", "22")
	one.Mesh.Peers, two.Mesh.Peers = []string{"two"}, []string{"one"}
	assert.EqualError(t, cluster.Compare([]*cluster.Cluster{one, two})[1],
		"cluster.id: 1 is cluster.id of one; pick another\n"+
			"network.podCIDR: 10.244.0.0/16 overlaps network.podCIDR 10.244.0.0/16 of one; pick a disjoint range\n"+
			"network.serviceCIDR: 10.96.0.0/16 overlaps network.serviceCIDR 10.96.0.0/16 of one; pick a disjoint range")
}

func TestCompare_PodsByDefaultAreComparedWithTheMachinesOfOthers(t *testing.T) {
	one := byDefault(t, "one", "21")
	two := byDefault(t, "two", "22", "    name: home\n", "    name: two\n    id: 1\n", "10.25.11.", "10.244.5.",
		"    vip:", "    podCIDR: 10.1.0.0/16\n    serviceCIDR: 10.2.0.0/16\n    vip:")
	assert.EqualError(t, cluster.Compare([]*cluster.Cluster{one, two})[1],
		"network.nodeCIDR: 10.244.5.0/24 overlaps network.podCIDR 10.244.0.0/16 of one; pick a disjoint range")
}

func TestCompare_AConsumerNeedsAProvider(t *testing.T) {
	home, err := loadFixture("ipv6")
	require.NoError(t, err)
	for name, test := range map[string]struct {
		home, other     cluster.Storage
		isSaid, saysOne string // of the second stack, with each of them first
	}{
		"both agree": {home: cluster.Storage{Role: cluster.StorageProvider, Vault: "v"},
			other: cluster.Storage{Role: cluster.StorageConsumer, Provider: "home", Vault: "v"}},
		"no role": {home: cluster.Storage{Role: cluster.StorageNone}, other: cluster.Storage{Role: cluster.StorageConsumer, Provider: "home"},
			isSaid:  "storage.provider: home provides no storage: its storage.role is none; write role: provider there, or name another stack",
			saysOne: "storage.role: none, and other consumes the storage of this cluster; write provider, or another storage.provider in other"},
		"a consumer of a consumer": {home: cluster.Storage{Role: cluster.StorageConsumer, Provider: "third"},
			other:   cluster.Storage{Role: cluster.StorageConsumer, Provider: "home"},
			isSaid:  "storage.provider: home provides no storage: its storage.role is consumer; write role: provider there, or name another stack",
			saysOne: "storage.role: consumer, and other consumes the storage of this cluster; write provider, or another storage.provider in other"},
		"another vault": {home: cluster.Storage{Role: cluster.StorageProvider, Vault: "v"},
			other:   cluster.Storage{Role: cluster.StorageConsumer, Provider: "home"},
			isSaid:  "storage.vault: none is not that of home, which is v; write the same in both",
			saysOne: "storage.vault: v is not that of other, which is none; write the same in both"},
		"a consumer of a third": {home: cluster.Storage{Role: cluster.StorageNone},
			other: cluster.Storage{Role: cluster.StorageConsumer, Provider: "third"}},
		"a consumer of its own with the provider's vault": {home: cluster.Storage{Role: cluster.StorageProvider, Vault: "v"},
			other: cluster.Storage{Role: cluster.StorageConsumer, Provider: "home", Vault: "v", RadosNamespace: "other"},
			isSaid: "storage.vault: v is also that of home, and has the keys of one consumer, or of all; " +
				"give each consumer with storage.radosNamespace a vault of its own",
			saysOne: "storage.vault: v is also that of other, and has the keys of one consumer, or of all; " +
				"give each consumer with storage.radosNamespace a vault of its own"},
		"a consumer of its own with its own vault": {home: cluster.Storage{Role: cluster.StorageProvider, Vault: "v"},
			other: cluster.Storage{Role: cluster.StorageConsumer, Provider: "home", Vault: "w", RadosNamespace: "other"}},
		"a consumer of its own with a vault, and a provider without": {home: cluster.Storage{Role: cluster.StorageProvider},
			other:   cluster.Storage{Role: cluster.StorageConsumer, Provider: "home", Vault: "w", RadosNamespace: "other"},
			isSaid:  "storage.vault: w is to be filled by home, which has no vault; write another vault there, or remove this one",
			saysOne: "storage.vault: is missing, and this cluster is to fill w, the vault of other; write another vault, or remove that of other"},
		"a consumer of its own and a provider, both without": {home: cluster.Storage{Role: cluster.StorageProvider},
			other: cluster.Storage{Role: cluster.StorageConsumer, Provider: "home", RadosNamespace: "other"}},
		"a consumer of its own without a vault": {home: cluster.Storage{Role: cluster.StorageProvider, Vault: "v"},
			other: cluster.Storage{Role: cluster.StorageConsumer, Provider: "home", RadosNamespace: "other"}},
		"two consumers of their own with one vault": {
			home:  cluster.Storage{Role: cluster.StorageConsumer, Provider: "third", Vault: "v", RadosNamespace: "home"},
			other: cluster.Storage{Role: cluster.StorageConsumer, Provider: "third", Vault: "v", RadosNamespace: "other"},
			isSaid: "storage.vault: v is also that of home, and has the keys of one consumer, or of all; " +
				"give each consumer with storage.radosNamespace a vault of its own",
			saysOne: "storage.vault: v is also that of other, and has the keys of one consumer, or of all; " +
				"give each consumer with storage.radosNamespace a vault of its own"},
		"two consumers of two providers with one vault": {
			home:  cluster.Storage{Role: cluster.StorageConsumer, Provider: "third", Vault: "v", RadosNamespace: "home"},
			other: cluster.Storage{Role: cluster.StorageConsumer, Provider: "fourth", Vault: "v", RadosNamespace: "other"}},
		"two consumers with one namespace and its vault": {
			home:  cluster.Storage{Role: cluster.StorageConsumer, Provider: "third", Vault: "v", RadosNamespace: "one"},
			other: cluster.Storage{Role: cluster.StorageConsumer, Provider: "third", Vault: "v", RadosNamespace: "one"}},
	} {
		t.Run(name, func(t *testing.T) {
			twin := other(t)
			home.Storage, twin.Storage = test.home, test.other
			assert.Equal(t, test.isSaid, cluster.Compare([]*cluster.Cluster{home, twin})[1].Error())
			assert.Equal(t, test.saysOne, cluster.Compare([]*cluster.Cluster{twin, home})[1].Error())
		})
	}
}

// A third stack is told both, so that one change is enough.
func TestCompare_NamesEveryStackThatHasAValue(t *testing.T) {
	home, err := loadFixture("ipv6")
	require.NoError(t, err)
	second, third := other(t), other(t)
	third.Stack, third.Identity.ID = "third", 1
	second.Identity.ID = 1
	assert.EqualError(t, cluster.Compare([]*cluster.Cluster{home, second, third})[2][:2],
		"cluster.id: 1 is cluster.id of home; pick another\ncluster.id: 1 is cluster.id of other; pick another")
}

func TestCompare_ListsEveryConflictWithACopy(t *testing.T) {
	home, err := loadFixture("ipv6")
	require.NoError(t, err)
	twin, err := loadText(nil, "Pulumi.twin.yaml", []byte(fixtures.Get("ipv6").Text))
	require.NoError(t, err)
	var paths []string
	for _, problem := range cluster.Compare([]*cluster.Cluster{home, twin})[1] {
		paths = append(paths, problem.Path)
	}
	assert.Equal(t, []string{
		"cluster.id", "cluster.name", "network.vip", "network.loadBalancers.mesh", "network.loadBalancers.gateway",
		"nodePools[0].nodes[0].name", "nodePools[0].nodes[0].mac", "nodePools[0].nodes[0].address",
		"nodePools[0].nodes[0].address6", "nodePools[0].nodes[0].vmId", "network.nodeCIDR", "network.podCIDR", "network.serviceCIDR",
		"network.loadBalancers", "network.ipv6.nodeCIDR", "network.ipv6.podCIDR", "network.ipv6.serviceCIDR",
	}, paths)
	assert.Empty(t, cluster.Compare(nil))
}

func TestCompare_FindsNothingInTheStackFiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(samples, "Pulumi.*.yaml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 2)
	var stacks []*cluster.Cluster
	for _, file := range files {
		stack, err := loadFile(file)
		require.NoError(t, err)
		stacks = append(stacks, stack)
	}
	for _, found := range cluster.Compare(stacks) {
		assert.Empty(t, found)
	}
}

// The tree is a copy, too: a setting that the third cluster lacks is empty in it.
func TestThird_HasEverySettingOfTheFileThatItIsMadeFrom(t *testing.T) {
	third, err := loadText(nil, filepath.Join(samples, "Pulumi.edge.yaml"), []byte(fixtures.Third()))
	require.NoError(t, err)
	apps, err := loadFile(filepath.Join(samples, "Pulumi.apps.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, apps.GitOps.Settings)
	for setting := range apps.GitOps.Settings {
		assert.NotEmpty(t, third.GitOps.Settings[setting], setting)
	}
	assert.Empty(t, cluster.Compare([]*cluster.Cluster{apps, third})[1])
}
