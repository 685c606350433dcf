package newcluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/tests/clusters"
)

func TestNew_NamesTheFlagOfEachWrongAnswer(t *testing.T) {
	const afterwards = "nothing is written: give other answers, or leave out the flags and edit the stack file afterwards"
	for name, test := range map[string]struct {
		args  []string
		wants []string // besides the last line
	}{
		"an address in the place of a name": {
			[]string{"home", "--host", "192.168.1.10"},
			[]string{"--host: 192.168.1.10 is an address, and not the name of a Proxmox node; " +
				"write the name that Proxmox VE displays, such as pve1"},
		},
		"an address of the network": {
			[]string{"home", "--network", "10.25.3.1/24"},
			[]string{"--network: 10.25.3.1/24 has host bits set; did you mean 10.25.3.0/24?"},
		},
		"a larger network": {
			[]string{"home", "--network", "10.0.0.0/8"},
			[]string{"--network: 10.0.0.0/8 is not a /24; write a /24, such as 192.168.1.0/24"},
		},
		"no network": {
			[]string{"home", "--network", "300.0.0.0/24"},
			[]string{"--network: 300.0.0.0/24 is not an IPv4 network; write address and length, such as 10.25.11.0/24"},
		},
		"a router elsewhere": {
			[]string{"home", "--gateway", "10.25.3.1"},
			[]string{"--gateway: 10.25.3.1 is outside network.nodeCIDR; pick an address in 192.168.1.0/24"},
		},
		"a URL that needs more": {
			[]string{"home", "--git", "ssh://git@github.com/me/home.git"},
			[]string{"--git: gitops.knownHosts: is missing; " +
				"write what this prints, and compare it with what the host publishes: ssh-keyscan github.com"},
		},
		"many": {
			[]string{"home", "--proxmox", "http://pve1", "--host", "pve_1", "--network", "127.0.0.0/24", "--gateway", "no", "--git", "x",
				"--domain", "localhost", "--source", "nowhere"},
			[]string{
				"--proxmox: http://pve1 has another scheme than https; did you mean https://pve1?",
				"--host: pve_1 is not the name of a Proxmox node; did you mean pve-1?",
				"--network: 127.0.0.0/24 is within 127.0.0.0/8, which is no range for hosts; pick a private range, such as 10.25.11.0/24",
				"--git: the value is not the URL of a Git repository; " +
					"write the repository's https or ssh URL, like https://git.home.arpa/platform/slipway.git",
				"--gateway: no is not an IPv4 address; write it like 192.168.1.1",
				"--domain: localhost is not a domain in lower case; write it like home.example.com",
				"--source: nowhere is no checkout of Slipway; write the folder that has its go.mod",
			},
		},
	} {
		code, folder, problems := newRepository(t, test.args...)
		assert.Equal(t, command.Misuse, code, name)
		assert.Equal(t, "new: "+strings.Join(append(test.wants, afterwards), "\n")+"\n", problems, name)
		assert.NoDirExists(t, folder)
	}
}

// The domain is made of the name, and a problem of its own would only repeat that of the name.
func TestNew_SaysOfAWrongNameThatItIsWrong(t *testing.T) {
	_, _, problems := newRepository(t, "Home", "--host", "10.1.1.1")
	assert.Equal(t, "new: NAME: Home is not the name of a cluster; did you mean home?\n"+
		"--host: 10.1.1.1 is an address, and not the name of a Proxmox node; write the name that Proxmox VE displays, such as pve1\n"+
		"nothing is written: give other answers, or leave out the flags and edit the stack file afterwards\n", problems)
}

func TestNew_TakesTheNodeFromTheNameOfTheServerAndSaysSo(t *testing.T) {
	asSomebody(t)
	for proxmox, node := range map[string]string{
		"pve7.home.arpa": "pve7", "https://alpha.example.com:8006/": "alpha", "beta:443": "beta",
		"192.168.1.5": "", "https://[fd00::1]:8006/": "",
	} {
		t.Chdir(t.TempDir())
		said := saidByNew(t, "home", "--proxmox", proxmox)
		stack := clusters.Read(t, filepath.Join("home", "Pulumi.home.yaml"))
		if node == "" {
			assert.Equal(t, []string{"pve1"}, stack.Proxmox.Nodes, proxmox)
			assert.Contains(t, said, "Edit Pulumi.home.yaml: without --host, it has the example pve1\n")
			continue
		}
		assert.Equal(t, []string{node}, stack.Proxmox.Nodes, proxmox)
		assert.Contains(t, said, "Without --host, the Proxmox node is "+node+": the first part of the name in --proxmox\n")
		assert.NotContains(t, said, "without --host, it has")
	}
	t.Chdir(t.TempDir())
	said := saidByNew(t, "home", "--proxmox", "pve.home.arpa", "--host", "alpha")
	assert.Equal(t, []string{"alpha"}, clusters.Read(t, "home/Pulumi.home.yaml").Proxmox.Nodes)
	assert.NotContains(t, strings.ToLower(said), "without --host")
}

func TestNew_WritesARouterThatIsNotTheFirstAddress(t *testing.T) {
	code, folder, problems := newRepository(t, "home", "--network", "10.1.2.0/24", "--gateway", "10.1.2.254")
	require.Equal(t, command.Done, code, problems)
	assert.Equal(t, "10.1.2.254", clusters.Read(t, filepath.Join(folder, "Pulumi.home.yaml")).Network.Gateway.String())
	text, err := os.ReadFile(filepath.Join(folder, "Pulumi.home.yaml"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "    nodeCIDR: 10.1.2.0/24\n    gateway: 10.1.2.254\n")
}

func TestNew_WithoutADomainTakesOneForHomeNetworks(t *testing.T) {
	asSomebody(t)
	t.Chdir(t.TempDir())
	said := saidByNew(t, "berlin")
	assert.Equal(t, "berlin.home.arpa", clusters.Read(t, "berlin/Pulumi.berlin.yaml").GitOps.Settings["DOMAIN"])
	assert.Contains(t, said, "Without --domain, applications get names below berlin.home.arpa\n")
	assert.FileExists(t, "berlin/kubernetes/apps/podinfo/route.yaml")
	said = saidByNew(t, "bonn", "--domain", "")
	assert.Empty(t, clusters.Read(t, "bonn/Pulumi.bonn.yaml").GitOps.Settings)
	assert.NotContains(t, said, "ithout --domain")
	assert.NoDirExists(t, "bonn/kubernetes/apps")
}
