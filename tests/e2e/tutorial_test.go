//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/docs"
)

// TestTutorial runs the commands of docs/tutorial.md word for word, in their order, and compares their output with the page. Before it
// destroys the clusters, it runs the commands of the other documents that have its name above them, changes by hand what Pulumi owns, for
// make drift, and asks the tools whether the commands of all documents can exist.
func TestTutorial(t *testing.T) {
	l := startLab(t, "tutorial")
	steps := stepsOf(t, "docs/tutorial.md")
	require.Greater(t, len(steps), 7)
	for i, step := range steps {
		if strings.Contains(step.Commands, "pulumi destroy") {
			for _, part := range []struct {
				name string
				run  func(*testing.T, *lab)
			}{
				{"CommandsOfOtherDocumentsAreTrue", documentsAreTrue}, {"DriftIsReportedAndNothingIsChanged", driftReported},
				{"CommandsOfOtherProgramsExist", commandsExist},
			} {
				t.Run(part.name, func(t *testing.T) {
					l.t = t
					part.run(t, l)
				})
			}
			l.t = t
		}
		l.runs(t, step, nil)
		t.Logf("as written: step %d of %d, %d quoted lines", i+1, len(steps), len(step.Quoted))
	}
	l.eventually("nothing is left", func() bool { // Proxmox VE's clients do not wait for the task that deletes a file
		left := l.status()
		return len(left.VMs)+len(left.Processes)+len(left.Volumes) == 0
	})
}

// compare returns an error for the first quoted line that was not printed after the lines before it. … stands for any text, and any number
// of blanks for one.
func compare(step docs.Step, out string) error {
	rest := strings.Split(out, "\n")
	for _, quoted := range step.Quoted {
		if strings.TrimSpace(quoted) == "" {
			continue
		}
		var pieces []string
		for _, piece := range strings.Split(quoted, "…") {
			pieces = append(pieces, regexp.QuoteMeta(strings.Join(strings.Fields(piece), " ")))
		}
		pattern := regexp.MustCompile(strings.Join(pieces, ".*"))
		at := slices.IndexFunc(rest, func(line string) bool { return pattern.MatchString(strings.Join(strings.Fields(line), " ")) })
		if at < 0 {
			return fmt.Errorf("%q was not printed there", quoted)
		}
		rest = rest[at+1:]
	}
	return nil
}

// writing are the privileges of the token with which something can be changed. Without them, make drift must work. VM.Config.Disk is none
// of them: Proxmox VE requires it to read the attributes of a disk.
var writing = []string{
	"VM.Allocate", "VM.Config.CPU", "VM.Config.Memory", "VM.Config.Network", "VM.Config.Options", "VM.Config.CDROM",
	"VM.Config.Cloudinit", "VM.Config.HWType", "VM.Migrate", "VM.PowerMgmt", "Datastore.Allocate", "Datastore.AllocateSpace",
	"Datastore.AllocateTemplate", "Sys.Modify", "SDN.Use",
}

// driftReported changes an object of the cluster and a machine by hand, and has both reported with the token of docs/drift.md.
func driftReported(t *testing.T, l *lab) {
	const settings = "--namespace=flux-system configmap cluster-settings"
	object := func() string {
		return l.kubectl(append([]string{"get", "--output=jsonpath={.metadata.resourceVersion} {.data.DOMAIN}"}, strings.Fields(settings)...)...)
	}
	l.kubectl("patch", "--namespace=flux-system", "configmap", "cluster-settings", "--type=merge",
		`--patch={"data":{"DOMAIN":"elsewhere.home.arpa"}}`)
	l.proxmox("PUT", "nodes/pve1/qemu/1111/config", &struct{}{}, "description=changed by hand")
	for _, privilege := range writing {
		l.must("fault", "proxmox-permission", privilege)
	}
	state := l.secret("pulumi", "stack", "export", "--stack", "infra")
	before := object()

	out, err := l.try("make", "drift", "STACK=infra")
	require.Error(t, err, "%s", end(out))
	assert.Contains(t, out, "elsewhere.home.arpa", "the object's value")
	assert.Contains(t, out, "changed by hand", "the machine's description")
	assert.Contains(t, out, "no changes were expected for preview but changes were proposed")
	assert.NotContains(t, out, "Permission check failed", "reading is enough")
	assert.Equal(t, before, object(), "the object was changed")
	assert.Equal(t, state, l.secret("pulumi", "stack", "export", "--stack", "infra"), "the state was changed")
	var config struct{ Description string }
	l.proxmox("GET", "nodes/pve1/qemu/1111/config", &config)
	assert.Equal(t, "changed by hand", strings.TrimSpace(config.Description), "the machine was changed")
	for _, privilege := range writing {
		l.must("fault", "--off", "proxmox-permission", privilege)
	}

	out, err = l.try("make", "drift", "STACK=nothing")
	require.Error(t, err)
	assert.NotContains(t, out, "no changes were expected", "a stack that could not be looked at is no difference")
}

// commandsExist asks pulumi, kubectl and talosctl for the subcommands and flags that the documents name.
func commandsExist(t *testing.T, l *lab) {
	files, err := docs.Readers(filepath.Join("..", ".."))
	require.NoError(t, err)
	helps, looked := map[string]string{}, 0
	for _, file := range files {
		for _, block := range docs.Blocks(file, readDocument(t, file)) {
			if block.Language != "sh" {
				continue
			}
			for _, command := range block.Commands() {
				program := command.Words[0]
				if !slices.Contains([]string{"pulumi", "kubectl", "talosctl"}, program) {
					continue
				}
				subcommand, flags := parts(command.Words)
				if helps[subcommand] == "" {
					// Some flags of Pulumi exist only with the variable, as docs/operations.md says.
					helps[subcommand] = l.in("sh", "-c",
						"PULUMI_DEBUG_COMMANDS=true "+subcommand+" --help; if [ "+program+" = kubectl ]; then kubectl options; fi")
				}
				looked++
				for _, flag := range flags {
					known := regexp.MustCompile(`(?m)(^|[\s,])` + regexp.QuoteMeta(flag) + `([\s,=]|$)`)
					assert.True(t, known.MatchString(helps[subcommand]), "%s: %s has no flag %s", command, subcommand, flag)
				}
			}
		}
	}
	t.Logf("%d commands of pulumi, kubectl and talosctl", looked)
	assert.Greater(t, looked, 40)
}

// parts returns the program with its subcommands, and the names of the flags. A word after a flag may be its value, and is left out.
func parts(words []string) (subcommand string, flags []string) {
	name := regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	sub, ended, value := words[:1:1], false, false
	for _, word := range words[1:] {
		flag, _, hasValue := strings.Cut(word, "=")
		switch {
		case word == "--":
			return strings.Join(sub, " "), flags
		case strings.HasPrefix(word, "-"):
			flags, value = append(flags, flag), !hasValue
		case value:
			value = false
		case ended || len(sub) > 3 || !name.MatchString(word):
			ended = true
		default:
			sub = append(sub, word)
		}
	}
	return strings.Join(sub, " "), flags
}

func TestTutorialStep_ComparesLineByLineInOrder(t *testing.T) {
	step := docs.Step{Quoted: []string{"Resources:", "+ … created", "", "a … b"}}
	require.NoError(t, compare(step, "x\nResources:\n    + 12 created\n  a   long    b\n"))
	require.ErrorContains(t, compare(step, "    + 12 created\nResources:\n"), `"+ … created" was not printed there`)
	require.ErrorContains(t, compare(step, "Resources:\n + 1 created\na only\n"), `"a … b" was not printed there`)
}
