package newcluster

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cmd/command"
)

// asSomebody gives Git a name and an address, and no settings of this computer.
func asSomebody(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "x", "GIT_AUTHOR_EMAIL": "x@x",
		"GIT_COMMITTER_NAME": "x", "GIT_COMMITTER_EMAIL": "x@x",
	} {
		t.Setenv(name, value)
	}
}

// saidByNew runs the command, and returns what it prints.
func saidByNew(t *testing.T, args ...string) string {
	t.Helper()
	c := Command("v1.2.3")
	var stdout, stderr bytes.Buffer
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	require.Equal(t, command.Done, command.Run(t.Context(), c, args), stderr.String())
	return stdout.String()
}

// git returns what git prints in a folder.
func git(t *testing.T, folder string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", folder}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// complete are the flags for a stack file without examples.
var complete = []string{"home", "--proxmox", "pve.example.com", "--host", "pve", "--network", "10.1.2.0/24",
	"--git", "https://git.example.com/home.git", "--domain", "home.example.com"}

func TestNew_CommitsItsFilesAndSaysWhatIsLeftToDo(t *testing.T) {
	asSomebody(t)
	t.Chdir(t.TempDir())
	assert.Equal(t, `home: written, and committed to a new Git repository
Next, one command after the other, because Pulumi asks:
  cd home
  git push --set-upstream https://git.example.com/home.git main
  pulumi config set --stack home --secret slipway:proxmoxApiToken
  pulumi config set --stack home --secret slipway:gitPassword
  pulumi up --stack home
`+whatPulumiAsks+"home/README.md says more.\n", saidByNew(t, complete...))
	assert.Empty(t, git(t, "home", "status", "--porcelain"))
	assert.Equal(t, "main Declare the cluster\n", git(t, "home", "log", "--format=%D %s")[len("HEAD -> "):])
	want := files(t, "home")
	committed := strings.Fields(git(t, "home", "ls-tree", "-r", "--name-only", "HEAD"))
	assert.Len(t, committed, len(want))
	for _, name := range committed {
		assert.Contains(t, want, strings.Trim(name, `"`))
	}

	public := saidByNew(t, append(slices.Replace(slices.Clone(complete), 0, 1, "bonn"), "--public")...)
	assert.NotContains(t, public, "gitPassword")
}

func TestNew_SaysWhatIsStillAnExample(t *testing.T) {
	asSomebody(t)
	t.Chdir(t.TempDir())
	assert.Equal(t, `home: written, and committed to a new Git repository
Without --domain, applications get names below home.home.arpa
Edit Pulumi.home.yaml: without --proxmox, it has the example https://pve.home.arpa:8006/
Edit Pulumi.home.yaml: without --network, it has the example 192.168.1.0/24
Next, one command after the other, because Pulumi asks:
  cd home
  slipway check
  git add .
  git commit --message "Complete the cluster"
  git push --set-upstream https://git.example.com/home.git main
  pulumi config set --stack home --secret slipway:proxmoxApiToken
  pulumi config set --stack home --secret slipway:gitPassword
  pulumi up --stack home
`+whatPulumiAsks+"home/README.md says more.\n", saidByNew(t, "home", "--host", "pve", "--git", "https://git.example.com/home.git"))
}

func TestNew_FromACheckoutSaysWhatGoNeeds(t *testing.T) {
	asSomebody(t)
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	assert.Contains(t, saidByNew(t, append(complete, "--source", root)...),
		"  cd home\n  go mod tidy\n  go run . check\n  git add .\n  git commit --message \"Complete the cluster\"\n  git push ")
}

func TestNew_CommitsNothingInAnotherRepository(t *testing.T) {
	asSomebody(t)
	t.Chdir(t.TempDir())
	git(t, ".", "init", "--quiet")
	require.NoError(t, os.Mkdir("clusters", 0o750))
	t.Chdir("clusters")
	top, err := filepath.EvalSymlinks(filepath.Dir(os.Getenv("PWD")))
	require.NoError(t, err)
	said := saidByNew(t, complete...)
	assert.Contains(t, said, "home: written\nNothing is committed: home is in the Git repository "+top+". Commit it there and push; "+
		"gitops.path is from the root of that repository. Or run git init in it\nNext")
	assert.Contains(t, said, "  cd home\n  pulumi config set ")
	assert.NoDirExists(t, "home/.git")
	assert.Equal(t, "?? clusters/\n", git(t, ".", "status", "--porcelain"))

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(filepath.Join(top, "clusters"), link))
	t.Chdir(link)
	assert.Contains(t, saidByNew(t, slices.Replace(slices.Clone(complete), 0, 1, "bonn")...), "bonn is in the Git repository "+top+".")
}

func TestNew_ThatCannotCommitSaysWhyAndWhatIsLeft(t *testing.T) {
	asSomebody(t)
	t.Chdir(t.TempDir())
	for name, value := range map[string]string{
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.useConfigOnly", "GIT_CONFIG_VALUE_0": "true",
	} {
		t.Setenv(name, value)
	}
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"} {
		t.Setenv(name, "") // to have it restored
		require.NoError(t, os.Unsetenv(name))
	}
	said := saidByNew(t, complete...)
	assert.Contains(t, said, "home: written\nNothing is committed, because of git commit:\n  ")
	assert.Contains(t, said, "  cd home\n  git add .\n  git commit --message \"Declare the cluster\"\n  git push ")
	assert.Contains(t, git(t, "home", "status", "--porcelain"), "A  Pulumi.home.yaml\n")

	t.Setenv("PATH", t.TempDir())
	said = saidByNew(t, slices.Replace(slices.Clone(complete), 0, 1, "bonn")...)
	assert.Contains(t, said, "bonn: written\nNothing is committed, because of git init:\n  ")
	assert.Contains(t, said, "  cd bonn\n  git init --initial-branch main\n  git add .\n"+
		"  git commit --message \"Declare the cluster\"\n  git push ")
	assert.NoDirExists(t, "bonn/.git")
}

// Git sets such variables for its hooks.
func TestNew_LeavesARepositoryInTheEnvironmentAlone(t *testing.T) {
	asSomebody(t)
	t.Chdir(t.TempDir())
	other := t.TempDir()
	git(t, other, "init", "--quiet")
	t.Setenv("GIT_DIR", filepath.Join(other, ".git"))
	t.Setenv("GIT_WORK_TREE", other)
	t.Setenv("GIT_INDEX_FILE", filepath.Join(other, ".git", "index"))
	assert.Contains(t, saidByNew(t, complete...), "home: written, and committed to a new Git repository\n")
	assert.DirExists(t, "home/.git")
	assert.NoFileExists(t, filepath.Join(other, ".git", "index"))
}
