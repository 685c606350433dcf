package stackfile

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	return dir
}

const minimal = `config:
  slipway:cluster: {name: third, id: 3}
  slipway:proxmox: {endpoint: "https://192.0.2.7:8006/", nodes: [a, b]}
  slipway:network: {nodeCIDR: 192.0.2.0/24, gateway: 192.0.2.1}
  slipway:gitops: {url: "https://git.example.test/x.git"}
`

func TestFind_ReadsWhatTheLabMustSimulate(t *testing.T) {
	files, err := Find(write(t, "Pulumi.third.yaml", minimal))
	require.NoError(t, err)
	require.Len(t, files, 1)
	f := files[0]
	require.Equal(t, "third", f.Stack)
	require.Equal(t, "third", f.Cluster)
	require.Equal(t, "https://192.0.2.7:8006/", f.Proxmox.Endpoint)
	require.Equal(t, []string{"a", "b"}, f.Proxmox.Nodes)
	require.Equal(t, "local-lvm", f.Proxmox.Datastores.Disks, "the program's default")
	require.Equal(t, netip.MustParseAddr("192.0.2.1"), f.Network.Gateway)
	require.Equal(t, "main", f.GitOps.Branch)
}

func TestRead_HasTheProgramsDefaults(t *testing.T) {
	files, err := Find(write(t, "Pulumi.third.yaml", strings.NewReplacer(", id: 3", "", ", gateway: 192.0.2.1", "").Replace(minimal)))
	require.NoError(t, err)
	require.Equal(t, 1, files[0].ID)
	require.Equal(t, netip.MustParseAddr("192.0.2.1"), files[0].Network.Gateway)
}

func TestRead_ReadsPoolsAndTheSecondFamily(t *testing.T) {
	files, err := Find(write(t, "Pulumi.third.yaml", minimal))
	require.NoError(t, err)
	require.Equal(t, []string{"vmbr0"}, files[0].Bridges())
	require.Equal(t, []string{"local-lvm"}, files[0].DiskDatastores())
	require.Equal(t, []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")}, files[0].Network.Gateways())

	files, err = Find(write(t, "Pulumi.third.yaml", strings.Replace(minimal, "gateway: 192.0.2.1}", "gateway: 192.0.2.1, "+
		"nameservers: [192.0.2.53], ntp: [192.0.2.123, time.example.test], "+
		"ipv6: {nodeCIDR: 2001:db8:1::/64, gateway: 2001:db8:1::1, nameservers: [2001:db8::53]}}", 1)+`
  slipway:nodePools:
    - {name: a, bridge: vmbr1, datastore: fast, dataDisks: [{name: x, size: 1GiB, datastore: slow}]}
    - {name: b, dataDisks: [{name: y, size: 1GiB}]}
`))
	require.NoError(t, err)
	require.Equal(t, []string{"vmbr0", "vmbr1"}, files[0].Bridges())
	require.Equal(t, "[192.0.2.53 2001:db8::53 192.0.2.123]", fmt.Sprint(files[0].Network.Servers()))
	require.Equal(t, []string{"fast", "local-lvm", "slow"}, files[0].DiskDatastores())
	require.Equal(t, []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24"), netip.MustParsePrefix("2001:db8:1::1/64")}, files[0].Network.Gateways())
}

func TestRead_ReadsWhatTheStackTakesFrom1Password(t *testing.T) {
	of := func(secrets string) *OnePassword {
		files, err := Find(write(t, "Pulumi.third.yaml", minimal+secrets))
		require.NoError(t, err)
		return files[0].OnePassword
	}
	require.Nil(t, of(""))
	require.Nil(t, of("  slipway:secrets: {sealedSecrets: {}}\n"))
	one := of("  slipway:secrets: {onepassword: {vaults: [a, b]}}\n")
	require.Equal(t, []string{"a", "b"}, one.Vaults)
	require.Equal(t, "slipway-probe", one.Probe.Item, "the program's default")
	require.Equal(t, "password", one.Probe.Field, "the program's default")
	one = of("  slipway:secrets: {onepassword: {vaults: [a], probe: {item: x, field: label}}}\n")
	require.Equal(t, "x", one.Probe.Item)
	require.Equal(t, "label", one.Probe.Field)
}

func TestFind_ReportsWhatItCannotSimulate(t *testing.T) {
	_, err := Find(t.TempDir())
	require.ErrorContains(t, err, "run it in the project's folder")
	_, err = Find(write(t, "Pulumi.x.yaml", "config: {}\n"))
	require.ErrorContains(t, err, "no https URL")
	_, err = Find(write(t, "Pulumi.x.yaml", "config: [\n"))
	require.ErrorContains(t, err, "Pulumi.x.yaml")
}

func TestFind_ReadsAnotherRepositoryOfCiliumsChart(t *testing.T) {
	files, err := Find(write(t, "Pulumi.x.yaml", minimal+"  slipway:cilium: {repository: \"https://charts.example.test/cilium\"}\n"))
	require.NoError(t, err)
	require.Equal(t, "https://charts.example.test/cilium", files[0].CiliumRepository)
	_, err = Find(write(t, "Pulumi.x.yaml", minimal+"  slipway:cilium: {repository: charts.example.test}\n"))
	require.ErrorContains(t, err, `slipway:cilium.repository: "charts.example.test" is no https URL`)
}

func TestFind_ReadsTheCommittedStackFiles(t *testing.T) {
	files, err := Find(filepath.Join("..", ".."))
	require.NoError(t, err)
	require.Len(t, files, 2)
	require.Equal(t, "infra", files[0].Stack, "the cluster that the other depends on comes first")
	require.Equal(t, files[0].Proxmox.Endpoint, files[1].Proxmox.Endpoint, "both run on one Proxmox VE cluster")
	require.Equal(t, []string{files[1].Stack}, files[0].Peers)
}

func TestRead_ReadsEveryKindOfSource(t *testing.T) {
	of := func(gitops string) (GitOps, error) {
		text := strings.Replace(minimal, `{url: "https://git.example.test/x.git"}`, gitops, 1)
		require.NotEqual(t, minimal, text)
		files, err := Find(write(t, "Pulumi.third.yaml", text))
		if err != nil {
			return GitOps{}, err
		}
		return files[0].GitOps, nil
	}
	source, err := of(`{oci: {url: "oci://registry.example.test/a/b"}}`)
	require.NoError(t, err)
	require.Equal(t, &OCI{URL: "oci://registry.example.test/a/b", Tag: "latest"}, source.OCI, "with the program's default")
	source, err = of(`{bucket: {endpoint: "s3.example.test:9000", name: b}, public: true}`)
	require.NoError(t, err)
	require.Equal(t, &Bucket{Endpoint: "s3.example.test:9000", Name: "b"}, source.Bucket)
	require.True(t, source.Public)
	source, err = of(`{url: "https://github.com/a/b", githubApp: {id: 1, owner: a}}`)
	require.NoError(t, err)
	require.Equal(t, &GitHubApp{ID: 1, Owner: "a"}, source.GitHubApp)
	_, _, named := source.Snapshots()
	require.False(t, named)
	source, err = of(`{url: "https://git.example.test/y.git", settings: {ETCD_BACKUP_BUCKET: etcd, ` +
		`ETCD_BACKUP_ENDPOINT: "https://s3.example.test:9000/"}}`)
	require.NoError(t, err)
	to, region, named := source.Snapshots()
	require.Equal(t, Bucket{Endpoint: "s3.example.test:9000", Name: "etcd"}, to)
	require.Empty(t, region)
	require.True(t, named)
	for gitops, key := range map[string]string{
		`{oci: {url: "https://registry.example.test/a/b"}}`: "gitops.oci.url",
		`{bucket: {name: b}}`:                               "gitops.bucket.endpoint",
		`{url: "https://github.com/a/b", githubApp: {id: 1, baseURL: "api.example.test"}}`: "gitops.githubApp.baseURL",
	} {
		_, err := of(gitops)
		require.ErrorContains(t, err, key)
	}
}
