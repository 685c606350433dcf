package newcluster

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cmd/check"
	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/stacks/config"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/docs"
	"github.com/slipway-platform/slipway/tests/golden"
)

// generated is the folder that `pulumi new` reads.
const generated = "../../templates/cluster"

// files returns the files of a folder with their texts, without those of Git.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err == nil && entry.Name() == ".git":
			return fs.SkipDir
		case err != nil || entry.IsDir():
			return err
		}
		text, err := os.ReadFile(filepath.Join(folder, path))
		found[path] = string(text)
		return err
	}))
	return found
}

func TestTemplate_OfPulumiIsThatOfTheCommand(t *testing.T) {
	want := map[string]string{}
	require.NoError(t, eachFile(func(name string, text []byte) error {
		want[name] = string(text)
		return nil
	}))
	if *golden.Update {
		require.NoError(t, os.RemoveAll(generated))
		for name, text := range want {
			path := filepath.Join(generated, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
	}
	assert.Equal(t, want, files(t, generated), "run make golden")
	assert.LessOrEqual(t, len(want), 25)
	for _, one := range answers {
		assert.Contains(t, want["Pulumi.${PROJECT}.yaml"], one.replaces, "the flag --%s has nothing to replace", one.name)
	}
}

func TestTemplate_IsReadByPulumiAndAsksLittle(t *testing.T) {
	found, err := workspace.LoadTemplate(generated)
	require.NoError(t, err)
	assert.NotEmpty(t, found.Description)
	assert.Contains(t, found.Quickstart, "such as dev", "Pulumi proposes this name, and prints this text afterwards")
	assert.Contains(t, files(t, generated)["README.md"], "\n3. \\* `pulumi stack init ${PROJECT}`. The stack must have the name of its file.")
	assert.LessOrEqual(t, len(found.Config), 7)
	for key, one := range found.Config {
		_, known := strings.CutPrefix(key, config.Namespace+":")
		assert.True(t, known && one.Secret, key)
		assert.Contains(t, config.Keys(), key)
	}
}

// newRepository runs the command in a new folder.
func newRepository(t *testing.T, args ...string) (code int, folder, problems string) {
	t.Helper()
	t.Chdir(t.TempDir())
	code, problems = runNew(t, args...)
	return code, args[0], problems
}

// runNew runs the command.
func runNew(t *testing.T, args ...string) (code int, problems string) {
	t.Helper()
	c := Command("(devel)")
	var stdout, stderr bytes.Buffer
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	code = command.Run(t.Context(), c, args)
	return code, stderr.String()
}

// byPulumi returns what `pulumi new` writes, without its questions.
func byPulumi(t *testing.T, project string) string {
	t.Helper()
	source, err := filepath.Abs(generated)
	require.NoError(t, err)
	folder := filepath.Join(t.TempDir(), project)
	require.NoError(t, os.Mkdir(folder, 0o750))
	require.NoError(t, workspace.CopyTemplateFiles(source, folder, true, project, "The cluster "+project))
	return folder
}

func TestNew_WritesWhatPulumiWrites(t *testing.T) {
	want := files(t, byPulumi(t, "home"))
	for name, text := range want {
		if strings.HasSuffix(name, ".yaml") {
			want[name] = strings.ReplaceAll(text, "home\n\n", "home\n") // Pulumi ends what it writes into YAML with a new line
		}
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	code, folder, problems := newRepository(t, "home", "--source", root, "--domain", "")
	require.Equal(t, command.Done, code, problems)
	var found bool
	want["Pulumi.yaml"], _, found = strings.Cut(want["Pulumi.yaml"], "template:\n")
	assert.True(t, found, "Pulumi leaves it out, too")
	made := files(t, folder)
	made["go.mod"], _, _ = strings.Cut(made["go.mod"], "\nreplace ")
	assert.Equal(t, want, made)
	code, problems = runNew(t, "bonn", "--domain", "")
	require.Equal(t, command.Done, code, problems)
	project := files(t, "bonn")
	assert.Contains(t, project["Pulumi.yaml"], "    binary: slipway ", "who has the binary compiles nothing")
	assert.NotContains(t, project["Pulumi.yaml"]+project["README.md"]+project["Pulumi.bonn.yaml"], "go run")
	assert.NotContains(t, project["README.md"], "\\*", "nothing was done already")
	assert.NotContains(t, project["README.md"], "pulumi new")
	assert.Contains(t, project["README.md"], "`pulumi stack init bonn`, or let the next command make it\n")
	assert.Contains(t, project["README.md"], needsNone)
	assert.Equal(t, want[".github/workflows/check.yaml"], project[".github/workflows/check.yaml"])
	assert.LessOrEqual(t, strings.Count(want["Pulumi.home.yaml"], "\n"), 15)
}

func TestNew_TheStackFileIsAccepted(t *testing.T) {
	folder := byPulumi(t, "home")
	stack := clusters.Read(t, filepath.Join(folder, "Pulumi.home.yaml"))
	assert.Equal(t, "home", stack.Identity.Name)
	t.Chdir(folder)
	assert.Zero(t, command.Run(t.Context(), check.Command("check"), nil))
}

func TestNew_TheStackFileIsAcceptedWithTheAnswers(t *testing.T) {
	code, folder, problems := newRepository(t, "berlin", "--proxmox", "https://pve.example.com:8006/", "--host", "alpha",
		"--network", "10.1.2.0/24", "--git", "https://git.example.com/ops/berlin.git")
	require.Equal(t, command.Done, code, problems)
	stack := clusters.Read(t, filepath.Join(folder, "Pulumi.berlin.yaml"))
	assert.Equal(t, "berlin", stack.Identity.Name)
	assert.Equal(t, "https://pve.example.com:8006/", stack.Proxmox.Endpoint)
	assert.Equal(t, "https://git.example.com/ops/berlin.git", stack.GitOps.URL)
	machines := stack.Machines()
	require.Len(t, machines, 1)
	assert.Equal(t, "alpha", machines[0].Host)
	assert.Equal(t, "10.1.2.231", machines[0].Address.String())
	assert.Equal(t, "10.1.2.1", stack.Network.Gateway.String())
	assert.DirExists(t, filepath.Join(folder, filepath.FromSlash(stack.GitOps.Path)))
}

// The machines of two clusters in one network must not have one MAC address.
func TestNew_EachClusterHasMACAddressesOfItsOwn(t *testing.T) {
	berlin := clusters.Read(t, filepath.Join(byPulumi(t, "berlin"), "Pulumi.berlin.yaml")).Machines()[0]
	bonn := clusters.Read(t, filepath.Join(byPulumi(t, "bonn"), "Pulumi.bonn.yaml")).Machines()[0]
	assert.Equal(t, "berlin-control-1", berlin.Name)
	assert.NotEqual(t, berlin.MAC, bonn.MAC)
	assert.NotEqual(t, berlin.Name, bonn.Name)
}

func TestNew_RefusesAFolderThatExistsAndWrongAnswers(t *testing.T) {
	for _, wrong := range [][]string{
		{"Home"}, {"../home"}, {"home", "--network", "10.0.0.0/8"}, {"home", "--network", "300.0.0.0/24"},
		{"home", "--proxmox", "http://pve1"}, {"home", "--domain", "home"}, {"home", "--domain", "Home.example.com"},
		{"home", "--proxmox", "https://root:secret@pve1:8006/"}, {"home", "--git", "https://me:secret@git.example.com/x"},
		{"home", "--host", "pve 1"}, {"home", "--source", "nowhere"}, {"home", "--git", "x"}, {"home", "more"}, {"home", "--nett", "x"},
		{"--git", "x"},
	} {
		code, folder, problems := newRepository(t, wrong...)
		assert.Equal(t, command.Misuse, code, wrong)
		assert.NotEmpty(t, problems, wrong)
		assert.NoDirExists(t, folder)
	}
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("home", 0o750))
	code, problems := runNew(t, "home")
	assert.Equal(t, command.Failed, code)
	assert.Contains(t, problems, "home: exists already; remove it")
	assert.Empty(t, files(t, "home"))
}

func TestNew_InTheFolderOfAnotherClusterReadsNothingOfThat(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, writeFile(filepath.FromSlash("kubernetes/cluster/platform/cilium.yaml"), "kind: HelmRelease\n"))
	code, problems := runNew(t, "bonn")
	assert.Equal(t, command.Done, code, problems)
}

// The quick start shows what its command writes.
func TestQuickStart_ShowsTheStackFileThatItsCommandWrites(t *testing.T) {
	const name = "../../docs/quickstart.md"
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var line string
	var shown []string
	for _, block := range docs.Blocks(name, string(text)) {
		switch {
		case block.Language == "yaml" && block.Lines[0] == "config:":
			shown = append(shown, strings.Join(block.Lines, "\n")+"\n")
		case block.Language == "sh" && strings.HasPrefix(block.Lines[0], "slipway new home "):
			line = strings.ReplaceAll(strings.Join(block.Lines, " "), "\\ ", "")
		}
	}
	require.Len(t, shown, 1)
	code, folder, problems := newRepository(t, strings.Fields(line)[2:]...)
	require.Equal(t, command.Done, code, problems)
	_, written, found := strings.Cut(files(t, folder)["Pulumi.home.yaml"], "\n")
	require.True(t, found, "the first line is a comment")
	assert.Equal(t, shown[0], written)
}

// The second commit is that of a user who has followed the quick start, in which other commands write these files.
func TestQuickStart_WhatIsPushedHoldsNoCredentials(t *testing.T) {
	asSomebody(t)
	_, folder, _ := newRepository(t, "home", "--domain", "")
	for _, secret := range []string{"home.kubeconfig", "pve-root-ca.pem"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, secret), []byte("secret"), 0o600))
	}
	git(t, ".", "init", "--quiet", "--bare", "remote")
	git(t, folder, "add", ".")
	git(t, folder, "commit", "--quiet", "--allow-empty", "--message", "Later")
	git(t, folder, "push", "--quiet", "../remote", "main")
	pushed := strings.Fields(git(t, "remote", "ls-tree", "-r", "--name-only", "main"))
	assert.Len(t, pushed, 10)
	assert.Subset(t, pushed, []string{"Pulumi.home.yaml", "main.go", "kubernetes/cluster/kustomization.yaml", ".github/workflows/check.yaml"})
}

func TestNew_AHostIsCompletedToItsURL(t *testing.T) {
	for given, want := range map[string]string{
		"192.168.1.5": "https://192.168.1.5:8006/", "pve.lan": "https://pve.lan:8006/", "pve.lan:443": "https://pve.lan:443/",
		"https://pve.example.com": "https://pve.example.com",
	} {
		assert.Equal(t, want, endpoint(given))
	}
}

// runIn runs another command than new in the folder of a repository.
func runIn(t *testing.T, folder string, c *cobra.Command, args ...string) (code int, out, problems string) {
	t.Helper()
	t.Chdir(folder)
	var stdout, stderr bytes.Buffer
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	code = command.Run(t.Context(), c, args)
	return code, stdout.String(), stderr.String()
}

func TestNew_RequiresTheVersionOfTheBinaryOrTheCheckout(t *testing.T) {
	const text = "module home\n\nrequire github.com/slipway-platform/slipway v0.1.0\n"
	for version, want := range map[string]string{
		"v1.2.3": "v1.2.3", "v1.2.4-0.20260101000000-0123456789ab": "v1.2.4-0.20260101000000-0123456789ab",
		"(devel)": "v0.1.0", "v1.2.4-0.20260101000000-0123456789ab+dirty": "v0.1.0",
	} {
		made, err := moduleFile(text, version, "")
		require.NoError(t, err)
		assert.Equal(t, "module home\n\nrequire github.com/slipway-platform/slipway "+want+"\n", made)
	}
	made, err := moduleFile(text, "(devel)", "../..")
	require.NoError(t, err)
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	assert.Equal(t, text+"\nreplace github.com/slipway-platform/slipway => "+root+"\n", made)
	_, err = moduleFile(text, "(devel)", ".")
	assert.EqualError(t, err, "--source: . is no checkout of Slipway; write the folder that has its go.mod")
}

func TestNew_TheReadmeSaysWhatToDoInTheOrderInWhichItWorks(t *testing.T) {
	readme := files(t, byPulumi(t, "home"))["README.md"]
	for _, step := range []string{
		"git init", "pulumi login", "pulumi stack init home", "slipway:proxmoxApiToken", "slipway:gitPassword", "public: true", "go run . check",
		"push it", "pulumi up --stack home", "kubeconfig",
	} {
		_, after, found := strings.Cut(readme, step)
		require.True(t, found, "%s stands nowhere, or too early", step)
		readme = after
	}
}

// Without gitops.public, a repository without a password is refused.
func TestTemplate_AsksForNothingThatAPublicRepositoryStillNeeds(t *testing.T) {
	found, err := workspace.LoadTemplate(generated)
	require.NoError(t, err)
	assert.Contains(t, found.Config["slipway:gitPassword"].Description, "public: true in slipway:gitops")
}

// The module is this checkout, because the version in go.mod may have no release yet.
func TestNew_TheProgramCompilesInAModuleOfItsOwn(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	code, folder, problems := newRepository(t, "home", "--source", root)
	require.Equal(t, command.Done, code, problems)
	own, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	require.NoError(t, err)
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	_, requires, _ := strings.Cut(string(module), "\n\nrequire (")
	text := string(own) + "\nrequire (" + requires + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte(text), 0o600))
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "go.sum"), sums, 0o600))
	for _, args := range [][]string{{"vet", "."}, {"list", "-deps", "github.com/slipway-platform/slipway/cmd/slipway-probe"}} {
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir = folder
		out, err := command.CombinedOutput()
		require.NoError(t, err, "go %s: %s", strings.Join(args, " "), out)
	}
}
