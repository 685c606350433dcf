// Package newcluster writes a repository for a cluster: the template that `pulumi new` takes from templates/cluster, with the answers of
// flags.
package newcluster

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/stacks/config"
)

// template is templates/cluster, whose files of Go would belong to this module here: their names end in .txt.
//
//go:embed all:cluster
var template embed.FS

const does = `Writes a repository for a cluster into the folder NAME, which must not exist: the program, the stack file, and what Flux
applies. It is the template of "pulumi new". Without a flag, the stack file has an example at that place.`

// answer is a flag. Its value replaces a text of the template.
type answer struct{ name, replaces, does string }

var answers = []answer{
	{"proxmox", "https://pve.home.arpa:8006/", "`URL` of the API of Proxmox VE"},
	{"host", "pve1", "`name` of the Proxmox VE node"},
	{"network", "192.168.1.0/24",
		"`network` of the nodes, a /24; the gateway is its first address, and the cluster has those from .230 to .249"},
	{"git", cluster.ExampleRepository, "`URL` of the repository that Flux reads"},
}

// Command returns the command that writes a repository. version is the binary's, which go.mod requires if it is published.
func Command(version string) *cobra.Command {
	c := &cobra.Command{Use: "new NAME", Short: "Write a repository for a cluster", Long: does, Args: cobra.ExactArgs(1)}
	given := map[string]*string{}
	for _, one := range answers {
		given[one.name] = c.Flags().String(one.name, one.replaces, one.does)
	}
	source := c.Flags().String("source", "", "`folder` of a checkout of Slipway, which go.mod then uses instead of a version")
	c.RunE = func(c *cobra.Command, args []string) error {
		name := args[0]
		files, err := render(name, given)
		if err == nil {
			files["go.mod"], err = moduleFile(files["go.mod"], version, *source)
		}
		if err != nil {
			return command.Wrong(err)
		}
		if err := write(name, files); err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s: written\nNext: %s says what to do, from here to the first pulumi up.\n",
			name, filepath.Join(name, "README.md"))
		return err
	}
	return c
}

const module = "github.com/slipway-platform/slipway"

// published matches versions that Go can fetch, and not one of a changed checkout, v0.1.0+dirty.
var published = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// moduleFile returns the template's go.mod with the binary's version, unless it was built from source, and with the folder of the source
// if one is given.
func moduleFile(text, version, source string) (string, error) {
	if published.MatchString(version) {
		text = regexp.MustCompile(regexp.QuoteMeta(module)+` v\S+`).ReplaceAllString(text, module+" "+version)
	}
	if source == "" {
		return text, nil
	}
	folder, err := filepath.Abs(source)
	if err != nil {
		return "", err
	}
	own, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil || !strings.HasPrefix(string(own), "module "+module+"\n") {
		return "", fmt.Errorf("--source: %s is no checkout of Slipway; write the folder that has its go.mod", source)
	}
	return text + "\nreplace " + module + " => " + folder + "\n", nil
}

var networkForm = regexp.MustCompile(`^(\d+\.\d+\.\d+\.)0/24$`)

// render returns the files of the repository, with the answers in the stack file. It refuses answers that make a stack file with problems.
func render(name string, given map[string]*string) (map[string]string, error) {
	network := networkForm.FindStringSubmatch(*given["network"])
	if network == nil {
		return nil, fmt.Errorf("--network: %s is not a /24; write 192.168.1.0/24, or edit the file", *given["network"])
	}
	pairs := []string{"${PROJECT}", name, "${DESCRIPTION}", "The cluster " + name}
	for _, one := range answers {
		if one.name != "network" {
			pairs = append(pairs, one.replaces, *given[one.name])
		}
	}
	replaced := strings.NewReplacer(append(pairs, "192.168.1.", network[1])...)
	files := map[string]string{}
	if err := eachFile(func(name string, text []byte) error {
		files[replaced.Replace(name)] = replaced.Replace(string(text))
		return nil
	}); err != nil {
		return nil, err
	}
	return files, checkStack("Pulumi."+name+".yaml", files)
}

// checkStack returns every problem of the stack file, which also has the cluster's name: that of the folder.
func checkStack(path string, files map[string]string) error {
	source, err := config.ParseFile(path, []byte(files[path]))
	if err == nil {
		_, err = config.Load(source)
	}
	return err
}

// write writes the files into a new folder.
func write(folder string, files map[string]string) error {
	if err := os.Mkdir(folder, 0o755); err != nil { //nolint:gosec // a folder of a repository
		return err
	}
	for name, text := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // likewise
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // a file of a repository
			return err
		}
	}
	return nil
}

// eachFile calls do with each file of the template, under its name in templates/cluster.
func eachFile(do func(name string, text []byte) error) error {
	return fs.WalkDir(template, "cluster", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := template.ReadFile(path)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(path, "cluster/"), ".txt")
		return do(name, text)
	})
}
