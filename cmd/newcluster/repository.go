package newcluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// firstCommands make a Git repository of a new folder, and commit its files.
var firstCommands = [][]string{
	{"init", "--initial-branch", "main"}, {"add", "."}, {"commit", "--message", "Declare the cluster"},
}

// commit is what became of the files of a new folder in Git.
type commit struct {
	inside  string     // root of a repository that has the folder in it, so that nothing is done; "" means none
	left    [][]string // those of firstCommands that are to be run, again or for the first time; files may still be edited
	failed  string     // the one that failed; "" means none
	problem string     // why, in Git's words
}

// commitAll makes a Git repository of a new folder, and commits its files, unless the folder is in a repository already.
func commitAll(ctx context.Context, folder string) (commit, error) {
	inside, err := repositoryAbove(folder)
	if err != nil || inside != "" {
		return commit{inside: inside}, err
	}
	for i, args := range firstCommands {
		git := exec.CommandContext(ctx, "git", append([]string{"-C", folder}, args...)...)
		git.Env = slices.DeleteFunc(os.Environ(), namesRepository)
		if out, err := git.CombinedOutput(); err != nil {
			said := strings.TrimSpace(string(out))
			if said == "" {
				said = err.Error()
			}
			left := firstCommands[min(i, 1):]
			return commit{left: left, failed: args[0], problem: said}, nil // the files are written: the user is told
		}
	}
	return commit{}, nil
}

// repositoryAbove returns the nearest folder above a folder that is a Git repository; "" means none. It asks the file system, because Git
// answers nothing about a repository of another user.
func repositoryAbove(folder string) (string, error) {
	at, err := filepath.Abs(folder)
	if err == nil {
		at, err = filepath.EvalSymlinks(at)
	}
	if err != nil {
		return "", err
	}
	for at != filepath.Dir(at) {
		at = filepath.Dir(at)
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at, nil
		}
	}
	return "", nil
}

// namesRepository reports whether a variable of the environment makes Git use another repository than that of its folder.
func namesRepository(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return slices.Contains([]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"}, name)
}

// told says what was done, after "NAME: written".
func (c commit) told(name string) string {
	switch {
	case c.inside != "":
		return fmt.Sprintf("\nNothing is committed: %s is in the Git repository %s. Commit it there and push; gitops.path is from the root "+
			"of that repository. Or run git init in it\n", name, c.inside)
	case c.failed != "":
		return fmt.Sprintf("\nNothing is committed, because of git %s:\n  %s\n", c.failed, strings.ReplaceAll(c.problem, "\n", "\n  "))
	}
	return ", and committed to a new Git repository\n"
}

// next are the commands until the folder is pushed. edited means that files are still to be changed.
func (c commit) next(edited bool, url string) (lines []string) {
	left := c.left
	switch {
	case c.inside != "":
		return nil
	case len(left) == 0 && edited:
		left = [][]string{{"add", "."}, {"commit", "--message", "Complete the cluster"}}
	}
	for _, args := range append(slices.Clone(left), []string{"push", "--set-upstream", url, "main"}) {
		line := "git"
		for _, arg := range args {
			if strings.Contains(arg, " ") {
				arg = `"` + arg + `"`
			}
			line += " " + arg
		}
		lines = append(lines, line)
	}
	return lines
}
