package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// What a reader of the quick start types and decides until the first `pulumi up` has begun. What only some readers need is counted, too.
const (
	mostCommands  = 13
	mostDecisions = 10
)

var (
	comment  = regexp.MustCompile(`(?s)<!--.*?-->`)
	decision = regexp.MustCompile(`<!-- decision: ([^>]+) -->`)
)

// typedUntilUp returns what the reader of a page types, `pulumi up` included: the commands, each of a list by itself, and the lines that
// only set a variable.
func typedUntilUp(name, text string) (all []string, found bool) {
	for _, block := range Blocks(name, text) {
		if block.Language != "sh" {
			continue
		}
		for _, line := range strings.Split(strings.ReplaceAll(strings.Join(block.Lines, "\n"), "\\\n", " "), "\n") {
			commands := Simple(line)
			if len(commands) == 0 && strings.Contains(line, "=") {
				commands = [][]string{{line}}
			}
			for _, words := range commands {
				all = append(all, strings.Join(words, " "))
				if strings.HasPrefix(all[len(all)-1], "pulumi up") {
					return all, true
				}
			}
		}
	}
	return all, false
}

func TestQuickStart_ReachesTheFirstUpWithFewCommandsAndDecisions(t *testing.T) {
	const name = "docs/quickstart.md"
	text := documents(t)[name]
	commands, found := typedUntilUp(name, text)
	require.True(t, found, "pulumi up")
	assert.LessOrEqual(t, len(commands), mostCommands)
	t.Logf("%d commands:\n%s", len(commands), strings.Join(commands, "\n"))

	before, _, found := strings.Cut(text, "\n## 6. ")
	require.True(t, found)
	var decisions []string
	for _, one := range decision.FindAllStringSubmatch(before, -1) {
		assert.NotContains(t, decisions, one[1])
		decisions = append(decisions, one[1])
	}
	assert.LessOrEqual(t, len(decisions), mostDecisions)
	for flag := range strings.FieldsSeq(regexp.MustCompile("[^a-z -]").ReplaceAllString(commandLine(commands, "slipway new "), "")) {
		if strings.HasPrefix(flag, "--") {
			assert.Contains(t, before, "`"+flag+"`", "the table says what to write")
		}
	}
	t.Logf("%d decisions: %s", len(decisions), strings.Join(decisions, ", "))
}

// commandLine returns the command that begins with a text.
func commandLine(commands []string, begin string) string {
	for _, one := range commands {
		if strings.HasPrefix(one, begin) {
			return one
		}
	}
	return ""
}

func TestTypedUntilUp_CountsEachCommandAndVariable(t *testing.T) {
	const text = `
~~~sh
# a comment
one=1   # a variable
two a \
  b && three
export FOUR="$PWD/x"
five >six
~~~

~~~yaml
none: 1
~~~

~~~sh
pulumi up --stack home; eight
~~~
`
	typed, found := typedUntilUp("a.md", text)
	assert.True(t, found)
	assert.Equal(t, []string{"one=1   # a variable", "two a b", "three", `export FOUR="$PWD/x"`, "five", "pulumi up --stack home"}, typed)
	_, found = typedUntilUp("a.md", strings.ReplaceAll(text, "pulumi up", "pulumi"))
	assert.False(t, found)
}

// `go install MODULE@VERSION` refuses a module that replaces others, and files whose names no archive of a module may have.
func TestQuickStart_TheModuleCanBeInstalled(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	require.NoError(t, err)
	file, err := modfile.Parse("go.mod", text, nil)
	require.NoError(t, err)
	assert.Empty(t, file.Replace)
	assert.Empty(t, file.Exclude)
	assert.Contains(t, documents(t)["docs/quickstart.md"], "\ngo install "+file.Module.Mod.Path+"@")
	out, err := exec.CommandContext(t.Context(), "git", "-C", repository, "ls-files", "-z").Output()
	require.NoError(t, err)
	looked := 0
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		looked++
		assert.NoError(t, module.CheckFilePath(name))
	}
	assert.Greater(t, looked, 500)
}
