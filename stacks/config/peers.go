package config

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/slipway-platform/slipway/cluster"
)

// Stacks returns the names of the stacks that have a file in the checkout, sorted.
func Stacks(tree fs.FS) ([]string, error) {
	if tree == nil {
		return nil, nil
	}
	files, err := fs.ReadDir(tree, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var stacks []string
	for _, file := range files {
		if name := fileForm.FindStringSubmatch(file.Name()); name != nil && !file.IsDir() {
			stacks = append(stacks, name[1])
		}
	}
	slices.Sort(stacks)
	return slices.Compact(stacks), err
}

// meet loads the files of the stacks that the stack file names, without their secrets and peers, and compares them with the stack. It reads
// whose RADOS namespace is the same, too.
func meet(c *cluster.Cluster, tree fs.FS, findings *cluster.Findings) {
	named := c.Named()
	others := make([]*cluster.Cluster, len(named))
	for i, other := range named {
		var err error
		switch others[i], err = loadPeer(tree, other.Stack); {
		case errors.Is(err, fs.ErrNotExist):
			remedy := "write Pulumi." + other.Stack + ".yaml, or name another stack"
			stacks, _ := Stacks(tree)
			stacks = slices.DeleteFunc(stacks, func(stack string) bool { return stack == c.Stack })
			if meant := cluster.Suggest(other.Stack, stacks); meant != "" {
				remedy = "did you mean " + meant + "? Otherwise write Pulumi." + other.Stack + ".yaml"
			}
			findings.Found(other.Path, remedy, "%s has no stack file beside this one", other.Stack)
		case err != nil:
			findings.Found(other.Path, "see all of them with: slipway check "+other.Stack,
				"%s has a stack file with problems: %v", other.Stack, first(err))
		}
	}
	c.Meet(others, findings)
	c.Storage.SameNamespace = sameNamespace(c, tree)
}

// sameNamespace returns the other stacks of the checkout with the same RADOS namespace of the same provider. A file with problems has none.
func sameNamespace(c *cluster.Cluster, tree fs.FS) (same []string) {
	if c.Storage.RadosNamespace == "" {
		return nil
	}
	stacks, _ := Stacks(tree)
	for _, stack := range stacks {
		if stack == c.Stack {
			continue
		}
		other, err := loadPeer(tree, stack)
		if err == nil && other.Storage.Provider == c.Storage.Provider && other.Storage.RadosNamespace == c.Storage.RadosNamespace {
			same = append(same, stack)
		}
	}
	return same
}

func loadPeer(tree fs.FS, stack string) (*cluster.Cluster, error) {
	path, text, err := ReadFile(tree, stack)
	if err != nil {
		return nil, err
	}
	source, err := parseIn(tree, path, text)
	if err != nil {
		return nil, err
	}
	return loadAlone(source)
}

// first returns the first of several problems.
func first(err error) error {
	if all := cluster.ProblemsOf(err); len(all) > 0 {
		return all[0]
	}
	return err
}
