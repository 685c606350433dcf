package newcluster

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/internal/engines/flux/tree"
	"github.com/slipway-platform/slipway/kubernetes"
	"github.com/slipway-platform/slipway/stacks/config"
)

const (
	folder = "kubernetes"     // of a repository
	areas  = "infrastructure" // below it

	list = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ../infrastructure/networking
  - ../infrastructure/security
  - podinfo.yaml
`
)

// addGateway adds the manifests of a gateway, the example podinfo behind it, and the domain of its name. Keys are files of the repository:
// the default, 1Password, is an account that a newcomer does not have.
func addGateway(files map[string]string, stack, domain, version string) error {
	settings, err := tree.Settings(kubernetes.Files, "clusters")
	if err != nil {
		return err
	}
	if !regexp.MustCompile("^(?:" + settings["DOMAIN"].Pattern + ")$").MatchString(domain) {
		return fmt.Errorf("--domain: %s is not a domain in lower case; write it like home.example.com", domain)
	}
	const own, end = folder + "/cluster/", "path: kubernetes/cluster}"
	files[stack] = strings.Replace(files[stack], end, "path: kubernetes/cluster, settings: {DOMAIN: "+domain+", KEYS: git}}", 1)
	ours, err := ofAreas("networking", "security")
	if err != nil {
		return err
	}
	if files[tree.WrittenFile], err = record(ours, version); err != nil {
		return err
	}
	app, err := below("apps/podinfo")
	if err != nil {
		return err
	}
	layer, err := fs.ReadFile(kubernetes.Files, "clusters/apps/workloads/podinfo.yaml")
	if err != nil {
		return err
	}
	maps.Copy(files, ours)
	maps.Copy(files, app)
	delete(files, own+"apps.yaml")
	files[own+"kustomization.yaml"], files[own+"podinfo.yaml"] = list, string(layer)
	return nil
}

const doesManifests = `Writes manifests of Slipway into the folder kubernetes of this project: those of the areas, and anew those of the
areas that are there already. A stack with gitops.engine: argocd gets their Applications, too. A file that you have
changed is kept, and named. With --overwrite, it is written as well: commit first, and look at git diff afterwards.
Nothing is removed.`

// Manifests returns the command that writes and updates manifests. version is the binary's.
func Manifests(version string) *cobra.Command {
	c := &cobra.Command{
		Use: "manifests [AREA...]", Short: "Write or update the manifests of areas", Long: doesManifests, ValidArgs: areaNames(),
	}
	overwrite := c.Flags().Bool("overwrite", false, "also write files that you have changed")
	c.RunE = func(c *cobra.Command, args []string) error {
		wanted, err := wantedAreas(args)
		if err != nil {
			return command.Wrong(err)
		}
		listed := areas // where the Kustomizations or Applications of an area are
		files, err := ofAreas(wanted...)
		if err == nil && byArgoCD() {
			listed, err = "argocd", addApplications(files, wanted)
		}
		toList := slices.DeleteFunc(slices.Clone(wanted), func(one string) bool { return !isNew(files, listed, one) })
		if err == nil {
			err = bring(files, version, *overwrite, c.OutOrStdout())
		}
		if err != nil {
			return err
		}
		for _, one := range toList {
			_, _ = fmt.Fprintf(c.OutOrStdout(), "Next: list ../%s/%s in the kustomization.yaml of the cluster's folder\n", listed, one)
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s, as in this version\n", filepath.Join(folder, areas), strings.Join(wanted, ", "))
		return err
	}
	return c
}

// isNew reports whether an area has something to list that is not in the repository yet.
func isNew(files map[string]string, listed, area string) bool {
	name := path.Join(folder, listed, area, "kustomization.yaml")
	_, err := os.Stat(filepath.FromSlash(name))
	return files[name] != "" && errors.Is(err, fs.ErrNotExist)
}

const howToMerge = "To merge: commit, run the command again with --overwrite, and put your lines back with git diff.\n"

// bring writes the files that are not as in this version. A file that is not as the command has written it either is the user's, and stays.
func bring(files map[string]string, version string, overwrite bool, out io.Writer) error {
	before, err := tree.ReadWritten(os.DirFS("."))
	if err != nil {
		before = tree.Written{} // the file is written anew
	}
	var lines strings.Builder
	both := false
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.FromSlash(name)
		old, err := os.ReadFile(path)
		known := before.Files[name]
		switch isNew := errors.Is(err, fs.ErrNotExist); {
		case err != nil && !isNew:
			return err
		case !isNew && string(old) == files[name]:
			continue
		case !isNew && !overwrite && sum(string(old)) != known:
			lines.WriteString(path + ": kept, with your changes")
			if sum(files[name]) != known {
				both = true
				lines.WriteString("; this version has another text")
			}
			lines.WriteString("\n")
			continue
		case !isNew:
			lines.WriteString(path + ": changed\n")
		}
		if err := writeFile(path, files[name]); err != nil {
			return err
		}
	}
	if both {
		lines.WriteString(howToMerge)
	}
	text, err := record(files, version)
	if err == nil {
		err = writeFile(filepath.FromSlash(tree.WrittenFile), text)
	}
	if err == nil {
		_, err = io.WriteString(out, lines.String())
	}
	return err
}

// record returns the text of the file that says what is written.
func record(files map[string]string, version string) (string, error) {
	written := tree.Written{Version: tree.Release(version), Files: map[string]string{}}
	for name, text := range files {
		written.Files[name] = sum(text)
	}
	text, err := yaml.Marshal(written)
	return "# What `slipway manifests` has written. Commit this file, and leave it as it is.\n" + string(text), err
}

func sum(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// byArgoCD reports whether a stack file of this folder says so.
func byArgoCD() bool {
	paths, _ := filepath.Glob("Pulumi.*.y*ml")
	return slices.ContainsFunc(paths, func(path string) bool {
		var file struct {
			Config struct {
				GitOps struct{ Engine string } `yaml:"slipway:gitops"`
			}
		}
		text, err := config.ReadText(path)
		return err == nil && yaml.Unmarshal(text, &file) == nil && file.Config.GitOps.Engine == string(cluster.EngineArgoCD)
	})
}

// addApplications adds the Applications of areas, and what all of them have in common.
func addApplications(files map[string]string, wanted []string) error {
	for _, one := range append([]string{"application"}, wanted...) {
		found, err := below(path.Join("argocd", one))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // an area may be of Flux alone
			return err
		}
		maps.Copy(files, found)
	}
	return nil
}

// areaNames are the areas of Slipway's tree.
func areaNames() (names []string) {
	entries, _ := fs.ReadDir(kubernetes.Files, areas)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// wantedAreas are the named areas and those that the project in this folder has.
func wantedAreas(named []string) (wanted []string, err error) {
	if _, err := os.Stat("Pulumi.yaml"); err != nil {
		return nil, errors.New("this folder has no Pulumi.yaml; run the command in the folder of a cluster's repository")
	}
	known := areaNames()
	for _, one := range named {
		if !slices.Contains(known, one) {
			return nil, fmt.Errorf("%s: is not an area; write %s", one, strings.Join(known, ", "))
		}
	}
	for _, one := range known {
		_, err := os.Stat(filepath.Join(folder, areas, one))
		if err == nil || slices.Contains(named, one) {
			wanted = append(wanted, one)
		}
	}
	if len(wanted) == 0 {
		return nil, fmt.Errorf("this project has no area yet; write which it should have: %s", strings.Join(known, ", "))
	}
	return wanted, nil
}

// ofAreas returns the files of areas, and those that all areas use, by their names in a repository.
func ofAreas(names ...string) (map[string]string, error) {
	from := []string{"components", tree.SettingsFile}
	for _, name := range names {
		from = append(from, path.Join(areas, name))
	}
	return below(from...)
}

// below returns files of Slipway's tree and those in folders of it, by their names in a repository.
func below(from ...string) (map[string]string, error) {
	files := map[string]string{}
	for _, one := range from {
		if err := fs.WalkDir(kubernetes.Files, one, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := fs.ReadFile(kubernetes.Files, name)
			files[path.Join(folder, name)] = string(text)
			return err
		}); err != nil {
			return nil, err
		}
	}
	return files, nil
}
