package newcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/internal/flux/tree"
	"github.com/slipway-platform/slipway/kubernetes"
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

// addGateway adds the manifests of a gateway, the example podinfo behind it, and the domain of its name.
func addGateway(files map[string]string, stack, domain string) error {
	settings, err := tree.Settings(kubernetes.Files, "clusters")
	if err != nil {
		return err
	}
	if !regexp.MustCompile("^(?:" + settings["DOMAIN"].Pattern + ")$").MatchString(domain) {
		return fmt.Errorf("--domain: %s is not a domain in lower case; write it like home.example.com", domain)
	}
	const own, end = folder + "/cluster/", "path: kubernetes/cluster}"
	files[stack] = strings.Replace(files[stack], end, "path: kubernetes/cluster, settings: {DOMAIN: "+domain+"}}", 1)
	ours, err := ofAreas("networking", "security")
	if err != nil {
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
areas that are there already. Look at git diff afterwards: a file that you have changed is overwritten. Nothing is removed.`

// Manifests returns the command that writes and updates manifests.
func Manifests() *cobra.Command {
	return &cobra.Command{
		Use: "manifests [AREA...]", Short: "Write or update the manifests of areas", Long: doesManifests, ValidArgs: areaNames(),
		RunE: func(c *cobra.Command, args []string) error {
			wanted, err := wantedAreas(args)
			if err != nil {
				return command.Wrong(err)
			}
			files, err := ofAreas(wanted...)
			if err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(files)) {
				path := filepath.FromSlash(name)
				old, err := os.ReadFile(path)
				if err == nil && string(old) == files[name] {
					continue
				}
				if err := writeFile(path, files[name]); err != nil {
					return err
				}
				if err == nil {
					_, _ = fmt.Fprintf(c.OutOrStdout(), "%s: changed\n", path)
				}
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s, as in this version\n", filepath.Join(folder, areas), strings.Join(wanted, ", "))
			return err
		},
	}
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
