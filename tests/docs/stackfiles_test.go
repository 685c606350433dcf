package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
)

// wholeFiles returns the blocks of a document that are whole stack files.
func wholeFiles(name, text string) (whole []Block) {
	for _, block := range Blocks(name, text) {
		text := strings.Join(block.Lines, "\n")
		if block.Language == "yaml" && strings.HasPrefix(text, "config:") && strings.Contains(text, "slipway:nodePools:") {
			whole = append(whole, block)
		}
	}
	return whole
}

// load returns the cluster of a block. The stack is named after the cluster.
func load(t *testing.T, block Block) *cluster.Cluster {
	t.Helper()
	text := strings.Join(block.Lines, "\n") + "\n"
	var file struct {
		Config struct {
			Cluster struct{ Name string } `json:"slipway:cluster"`
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &file), "%s:%d", block.Document, block.Line)
	return clusters.Parse(t, "Pulumi."+file.Config.Cluster.Name+".yaml", text)
}

func TestStackFiles_InTheDocumentsAreAccepted(t *testing.T) {
	looked := map[string]int{}
	for name, text := range documents(t) {
		for _, block := range wholeFiles(name, text) {
			stack := load(t, block)
			looked[name]++
			assert.Empty(t, stack.Mesh.Peers, "%s:%d", name, block.Line)
		}
	}
	assert.Equal(t, 1, looked["README.md"])
}

func TestReadme_TheStackFileHasFifteenLines(t *testing.T) {
	whole := wholeFiles("README.md", documents(t)["README.md"])
	require.Len(t, whole, 1)
	assert.LessOrEqual(t, len(whole[0].Lines), 15)
}

// sum is a row of the table of what clusters need.
func sum(hosts map[string]bool, machines []cluster.Machine) string {
	cores, memory, disk := 0, 0, 0
	for _, machine := range machines {
		cores += machine.Cores
		memory += machine.Memory.MiB()
		disk += machine.Disk.GiB()
		for _, more := range machine.DataDisks {
			disk += more.Size.GiB()
		}
	}
	return fmt.Sprintf("| %d | %d | %d | %d GiB | %d GiB |\n", len(hosts), len(machines), cores, memory/1024, disk)
}

func TestReadme_AddsUpWhatTheStackFilesNeed(t *testing.T) {
	readme := documents(t)["README.md"]
	add := func(stacks ...*cluster.Cluster) string {
		hosts, machines := map[string]bool{}, []cluster.Machine(nil)
		for _, stack := range stacks {
			for _, machine := range stack.Machines() {
				hosts[machine.Host] = true
				machines = append(machines, machine)
			}
		}
		return sum(hosts, machines)
	}
	assert.Contains(t, readme, add(load(t, wholeFiles("README.md", readme)[0])), "the file above")
	samples := stackFiles(t)
	assert.Contains(t, readme, add(samples["Pulumi.infra.yaml"], samples["Pulumi.apps.yaml"]), "both clusters")
}

func TestQuickStart_ReachesTheFirstUpInTwoThousandWords(t *testing.T) {
	all, words := documents(t), 0
	for name, end := range map[string]string{"README.md": "\n## Documents", "docs/quickstart.md": "\n## 6. Look at it"} {
		before, _, found := strings.Cut(all[name], end)
		require.True(t, found, name)
		words += len(strings.Fields(comment.ReplaceAllString(before, "")))
	}
	assert.LessOrEqual(t, words, 2000)
	t.Logf("%d words", words)
}

func TestReadme_ListsEachDocument(t *testing.T) {
	readme := documents(t)["README.md"]
	looked := 0
	for name := range documents(t) {
		if filepath.Dir(name) == "docs" {
			looked++
			assert.Contains(t, readme, "]("+name+")", "README.md does not list it")
		}
	}
	assert.Greater(t, looked, 12)
}

func TestQuickStart_HasTheStackFileOfTheReadme(t *testing.T) {
	all := documents(t)
	whole := wholeFiles("docs/quickstart.md", all["docs/quickstart.md"])
	require.Len(t, whole, 1)
	assert.Equal(t, wholeFiles("README.md", all["README.md"])[0].Lines, whole[0].Lines)
	template, err := os.ReadFile(filepath.Join(repository, "templates", "cluster", "Pulumi.yaml"))
	require.NoError(t, err)
	assert.Contains(t, string(template), "    buildTarget: ", "the page replaces this line")
}

var privilege = regexp.MustCompile(`\b(?:VM|Datastore|SDN|Sys|Mapping|Pool)\.[A-Za-z.]+`)

// The lab's Proxmox VE refuses calls of a token without the privilege, so its list is what the calls need. That for the guest agent is only
// needed with an extension, and its name depends on the version.
func TestQuickStart_GivesTheTokenThePrivilegesThatTheLabRequires(t *testing.T) {
	const name = "docs/quickstart.md"
	var given []string
	for _, block := range Blocks(name, documents(t)[name]) {
		if text := strings.Join(block.Lines, "\n"); strings.Contains(text, "pveum role add") {
			given = append(given, privilege.FindAllString(text, -1)...)
		}
	}
	text, err := os.ReadFile(filepath.Join(repository, "lab", "proxmox", "permission.go"))
	require.NoError(t, err)
	_, list, found := strings.Cut(string(text), "var Privileges = ")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "\n}\n")
	assert.ElementsMatch(t, privilege.FindAllString(list, -1), given)
	assert.Greater(t, len(given), 15)
	_, agent, found := strings.Cut(string(text), "agentPrivilege() string {")
	require.True(t, found)
	agent, _, _ = strings.Cut(agent, "\n}\n")
	named := privilege.FindAllString(agent, -1)
	require.Len(t, named, 2)
	for _, one := range named {
		assert.Contains(t, documents(t)["docs/configuration.md"], "`"+one+"`")
	}
}

// Blocks of YAML that begin with a section of a stack file are added to the file of the README, which must be accepted with them.
func TestStackFiles_SectionsInPagesAreAccepted(t *testing.T) {
	all := documents(t)
	file := strings.Join(wholeFiles("README.md", all["README.md"])[0].Lines, "\n") + "\n"
	for _, name := range []string{"docs/air-gap.md", "docs/secure-boot.md", "docs/users.md"} {
		looked := 0
		for _, block := range Blocks(name, all[name]) {
			if block.Language == "yaml" && strings.HasPrefix(block.Lines[0], "  slipway:") {
				looked++
				clusters.Parse(t, "Pulumi.home.yaml", file+strings.Join(block.Lines, "\n")+"\n")
			}
		}
		assert.Positive(t, looked, name)
	}
}
