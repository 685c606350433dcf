package check

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
)

const root = "../.."

// day is one on which Talos 1.14, Kubernetes 1.37 and Cilium 1.20 are the newest releases.
var day = time.Date(2026, time.November, 24, 12, 0, 0, 0, time.UTC)

// execute runs a command in a folder.
func execute(t *testing.T, c *cobra.Command, folder string, args ...string) (code int, out, problems string) {
	t.Helper()
	t.Chdir(folder)
	var stdout, stderr bytes.Buffer
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	code = command.Run(t.Context(), c, args)
	return code, stdout.String(), stderr.String()
}

// project returns the folder of a project like the repository.
func project(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, clusters.Project(folder, clusters.Root(t)))
	return folder
}

// checked checks stacks in a folder.
func checked(t *testing.T, folder string, args ...string) (code int, out, problems string) {
	t.Helper()
	return execute(t, newCommand("check", day, "v0.1.0"), folder, args...)
}

// handedOver hands over components of a stack in a folder.
func handedOver(t *testing.T, folder string, args ...string) (code int, out, problems string) {
	t.Helper()
	return execute(t, HandOver("handover-file"), folder, args...)
}

func TestConfigCheck_CompletesTheNamesOfStacks(t *testing.T) {
	folder := filepath.Dir(fixtures.Write(t, fixtures.Minimal, "home"))
	for _, c := range []*cobra.Command{newCommand("check", day, "v0.1.0"), HandOver("handover-file")} {
		_, out, problems := execute(t, c, folder, "__complete", "")
		assert.Equal(t, "home\n:0\n", out, problems)
	}
	_, out, _ := handedOver(t, folder, "__complete", "home", "")
	assert.Equal(t, ":4\n", out, "components are no stacks, nor files")
}

func TestConfigCheck_WrongUseIsExitCodeTwo(t *testing.T) {
	for _, args := range [][]string{{"--what"}, {"infra", "--explain=maybe"}} {
		code, _, problems := checked(t, t.TempDir(), args...)
		assert.Equal(t, unreadable, code, args)
		assert.NotEmpty(t, problems, args)
	}
	for _, args := range [][]string{{}, {"infra"}, {"--what"}} {
		code, _, problems := handedOver(t, t.TempDir(), args...)
		assert.Equal(t, unreadable, code, args)
		assert.NotEmpty(t, problems, args)
	}
}

func TestConfigCheck_AcceptsTheStackFilesOfTheRepository(t *testing.T) {
	code, out, problems := checked(t, project(t), "infra", "apps")
	assert.Equal(t, valid, code)
	assert.Empty(t, problems)
	assert.True(t, strings.HasPrefix(out, "Pulumi.infra.yaml: valid\n"), out)
	assert.Regexp(t, `  infra-cp-1 +controlplane  pve1  1111  BC:24:11:00:01:11  10\.25\.11\.11\n`, out)
	assert.Contains(t, out, "Pulumi.apps.yaml: valid\n")
	assert.Contains(t, out, "gitPassword is not in this file; set it with: pulumi config set --stack apps --secret slipway:gitPassword\n")
}

func TestConfigCheck_ShowsTheMACAddressThatFollowsFromTheNames(t *testing.T) {
	file := fixtures.Write(t, fixtures.Minimal, "home")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	without := regexp.MustCompile(` +mac: .*\n`).ReplaceAll(text, nil)
	require.NotEqual(t, text, without)
	require.NoError(t, os.WriteFile(file, without, 0o600))
	_, out, _ := checked(t, filepath.Dir(file))
	for _, machine := range clusters.Read(t, file).Machines() {
		assert.Contains(t, out, "  "+string(machine.MAC)+"  "+machine.Address.String()+"\n")
	}
	assert.Regexp(t, `\n  NODE +ROLE +HOST +VM +MAC +ADDRESS\n`, out)
}

func TestConfigCheck_NamesTheTokenOfProxmoxUnlessTheEnvironmentHasIt(t *testing.T) {
	const says = "proxmoxApiToken is not in this file; set it with: pulumi config set --stack infra --secret slipway:proxmoxApiToken\n"
	t.Setenv("PROXMOX_VE_API_TOKEN", "")
	_, out, _ := checked(t, project(t), "infra")
	assert.Contains(t, out, says)
	t.Setenv("PROXMOX_VE_API_TOKEN", "x")
	_, out, _ = checked(t, project(t), "infra")
	assert.NotContains(t, out, says)
}

func TestConfigCheck_FindsAStackFromAFolderBelow(t *testing.T) {
	code, out, _ := checked(t, filepath.Join(project(t), "docs"), "infra")
	assert.Equal(t, valid, code)
	assert.Contains(t, out, string(filepath.Separator)+"Pulumi.infra.yaml: valid\n")
}

func TestConfigCheck_FindsAStackWithEitherEnding(t *testing.T) {
	file := fixtures.Write(t, fixtures.Minimal, "home")
	require.NoError(t, os.Rename(file, strings.TrimSuffix(file, ".yaml")+".yml"))
	code, out, problems := checked(t, filepath.Dir(file), "home")
	assert.Equal(t, valid, code, problems)
	assert.Contains(t, out, "Pulumi.home.yml: valid\n")
}

func TestConfigCheck_NeedsNoPassphraseForEncryptedValues(t *testing.T) {
	code, out, problems := checked(t, filepath.Join(root, "tests", "clusters", "fixtures", "valid"), "everything.yaml")
	assert.Equal(t, valid, code, problems)
	assert.Contains(t, out, "192.168.0.11,fd25:11::11\n")
	assert.NotContains(t, out, "gitPassword", "it is set")
	assert.NotContains(t, out, "AAECAwQFBgcICQoL")
}

// write writes a file into the folder kubernetes beside a stack file.
func write(t *testing.T, stackFile, name, text string) {
	t.Helper()
	path := filepath.Join(filepath.Dir(stackFile), "kubernetes", name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestConfigCheck_FindsASettingThatTheTreeUsesAndNobodyDefines(t *testing.T) {
	file := fixtures.Write(t, fixtures.Minimal, "home")
	write(t, file, "clusters/home/web.yaml", "kind: ConfigMap\ndata:\n  name: ${CLUSTER_NAME}\n  vip: ${CLUSTER_IP}\n")
	code, _, problems := checked(t, filepath.Dir(file), "home")
	assert.Equal(t, invalid, code)
	assert.Equal(t, "kubernetes/clusters/home/web.yaml:4: ${CLUSTER_IP} is not defined, and Flux would write nothing in its place; "+
		"did you mean CLUSTER_ID?\n", problems)
}

func TestConfigCheck_ChecksPathAndSettingsByTheTree(t *testing.T) {
	file := fixtures.Write(t, fixtures.Minimal, "home")
	const warning = "Pulumi.home.yaml:33: warning: gitops.path: kubernetes/clusters/home is no folder of this checkout; "
	code, _, problems := checked(t, filepath.Dir(file), "home")
	assert.Equal(t, valid, code)
	assert.Equal(t, warning+"make it there, unless the cluster is applied from another repository\n", problems)

	write(t, file, "clusters/home/web.yaml", "kind: ConfigMap\n")
	write(t, file, "slipway-settings.yaml", "SIZE: {quantity: true, default: 1Gi}\n")
	text := strings.Replace(fixtures.Get(fixtures.Minimal).Text, "  slipway:gitops:\n", "  slipway:gitops:\n    settings: {SIZE: 20GB}\n", 1)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	code, out, problems := checked(t, filepath.Dir(file), "home")
	assert.Equal(t, invalid, code)
	assert.Empty(t, out)
	assert.Equal(t, "Pulumi.home.yaml:34: gitops.settings.SIZE: 20GB is no quantity of Kubernetes; write it like 1Gi\n"+
		"Pulumi.home.yaml: 1 problem\n", problems)

	write(t, file, "slipway-settings.yaml", "SIZE: {quantity: yes please}\n")
	code, _, problems = checked(t, filepath.Dir(file), "home")
	assert.Equal(t, invalid, code)
	assert.Contains(t, problems, "kubernetes/slipway-settings.yaml: ")
}

func TestConfigCheck_NamesAFolderThatAppliesAnotherClusterToo(t *testing.T) {
	home := fixtures.Write(t, fixtures.Minimal, "home")
	write(t, home, "clusters/home/web.yaml", "kind: ConfigMap\n")
	write(t, home, "clusters/other/web.yaml", "kind: ConfigMap\n")
	other := strings.Replace(fixtures.Peer(), "  slipway:mesh: {peers: [home, infra]}\n", "", 1)
	other = strings.Replace(other, "  slipway:gitops:\n", "  slipway:gitops:\n    path: kubernetes/clusters\n", 1)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(home), "Pulumi.other.yaml"), []byte(other), 0o600))
	code, _, problems := checked(t, filepath.Dir(home), "home", "other")
	assert.Equal(t, invalid, code)
	assert.Contains(t, problems, "gitops.path: kubernetes/clusters contains kubernetes/clusters/home, which another stack applies; "+
		"write the folder of this cluster alone\n")
}

func TestConfigCheck_PrintsEveryProblemWithItsLine(t *testing.T) {
	file := fixtures.Write(t, "many-faults", "home")
	code, out, problems := checked(t, filepath.Dir(file), "home")
	assert.Equal(t, invalid, code)
	assert.Empty(t, out)
	says := fixtures.Get("many-faults").Says
	for _, line := range says {
		assert.Contains(t, problems, ": "+line+"\n")
	}
	assert.Contains(t, problems, "Pulumi.home.yaml:3: cluster.name: Home is not the name of a cluster")
	assert.Contains(t, problems, "Pulumi.home.yaml:22: nodePools[0].nodes[0].host: pve2 is not among proxmox.nodes; did you mean pve1?\n")
	assert.Contains(t, problems, "Pulumi.home.yaml: gitops: is missing;", "a missing section has no line")
	assert.True(t, strings.HasSuffix(problems, fmt.Sprintf("Pulumi.home.yaml: %d problems\n", len(says))), problems)
}

func TestConfigCheck_ExplainsAFileByOneThatIsValid(t *testing.T) {
	file := fixtures.Write(t, fixtures.Minimal, "home")
	code, out, problems := checked(t, filepath.Dir(file), "--explain", "home")
	require.Equal(t, valid, code, problems)
	assert.Contains(t, out, "--- # Pulumi.home.yaml with all defaults, without secrets\nconfig:\n")
	assert.Contains(t, out, "    bridge: vmbr0\n")
	require.NoError(t, os.WriteFile(file, []byte(out), 0o600))
	code, again, problems := checked(t, filepath.Dir(file), "--explain", "home")
	require.Equal(t, valid, code, problems)
	assert.Equal(t, out, again)
}

func TestConfigCheck_WarnsOfWhatIsAcceptedAndShouldBeChanged(t *testing.T) {
	file := fixtures.Write(t, fixtures.Minimal, "home")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	text = append(text, "  slipway:secrets:\n    sealedSecrets: {version: 2.19.2}\n"+
		"    onepassword:\n      vaults: [infra]\n      operator:\n        version: 0.20.4\n"+
		"        values: {replicaCount: 2}\n"...)
	write(t, file, "clusters/home/web.yaml", "kind: ConfigMap\n")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	code, out, problems := checked(t, filepath.Dir(file), "home")
	assert.Equal(t, valid, code)
	assert.Contains(t, out, "Pulumi.home.yaml: valid\n")
	assert.Regexp(t, `^Pulumi.home.yaml:\d+: warning: secrets.onepassword.operator.version: 0.20.4 of External Secrets has been out .*\n`+
		`Pulumi.home.yaml:\d+: warning: secrets.sealedSecrets.version: 2.19.2 installs a controller that decrypts .*\n`+
		`Pulumi.home.yaml:\d+: warning: secrets.onepassword.operator.version: the chart 0.20.4 takes the images from .*\n`+
		`Pulumi.home.yaml:\d+: warning: secrets.onepassword.operator.values.replicaCount: 2 operators without leaderElect .*\n$`, problems)

	healthy := strings.NewReplacer("2.19.2", "2.19.3", "0.20.4", "2.9.0", "{replicaCount: 2}", "{replicaCount: 2, leaderElect: true}")
	text = []byte(healthy.Replace(string(text)))
	require.NoError(t, os.WriteFile(file, text, 0o600))
	_, _, problems = checked(t, filepath.Dir(file), "home")
	assert.Empty(t, problems)
}

func TestConfigCheck_PrintsNoWarningThatTheStackFileAccepts(t *testing.T) {
	file := fixtures.Write(t, fixtures.Minimal, "home")
	const accepted = "  slipway:accepted:\n    - {path: gitops.path, reason: the tree is in another repository}\n" +
		"    - {path: storage.role, reason: no longer true}\n"
	require.NoError(t, os.WriteFile(file, []byte(fixtures.Get(fixtures.Minimal).Text+accepted), 0o600))
	code, _, problems := checked(t, filepath.Dir(file), "home")
	assert.Equal(t, valid, code)
	assert.Equal(t, "Pulumi.home.yaml:37: warning: accepted[1].path: storage.role has no warning; remove the entry\n", problems)
}

func TestConfigCheck_ExitCodesDifferForInvalidAndUnreadableFiles(t *testing.T) {
	for _, absent := range [][]string{{"./absent.yaml"}, {"absent"}, {"--absent"}} {
		code, out, problems := checked(t, ".", absent...)
		assert.Equal(t, unreadable, code, absent)
		assert.NotEmpty(t, problems, absent)
		assert.Empty(t, out, absent)
	}
	code, out, _ := checked(t, project(t), "infra", "absent")
	assert.Equal(t, unreadable, code, "the highest exit code of all files")
	assert.Contains(t, out, "valid")

	code, _, problems := checked(t, filepath.Dir(fixtures.Write(t, "file-not-yaml", "home")), "./Pulumi.home.yaml")
	assert.Equal(t, invalid, code)
	assert.Contains(t, problems, "Pulumi.home.yaml: ")
}

func TestConfigCheck_ReadsNoDeviceAndNoPipe(t *testing.T) {
	file := fixtures.Write(t, fixtures.Minimal, "home")
	tree := filepath.Join(filepath.Dir(file), "kubernetes", "clusters", "home")
	require.NoError(t, os.MkdirAll(tree, 0o700))
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(tree, "endless.yaml")))
	code, _, problems := checked(t, filepath.Dir(file), "home", "/dev/zero")
	assert.Equal(t, unreadable, code)
	assert.Contains(t, problems, "kubernetes/clusters/home/endless.yaml: is no regular file; ")
	assert.Contains(t, problems, "/dev/zero: is no regular file; ")
}

func TestConfigCheck_ChecksAFileOnceHoweverItIsNamed(t *testing.T) {
	file := fixtures.Write(t, fixtures.Minimal, "home")
	code, out, problems := checked(t, filepath.Dir(file), "home", "./Pulumi.home.yaml", file)
	assert.Equal(t, valid, code, problems)
	assert.Equal(t, 1, strings.Count(out, ": valid\n"))
}

func TestConfigCheck_ChecksAllStackFilesWithoutAName(t *testing.T) {
	code, out, problems := checked(t, filepath.Join(project(t), "docs"))
	assert.Equal(t, valid, code, problems)
	assert.Contains(t, out, "Pulumi.infra.yaml: valid\n")
	assert.Contains(t, out, "Pulumi.apps.yaml: valid\n")

	code, _, problems = checked(t, t.TempDir())
	assert.Equal(t, unreadable, code)
	assert.Equal(t, "no Pulumi.STACK.yaml in this folder or one above; name a stack or its file\n", problems)
}

func TestConfigCheck_ComparesTheStacksThatItChecks(t *testing.T) {
	folder := filepath.Dir(fixtures.Write(t, fixtures.Minimal, "home"))
	text := fixtures.Get(fixtures.Minimal).Text
	require.NoError(t, os.WriteFile(filepath.Join(folder, "Pulumi.twin.yaml"), []byte(text), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "Pulumi.broken.yaml"), []byte("a: b\n"), 0o600))
	code, out, problems := checked(t, folder)
	assert.Equal(t, invalid, code)
	assert.Contains(t, out, "Pulumi.home.yaml: valid\n")
	assert.NotContains(t, out, "Pulumi.twin.yaml: valid\n")
	assert.Contains(t, problems, "Pulumi.broken.yaml:1: a: is not a key of a stack file")
	assert.Contains(t, problems, "Pulumi.twin.yaml:4: cluster.id: 1 is cluster.id of home; pick another\n")
	assert.Contains(t, problems, "Pulumi.twin.yaml:11: network.vip: 10.25.11.10 is network.vip of home; pick another\n")

	code, out, problems = checked(t, folder, "twin", "./Pulumi.twin.yaml")
	assert.Equal(t, valid, code, problems)
	assert.Equal(t, 1, strings.Count(out, "Pulumi.twin.yaml: valid\n"), "a file that is given twice is checked once")
}

func TestConfigCheck_AcceptsThreeClustersOfOneMesh(t *testing.T) {
	folder, stacks := clusters.Three(t, nil)
	code, out, problems := checked(t, folder)
	assert.Equal(t, valid, code, problems)
	for _, stack := range stacks {
		assert.Contains(t, out, "Pulumi."+stack+".yaml: valid\n")
	}
}

// A copy of a stack file in which only the name was changed, beside its original and another one.
func TestConfigCheck_NamesEverythingThatAThirdClusterMustHaveOfItsOwn(t *testing.T) {
	folder, _ := clusters.Three(t, func(string) string {
		text, err := os.ReadFile(clusters.Sample(t, "apps"))
		require.NoError(t, err)
		return string(text)
	})
	code, out, problems := checked(t, folder)
	assert.Equal(t, invalid, code)
	assert.NotContains(t, out, "Pulumi.edge.yaml: valid\n")
	for _, said := range []string{
		"cluster.id: 2 is cluster.id of apps; pick another",
		"cluster.name: apps is cluster.name of apps; pick another",
		"gitops.settings.DOMAIN: apps.home.arpa is gitops.settings.DOMAIN of apps; pick another",
		"network.vip: 10.25.12.10 is network.vip of apps; pick another",
		"network.loadBalancers.mesh: 10.25.12.100 is network.loadBalancers.mesh of apps; pick another",
		"network.loadBalancers.gateway: 10.25.12.120 is network.loadBalancers.gateway of apps; pick another",
		"nodePools[0].nodes[0].name: apps-cp-1 is nodePools[0].nodes[0].name of apps; pick another",
		"nodePools[0].nodes[0].mac: BC:24:11:00:02:11 is nodePools[0].nodes[0].mac of apps; pick another",
		"nodePools[0].nodes[0].address: 10.25.12.11 is nodePools[0].nodes[0].address of apps; pick another",
		"nodePools[1].nodes[2].vmId: 1223 is nodePools[1].nodes[2].vmId of apps; pick another",
		"network.nodeCIDR: 10.25.12.0/24 overlaps network.nodeCIDR 10.25.12.0/24 of apps; pick a disjoint range",
		"network.podCIDR: 10.246.0.0/16 overlaps network.podCIDR 10.246.0.0/16 of apps; pick a disjoint range",
		"network.serviceCIDR: 10.247.0.0/16 overlaps network.serviceCIDR 10.247.0.0/16 of apps; pick a disjoint range",
		"network.loadBalancers: 10.25.12.100 to 10.25.12.150 overlaps network.loadBalancers 10.25.12.100 to 10.25.12.150 of apps; " +
			"pick a disjoint range",
	} {
		assert.Contains(t, problems, ": "+said+"\n")
		assert.Equal(t, 1, strings.Count(problems, "Pulumi.edge.yaml:"+line(problems, said)), "once")
	}
	assert.Regexp(t, `Pulumi\.apps\.yaml:\d+: cluster\.id: 2 is cluster\.id of edge; pick another\n`, problems, "a peer's file says it, too")
}

// line returns the number of the line in a problem, and the problem.
func line(problems, said string) string {
	for _, one := range strings.Split(problems, "\n") {
		if rest, is := strings.CutPrefix(one, "Pulumi.edge.yaml:"); is && strings.HasSuffix(rest, said) {
			return rest
		}
	}
	return "no such line"
}

func TestConfigCheck_PrintsTheFirstOfVeryManyProblems(t *testing.T) {
	file := fixtures.Write(t, fixtures.Minimal, "home")
	text := fixtures.Get(fixtures.Minimal).Text
	for i := range 200 {
		text += fmt.Sprintf("  slipway:unknown%d: 0x%d\n", i, i)
	}
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	code, _, problems := checked(t, filepath.Dir(file), "home")
	assert.Equal(t, invalid, code)
	assert.Equal(t, 52, strings.Count(problems, "\n"))
	assert.Contains(t, problems,
		"Pulumi.home.yaml:35: unknown0: 0x0 is read as the number 0; did you mean 0? Put it in quotes if it is text\n")
	assert.True(t, strings.HasSuffix(problems, "Pulumi.home.yaml: and 150 more problems\nPulumi.home.yaml: 200 problems\n"), problems)
}

// What follows from the provider's file, such as settings of the tree, would be reported although this file has all keys.
func TestConfigCheck_PrintsOnlyTheFaultOfAProvidersFile(t *testing.T) {
	checkout := clusters.Root(t)
	apps, err := os.ReadFile(clusters.Sample(t, "apps"))
	require.NoError(t, err)
	infra, err := os.ReadFile(clusters.Sample(t, "infra"))
	require.NoError(t, err)
	for name, provider := range map[string]string{
		"infra has a stack file with problems":    strings.Replace(string(infra), "    name: infra\n", "    name: Infra\n", 1),
		"infra has no stack file beside this one": "",
	} {
		folder := t.TempDir()
		require.NoError(t, os.CopyFS(filepath.Join(folder, "kubernetes"), os.DirFS(filepath.Join(checkout, "kubernetes"))))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "Pulumi.apps.yaml"), apps, 0o600))
		if provider != "" {
			require.NoError(t, os.WriteFile(filepath.Join(folder, "Pulumi.infra.yaml"), []byte(provider), 0o600))
		}
		code, _, problems := checked(t, folder, "apps")
		assert.Equal(t, invalid, code)
		assert.Regexp(t, `^Pulumi.apps.yaml:\d+: mesh.peers\[0\]: `+name+`.*\nPulumi.apps.yaml: 1 problem\n$`, problems)
	}
}
