// Package newcluster writes a repository for a cluster: the template that `pulumi new` takes from templates/cluster, with the answers of flags.
package newcluster

import (
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// template is templates/cluster, whose files of Go would belong to this module here: their names end in .txt.
//
//go:embed all:cluster
var template embed.FS

const usage = `usage: %s NAME [flags]

Writes a repository for a cluster into the folder NAME, which must not exist: the program, the stack file, and what Flux applies. It is the
template of "pulumi new". Without a flag, the stack file has an example at that place.

`

// answer is a flag. Its value replaces a text of the template.
type answer struct{ name, replaces, does string }

var answers = []answer{
	{"proxmox", "https://pve.home.arpa:8006/", "`URL` of the API of Proxmox VE"},
	{"host", "pve1", "`name` of the Proxmox VE node"},
	{"network", "192.168.1.0/24", "`network` of the nodes, a /24; the gateway is its first address, and the cluster has those from .230 to .249"},
	{"git", "https://github.com/OWNER/REPOSITORY.git", "`URL` of the repository that Flux reads"},
}

// Main writes the repository that args name, and returns the exit code. program is the command line before args.
func Main(program string, args []string) int { return run(program, args, os.Stdout, os.Stderr) }

const (
	written    = 0
	refused    = 1
	usageError = 2
)

func run(program string, args []string, out, problems io.Writer) int {
	flags := flag.NewFlagSet(program, flag.ContinueOnError)
	flags.SetOutput(problems)
	flags.Usage = func() {
		_, _ = fmt.Fprintf(problems, usage, program)
		flags.PrintDefaults()
	}
	given := map[string]*string{}
	for _, one := range answers {
		given[one.name] = flags.String(one.name, one.replaces, one.does)
	}
	name := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return written
	} else if err != nil {
		return usageError
	}
	if name == "" || flags.NArg() > 0 {
		flags.Usage()
		return usageError
	}
	replaced, err := replacements(name, given)
	if err != nil {
		_, _ = fmt.Fprintln(problems, err)
		return usageError
	}
	if err := write(name, replaced); err != nil {
		_, _ = fmt.Fprintln(problems, err)
		return refused
	}
	_, _ = fmt.Fprintf(out, "%s: written\nNext: %s says what to do, from here to the first pulumi up.\n", name, filepath.Join(name, "README.md"))
	return written
}

var (
	nameForm    = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	networkForm = regexp.MustCompile(`^(\d+\.\d+\.\d+\.)0/24$`)
)

// replacements returns what replaces what in the template. The addresses of the cluster are all in the network.
func replacements(name string, given map[string]*string) (*strings.Replacer, error) {
	var wrong error
	if !nameForm.MatchString(name) {
		wrong = fmt.Errorf("%q is not a name; write lower case letters, digits and -, and a letter first", name)
	}
	network := networkForm.FindStringSubmatch(*given["network"])
	if network == nil {
		return nil, errors.Join(wrong, fmt.Errorf("--network: %s is not a /24; write 192.168.1.0/24, or edit the file", *given["network"]))
	}
	pairs := []string{"${PROJECT}", name, "${DESCRIPTION}", "The cluster " + name}
	for _, one := range answers {
		if one.name != "network" {
			pairs = append(pairs, one.replaces, *given[one.name])
		}
	}
	return strings.NewReplacer(append(pairs, "192.168.1.", network[1])...), wrong
}

// write writes the template into a new folder.
func write(folder string, replaced *strings.Replacer) error {
	if err := os.Mkdir(folder, 0o755); err != nil { //nolint:gosec // a folder of a repository
		return err
	}
	return eachFile(func(name string, text []byte) error {
		path := filepath.Join(folder, replaced.Replace(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // likewise
			return err
		}
		return os.WriteFile(path, []byte(replaced.Replace(string(text))), 0o644) //nolint:gosec // a file of a repository
	})
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
