// Package newcluster writes a repository for a cluster: the template that `pulumi new` takes from templates/cluster, with the answers of
// flags, and the manifests of Slipway that the cluster uses.
package newcluster

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/stacks/config"
)

// template is templates/cluster, whose files of Go would belong to this module here: their names end in .txt.
//
//go:embed all:cluster
var template embed.FS

const does = `Writes a repository for a cluster into the folder NAME, which must not exist: the program, the stack file, and what Flux
applies. It is the template of "pulumi new". Without a flag, the stack file has its default, or an example. Unless the
folder is in a Git repository, it becomes one, with a first commit. At the end, the command prints what is left to do.`

// Command returns the command that writes a repository. version is the binary's, which go.mod requires if it is published.
func Command(version string) *cobra.Command {
	c := &cobra.Command{Use: "new NAME", Short: "Write a repository for a cluster", Long: does, Args: cobra.ExactArgs(1)}
	var flags given
	flags.add(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		name := args[0]
		assumed := flags.assume(c, name)
		files, secrets, err := render(name, version, flags)
		if err != nil {
			return command.Wrong(err)
		}
		if err := write(name, files); err != nil {
			return err
		}
		committed, err := commitAll(c.Context(), name)
		if err != nil {
			return err
		}
		report(c, name, version, flags, secrets, committed, assumed)
		return nil
	}
	return c
}

// whatPulumiAsks says what Pulumi does besides, so that no command of its own is needed.
const whatPulumiAsks = "The first pulumi config set asks for a login, if there is none, and offers to create the stack.\n" +
	"For a state on this computer, run pulumi login --local before, and export a new passphrase as PULUMI_CONFIG_PASSPHRASE.\n"

// report says what was written, what of it is still an example, and which commands are left until the cluster runs.
func report(c *cobra.Command, name, version string, flags given, secrets []string, committed commit, assumed string) {
	out := c.OutOrStdout()
	_, _ = fmt.Fprintf(out, "%s: written%s%s", name, committed.told(name), assumed)
	edited := false
	for _, one := range answers {
		if !c.Flags().Changed(one.name) {
			edited = true
			_, _ = fmt.Fprintf(out, "Edit Pulumi.%s.yaml: without --%s, it has the example %s\n", name, one.name, one.replaces)
		}
	}
	next := []string{"cd " + name}
	switch {
	case flags.source != "":
		edited = true // go.sum is written
		next = append(next, "go mod tidy", "go run . check")
	case !published.MatchString(version):
		_, _ = fmt.Fprintln(out, "Edit go.mod: this slipway is of changed sources, and the workflow needs a version that exists")
		edited = true
		fallthrough
	case edited:
		next = append(next, "slipway check")
	}
	next = append(next, committed.next(edited, *flags.answers["git"])...)
	for _, secret := range append([]string{"proxmoxApiToken"}, secrets...) {
		next = append(next, fmt.Sprintf("pulumi config set --stack %s --secret %s:%s", name, config.Namespace, secret))
	}
	next = append(next, "pulumi up --stack "+name)
	_, _ = fmt.Fprintf(out, "Next, one command after the other, because Pulumi asks:\n  %s\n%s%s says more.\n", strings.Join(next, "\n  "),
		whatPulumiAsks, filepath.Join(name, "README.md"))
}

// published matches versions that Go can fetch, and not one of a changed checkout, v0.1.0+dirty.
var published = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// moduleFile returns the template's go.mod with the binary's version, unless it was built from source, and with the folder of the source
// if one is given.
func moduleFile(text, version, source string) (string, error) {
	if published.MatchString(version) {
		text = regexp.MustCompile(regexp.QuoteMeta(command.Module)+` v\S+`).ReplaceAllString(text, command.Module+" "+version)
	}
	if source == "" {
		return text, nil
	}
	folder, err := filepath.Abs(source)
	if err != nil {
		return "", err
	}
	own, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil || !strings.HasPrefix(string(own), "module "+command.Module+"\n") {
		return "", fmt.Errorf("--source: %s is no checkout of Slipway; write the folder that has its go.mod", source)
	}
	return text + "\nreplace " + command.Module + " => " + folder + "\n", nil
}

// render returns the files of the repository, with the answers in the stack file, and the secrets that the stack needs besides the token of
// Proxmox VE. The error joins all problems of the answers.
func render(name, version string, flags given) (files map[string]string, secrets []string, err error) {
	name, problems := flags.usable(name)
	network := strings.TrimSuffix(*flags.answers["network"], "0/24")
	pairs := []string{"${PROJECT}", name, "${DESCRIPTION}", "The cluster " + name}
	for _, one := range answers {
		if one.name != "network" {
			pairs = append(pairs, one.replaces, *flags.answers[one.name])
		}
	}
	replaced := strings.NewReplacer(append(pairs, "192.168.1.", network)...)
	files = map[string]string{}
	if err := eachFile(func(name string, text []byte) error {
		files[replaced.Replace(name)] = replaced.Replace(string(text))
		return nil
	}); err != nil {
		return nil, nil, err
	}
	files["Pulumi.yaml"], _, _ = strings.Cut(files["Pulumi.yaml"], "template:\n") // for pulumi new, which leaves it out, too
	if flags.source == "" {
		runBinary(files)
	}
	stack := "Pulumi." + name + ".yaml"
	for _, one := range switches {
		if *flags.switches[one.name] {
			files[stack] = strings.Replace(files[stack], one.replaces, one.by, 1)
		}
	}
	if *flags.switches["public"] {
		files["README.md"] = strings.Replace(files["README.md"], needsNone, "This one\n   needs none: the stack file has `public: true`.", 1)
	}
	if flags.gateway != "" {
		files[stack] = strings.Replace(files[stack], "/24\n", "/24\n    gateway: "+flags.gateway+"\n", 1)
	}
	if flags.domain != "" {
		if err := addGateway(files, stack, flags.domain, version); err != nil {
			problems = append(problems, err)
		}
	}
	if files["go.mod"], err = moduleFile(files["go.mod"], version, flags.source); err != nil {
		problems = append(problems, err)
	}
	if secrets, err = checkStack(stack, files); err != nil {
		problems = append(problems, byFlag(err))
	}
	if len(problems) > 0 {
		return nil, nil, fmt.Errorf("%w\nnothing is written: give other answers, or leave out the flags and edit the stack file afterwards",
			errors.Join(problems...))
	}
	return files, secrets, nil
}

// needsNone is what the README says of a repository without a password.
const needsNone = "A public repository needs\n   none: write `public: true` into `slipway:gitops` of the stack file instead."

// fromSource are lines of the template, and those of a project that runs the binary: who has run it to write the project has it.
var fromSource = strings.NewReplacer(
	"    buildTarget: bin/cluster # kept, so that only a changed program is linked again\n",
	"    binary: slipway # on PATH; without this line, Pulumi compiles main.go\n",
	"`go mod tidy` and `go run . check`", "`slipway check`", "go run . check", "slipway check",
	"1. `git init --initial-branch main`", "1. `git init --initial-branch main`, unless `slipway new` has done it",
	". The stack must have the name of its file. `pulumi new` proposes `dev`: if you took that, run\n   `pulumi stack rm dev`, and do "+
		"the steps from here on. `pulumi stack rename` would overwrite the stack file.\n", ", or let the next command make it\n",
	" A star marks what `pulumi new` has done already; after `slipway new`, do all of it.", "", ". \\* ", ". ",
)

// runBinary lets Pulumi and the reader run the binary. The workflow builds it.
func runBinary(files map[string]string) {
	for name, text := range files {
		if !strings.HasPrefix(name, ".github/") {
			files[name] = fromSource.Replace(text)
		}
	}
}

// checkStack returns the secrets that the stack needs besides the token of Proxmox VE, or every problem of the stack file, which also has
// the cluster's name: that of the folder.
func checkStack(path string, files map[string]string) (secrets []string, err error) {
	source, err := config.ParseFile(path, []byte(files[path]))
	if err != nil {
		return nil, err
	}
	source.Tree = nil // this folder may be the repository of another cluster
	stack, err := config.Load(source)
	if err != nil {
		return nil, err
	}
	return stack.MissingSecrets(), nil
}

// write writes the files into a new folder.
func write(folder string, files map[string]string) error {
	if err := os.Mkdir(folder, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s: exists already; remove it, or choose another name for the cluster", folder)
		}
		return err
	}
	for name, text := range files {
		if err := writeFile(filepath.Join(folder, filepath.FromSlash(name)), text); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
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
