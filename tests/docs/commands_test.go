package docs

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cmd"
	checkcommand "github.com/slipway-platform/slipway/cmd/check"
	"github.com/slipway-platform/slipway/cmd/probe"
	"github.com/slipway-platform/slipway/stacks/config"
	"github.com/slipway-platform/slipway/stacks/contract"
)

// outside are programs whose use is not checked here. In the lab, TestTutorial asks kubectl and talosctl for their flags, and pulumi.
var outside = []string{
	"kubectl", "talosctl", "op", "pveum", "kubeseal", "sops", "age", "age-keygen", "ssh-keygen", "ssh-keyscan", "openssl", "sha256sum", "cp",
	"rm", "tr", "mkdir", "date", "cat", "git", "scp", "chmod",
}

func TestCommands_AreOfProgramsThatExistWithFlagsThatExist(t *testing.T) {
	total := 0
	for name, text := range documents(t) {
		for _, block := range Blocks(name, text) {
			if block.Language != "sh" {
				continue
			}
			syntax := exec.CommandContext(t.Context(), "bash", "-n")
			syntax.Stdin = strings.NewReader(placeholders.ReplaceAllString(strings.Join(block.Lines, "\n"), "X"))
			out, err := syntax.CombinedOutput()
			assert.NoError(t, err, "%s:%d: %s", name, block.Line, out)
			for _, command := range block.Commands() {
				total++
				if err := check(command.Words); err != nil {
					t.Errorf("%s: %v", command, err)
				}
			}
		}
	}
	assert.Greater(t, total, 80)
}

// leastExecuted is the least share of the commands in the documents that tests must execute, in percent.
const leastExecuted = 75

func TestCommands_AreExecutedByATestOrSayWhyNot(t *testing.T) {
	executed, same, not := 0, 0, 0
	for name, text := range documents(t) {
		for _, block := range Blocks(name, text) {
			if block.Language != "sh" {
				continue
			}
			run, err := block.Run()
			if err != nil {
				t.Error(err)
				continue
			}
			for _, mentioned := range testName.FindAllString(run.Reason, -1) {
				assert.Contains(t, testNames(t), mentioned, "%s:%d", name, block.Line)
			}
			if run.Test != "" {
				assert.Contains(t, testNames(t), run.Test, "%s:%d", name, block.Line)
			}
			for _, command := range block.Commands() {
				switch {
				case run.Test == "" || run.Omits(command.Words):
					not++
					t.Logf("not executed: %s, because %s", command, run.Reason)
				case run.Same:
					same++
				default:
					executed++
				}
			}
		}
	}
	total := executed + same + not
	share := 100 * (executed + same) / max(total, 1)
	t.Logf("%d commands in the documents: tests execute %d%% of them, %d from the document and %d in words of their own; %d are not "+
		"executed, each for a reason", total, share, executed, same, not)
	assert.Greater(t, total, 80)
	assert.GreaterOrEqual(t, share, leastExecuted)
}

var testName = regexp.MustCompile(`\bTest[A-Z]\w+`)

// placeholders stand for a value in a command, such as <FILE.
var placeholders = regexp.MustCompile(`<[A-Z][A-Z-]*>|…`)

// program returns the name of a command's program.
func program(words []string) string { return filepath.Base(words[0]) }

// check returns the problem of a command. Of a program of others, it checks names of ours.
func check(words []string) error {
	name := program(words)
	switch name {
	case "make":
		return checkMake(words)
	case "lab":
		return checkLab(words)
	case "slipway":
		return checkOurs(cmd.Command(), words)
	case "slipway-probe":
		return checkOurs(probe.Command(name), words)
	case "config-check":
		return checkOurs(checkcommand.Command(name), words)
	case "go":
		return checkGo(words)
	case "pulumi":
		return checkPulumi(words)
	}
	if !slices.Contains(outside, name) {
		if kind, err := exec.Command("bash", "-c", "type -t "+name).Output(); err != nil || string(kind) != "builtin\n" {
			return fmt.Errorf("%s is no program that this test knows; add it to check or to outside", name)
		}
	}
	return nil
}

var targetLine = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)

func checkMake(words []string) error {
	text, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	if err != nil {
		return err
	}
	targets := map[string]bool{}
	for _, found := range targetLine.FindAllStringSubmatch(string(text), -1) {
		targets[found[1]] = true
	}
	for _, word := range words[1:] {
		name, _, isVariable := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(word, "-"): // an option of make itself
		case isVariable && !strings.Contains(string(text), "$("+name+")") && name != "GOFLAGS":
			return fmt.Errorf("the Makefile has no variable %s", name)
		case !isVariable && !targets[word]:
			return fmt.Errorf("the Makefile has no target %s", word)
		}
	}
	return nil
}

// checkGo checks go test and go run: the package, and the test of -run.
func checkGo(words []string) error {
	for i, word := range words {
		if path, ours := strings.CutPrefix(word, "./"); ours {
			if _, err := os.Stat(filepath.Join(repository, path)); err != nil {
				return fmt.Errorf("there is no %s", word)
			}
			if path == "cmd/slipway-probe" && words[1] == "run" {
				return check(words[i:])
			}
		}
		if word == "-run" && i+1 < len(words) {
			pattern, err := regexp.Compile(words[i+1])
			if err != nil {
				return err
			}
			names, err := allTests()
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(names, pattern.MatchString) {
				return fmt.Errorf("no test matches %s", pattern)
			}
		}
	}
	return nil
}

// checkPulumi checks the names of ours: configuration keys and outputs.
func checkPulumi(words []string) error {
	for i, word := range words {
		if key, is := strings.CutPrefix(word, config.Namespace+":"); is {
			path, _, _ := strings.Cut(key, "=")
			if err := checkKey(path); err != nil {
				return err
			}
		}
		if i < 2 || words[1] != "stack" || words[2] != "output" || strings.HasPrefix(word, "-") || i == 2 {
			continue
		}
		if strings.HasPrefix(words[i-1], "--stack") || words[i-1] == "-s" {
			continue
		}
		if !slices.ContainsFunc(contract.Outputs(), func(one contract.Output) bool { return one.Name == word }) {
			return fmt.Errorf("the stacks have no output %s", word)
		}
	}
	return nil
}

func checkLab(words []string) error {
	for i, word := range words {
		if word == "--" { // a command in the lab follows
			inner := words[i+1:]
			if len(inner) > 0 {
				if err := check(inner); err != nil {
					return err
				}
			}
			words = words[:i]
			break
		}
	}
	return checkFlags(words)
}

// checkOurs checks the subcommand of a command, and the names of its flags.
func checkOurs(root *cobra.Command, words []string) error {
	root.InitDefaultCompletionCmd()
	c, rest, err := root.Find(words[1:])
	if err != nil {
		return err
	}
	if c.HasSubCommands() && !slices.Contains(rest, "…") {
		return c.ValidateArgs(rest)
	}
	c.InitDefaultHelpFlag()
	for _, word := range rest {
		name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		known := !strings.HasPrefix(word, "-") || name == "" || len(name) == 1 && c.Flags().ShorthandLookup(name) != nil ||
			strings.HasPrefix(word, "--") && c.Flags().Lookup(name) != nil
		if !known {
			return fmt.Errorf("%s has no flag %s", c.CommandPath(), word)
		}
	}
	return nil
}

var flagLine = regexp.MustCompile(`(?m)^ +(?:-[a-zA-Z], )?--?([a-z][a-z0-9-]*)`)

// checkFlags checks a subcommand of the lab and its flags against what the program itself prints.
func checkFlags(words []string) error {
	if len(words) < 2 || words[1] == "…" {
		return nil
	}
	subcommand := ""
	for _, word := range words[1:] {
		if !strings.HasPrefix(word, "-") {
			subcommand = word
			break
		}
	}
	text, err := labFlags(subcommand)
	if err != nil {
		return err
	}
	known := map[string]bool{"h": true, "help": true}
	for _, found := range flagLine.FindAllStringSubmatch(text, -1) {
		known[found[1]] = true
	}
	for _, word := range words[1:] {
		name := strings.TrimLeft(word, "-")
		name, _, _ = strings.Cut(name, "=")
		if strings.HasPrefix(word, "-") && name != "" && !known[name] {
			return fmt.Errorf("%s %s has no flag %s", program(words), subcommand, word)
		}
	}
	return nil
}

// labFlags returns the help text of a subcommand of the lab.
func labFlags(subcommand string) (string, error) {
	return help("-C", "lab", "run", "./cmd/lab", subcommand, "--help")
}

var helps sync.Map

// help runs go and returns all that it prints. The program's exit code must be 0.
func help(args ...string) (string, error) {
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "" })
	key := strings.Join(args, " ")
	made, _ := helps.LoadOrStore(key, sync.OnceValues(func() (string, error) {
		command := exec.Command("go", args...)
		command.Dir = repository
		out, err := command.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("go %s: %w: %s", key, err, out)
		}
		return string(out), nil
	}))
	return made.(func() (string, error))()
}

var testFunction = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)

// allTests returns the names of all tests of the repository.
var allTests = sync.OnceValues(func() ([]string, error) {
	var names []string
	err := eachFile(func(path, text string) {
		if strings.HasSuffix(path, "_test.go") {
			for _, found := range testFunction.FindAllStringSubmatch(text, -1) {
				names = append(names, found[1])
			}
		}
	}, ".go")
	return names, err
})

func testNames(t *testing.T) []string {
	t.Helper()
	names, err := allTests()
	require.NoError(t, err)
	require.Greater(t, len(names), 100)
	return names
}

// eachFile calls do with each file of the repository with one of the suffixes.
func eachFile(do func(path, text string), suffixes ...string) error {
	return filepath.WalkDir(repository, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"bin", ".git"}, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || !slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) }):
			return nil
		}
		text, err := os.ReadFile(name)
		below, _ := filepath.Rel(repository, name)
		do(filepath.ToSlash(below), string(text))
		return err
	})
}

func TestSimple_FindsEveryCommandOfALine(t *testing.T) {
	for line, want := range map[string][][]string{
		"make lab      # everything": {{"make", "lab"}},
		"export A='b c'":             nil,
		"(umask 077; pulumi stack output --show-secrets kubeconfig --stack infra >kubeconfig)": {
			{"umask", "077"}, {"pulumi", "stack", "output", "--show-secrets", "kubeconfig", "--stack", "infra"}},
		"make -s mesh-ca | pulumi config set slipway:meshCA": {{"make", "-s", "mesh-ca"}, {"pulumi", "config", "set", "slipway:meshCA"}},
		"tr -d '\\n' <token | pulumi up":                     {{"tr", "-d", "\\n"}, {"pulumi", "up"}},
		`find "${TMPDIR:-/tmp}" -user "$(id -un)" -delete`:   {{"id", "-un"}, {"find", "${TMPDIR:-/tmp}", "-user", "$(id -un)", "-delete"}},
		"A=1 bin/slipway-probe gate 2>&1 > file && true":     {{"bin/slipway-probe", "gate"}, {"true"}},
	} {
		assert.Equal(t, want, Simple(line), line)
	}
}

func TestCheck_FindsWhatDoesNotExist(t *testing.T) {
	for line, problem := range map[string]string{
		"make nothing":                                     "the Makefile has no target nothing",
		"make config-check STAK=infra":                     "the Makefile has no variable STAK",
		"bin/slipway-probe gate --spek gate.json":          "slipway-probe gate has no flag --spek",
		"bin/slipway-probe gait":                           `"gait" is not a subcommand`,
		"slipway check --explane":                          "slipway check has no flag --explane",
		"slipway probe gate -once":                         "slipway probe gate has no flag -once",
		"slipway probe gait":                               `"gait" is not a subcommand`,
		"slipway chek":                                     `"chek" is not a subcommand`,
		"bin/lab shell --stages":                           "lab shell has no flag --stages",
		"bin/lab exec -- make nothing":                     "the Makefile has no target nothing",
		"go test ./tests/graph -run Four":                  "no test matches Four",
		"go test ./tests/nothing":                          "there is no ./tests/nothing",
		"pulumi stack output gateSpecs -s infra":           "the stacks have no output gateSpecs",
		"pulumi config set slipway:gitPasswort":            "is not a key",
		"pulumi config set slipway:gitops.deletion delete": "is not a key",
		"unknown-program":                                  "is no program that this test knows",
	} {
		assert.ErrorContains(t, check(Simple(line)[0]), problem, line)
	}
}
