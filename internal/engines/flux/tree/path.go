package tree

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
)

// CheckStack checks a stack with the manifests of gitops.path. A folder that is missing is no problem, because Flux may sync from another
// repository: it is advice. The error is what Check returns, unless there are problems with the settings, which are its cause then.
func CheckStack(repository fs.FS, stack *cluster.Cluster) (advice, problems cluster.Problems, err error) {
	const key = "gitops.path"
	folder := clean(stack.GitOps.Path)
	info, err := fs.Stat(repository, folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		remedy := "make it there, unless the cluster is applied from another repository"
		if meant := cluster.Suggest(path.Base(folder), folders(repository, path.Dir(folder))); meant != "" {
			remedy = "if the cluster is applied from this repository, did you mean " + path.Join(path.Dir(folder), meant) + "?"
		}
		return cluster.Problems{cluster.NewProblem(key, remedy, "%s is no folder of this checkout", folder)}, nil, nil
	case err != nil:
		return nil, nil, err
	case !info.IsDir():
		of := path.Dir(folder)
		if slices.Contains(folders(repository, of), "clusters") { // which the folder would apply, all of them
			of = path.Join(of, "clusters", stack.Identity.Name)
		}
		return nil, cluster.Problems{cluster.NewProblem(key, "write "+of, "%s is a file, and a folder is applied", folder)}, nil
	}
	reader, settings := newReader(repository), stack.Settings()
	unread := reader.all(folder, settings) // possibly for a setting in a path
	problems, err = reader.checkSettings(stack, unread == nil)
	switch {
	case err != nil || len(problems) > 0:
		return nil, problems, err
	case unread != nil:
		return nil, nil, unread
	}
	typed, problems, err := reader.checkTexts(stack)
	if err != nil || len(problems) > 0 {
		return nil, problems, err
	}
	if !slices.ContainsFunc(reader.declared, declared.applies) {
		return nil, cluster.Problems{cluster.NewProblem(key, "put a manifest there, or write the folder that has some",
			"%s declares nothing, and a folder without manifests fails", folder)}, nil
	}
	if stack.GitOps.ByArgoCD() {
		advice = slices.Concat(reader.checkNeeds(stack), reader.checkPlainSecrets(), reader.checkKustomizations(), reader.checkApprover(stack),
			reader.checkClaims(stack), reader.checkOfFlux(), reader.checkOwned(stack, settings), reader.checkLiteral(settings), typed)
		return advice, nil, reader.variables(settings)
	}
	advice = slices.Concat(reader.checkNeeds(stack), reader.checkTenants(stack), reader.checkPlainSecrets(), reader.checkStorage(stack),
		reader.checkClaims(stack), reader.checkLayers(), reader.checkKustomizations(), reader.checkApprover(stack),
		reader.checkOwned(stack, settings), reader.checkLiteral(settings), typed)
	return advice, nil, reader.variables(settings)
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
