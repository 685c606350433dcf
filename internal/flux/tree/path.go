package tree

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
)

// CheckStack checks gitops.path and gitops.settings with a checkout. A folder that is missing is no problem, because Flux may sync from
// another repository: it is advice.
func CheckStack(repository fs.FS, stack *cluster.Cluster) (advice, problems cluster.Problems, err error) {
	const key = "gitops.path"
	folder := clean(stack.GitOps.Path)
	info, err := fs.Stat(repository, folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		remedy := "make it there, unless Flux syncs from another repository"
		if meant := cluster.Suggest(path.Base(folder), folders(repository, path.Dir(folder))); meant != "" {
			remedy = "if Flux syncs from this repository, did you mean " + path.Join(path.Dir(folder), meant) + "?"
		}
		return cluster.Problems{cluster.NewProblem(key, remedy, "%s is no folder of this checkout", folder)}, nil, nil
	case err != nil:
		return nil, nil, err
	case !info.IsDir():
		return nil, cluster.Problems{cluster.NewProblem(key, "write "+path.Dir(folder), "%s is a file, and Flux reads a folder", folder)}, nil
	}
	reader := newReader(repository)
	if reader.folder(folder, stack.Settings()) != nil {
		return nil, nil, nil // Check says it
	}
	problems, err = reader.checkSettings(stack)
	advice = slices.Concat(reader.checkNeeds(stack), reader.checkStorage(stack), reader.checkLiteral(stack.Settings()))
	return advice, problems, err
}

// folders returns the names of the folders in a folder; none if it does not exist.
func folders(repository fs.FS, at string) (names []string) {
	entries, _ := fs.ReadDir(repository, at)
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}

// Contains returns a problem if a cluster's folder contains the folder of another cluster, whose manifests it would then apply. A folder
// with a kustomization applies only what that names.
func Contains(repository fs.FS, own, other cluster.GitOps) *cluster.Problem {
	above, below := clean(own.Path), clean(other.Path)
	if !own.Enabled || !other.Enabled || above == below || above != "." && !strings.HasPrefix(below, above+"/") {
		return nil
	}
	if kustomizationIn(repository, above) != "" {
		return nil
	}
	return cluster.NewProblem("gitops.path", "write the folder of this cluster alone", "%s contains %s, which another stack applies",
		above, below)
}
