package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// declared is a stack with three control planes and a worker with a data disk, whose program ran. change changes it.
func declared(change func(*Stack)) Side {
	stack := Stack{
		Name: "infra", File: "Pulumi.infra.yaml", Salt: "a", Secrets: map[string]string{"gitPassword": "1", "meshCA": "2"},
		Keys: map[string]string{"cluster.id": "1", "network.podCIDR": "10.244.0.0/16"},
		Program: Program{Ran: true, Resources: []Resource{
			{Type: "talos:machine/secrets:Secrets", Name: "talos-secrets", Root: "talos", Protect: true},
			{Type: typeCommand, Name: "gate-probe", Root: "gate", Inputs: map[string]any{"triggers": []any{"one"}}},
		}},
	}
	for i, name := range []string{"cp-1", "cp-2", "cp-3", "worker-1"} {
		machine := Machine{
			Name: name, ControlPlane: i < 3, VMID: 100 + i, Host: "pve1",
			Configuration: "machine.sysctls.a = 1\nmachine.files[0].path = /x\n",
			Parts:         []Part{{"memory", "memory", "8GiB"}, {"tags", "tags", "a"}},
		}
		if i == 3 {
			machine.DataDisks = 1
		}
		stack.Machines = append(stack.Machines, machine)
		stack.Program.Resources = append(stack.Program.Resources, Resource{Type: typeVM, Name: "talos-" + name + "-vm", Root: "talos",
			Protect: i < 3, Inputs: map[string]any{"vmId": 100 + i, "agent": map[string]any{"enabled": true}}})
	}
	if change != nil {
		change(&stack)
	}
	return Side{Name: "side", Stacks: []Stack{stack}}
}

func compared(t *testing.T, change func(*Stack)) StackReport {
	t.Helper()
	result := Compare(declared(nil), declared(change))
	require.Len(t, result.Stacks, 1)
	return result.Stacks[0]
}

func TestCompare_OfTheSameIsUnchanged(t *testing.T) {
	assert.Equal(t, Unchanged, compared(t, nil).State)
	assert.NotContains(t, Compare(declared(nil), declared(nil)).Markdown(), "###")
}

func TestCompare_RebootsAMachineForWhatTheProviderRebootsItFor(t *testing.T) {
	r := compared(t, func(s *Stack) { s.Machines[3].Parts[0].Value = "16GiB" })
	require.Len(t, r.Machines, 1)
	assert.True(t, r.Machines[0].Reboots)
	assert.Contains(t, r.Restarts[0], "Proxmox reboots `worker-1`")

	r = compared(t, func(s *Stack) { s.Machines[3].Parts[1].Value = "b" })
	assert.False(t, r.Machines[0].Reboots, "tags need no reboot")
	assert.Empty(t, r.Restarts)
}

// The program may change a VM for a reason that the stack file does not know.
func TestCompare_FindsAChangedVMThatOnlyTheProgramKnows(t *testing.T) {
	r := compared(t, func(s *Stack) {
		s.Program.Resources[5].Inputs = map[string]any{"vmId": 103, "agent": map[string]any{"enabled": false}}
	})
	require.Len(t, r.Machines, 1)
	assert.Equal(t, "worker-1", r.Machines[0].Name)
	assert.True(t, r.Machines[0].Reboots)
	assert.Equal(t, []string{"- agent.enabled = true", "+ agent.enabled = false"}, r.Resources.Changed[0].Lines)
}

func TestCompare_AnOutputThatAPreviewNamesOnlySometimesIsNoDifference(t *testing.T) {
	one := func(uuid string) func(*Stack) {
		return func(s *Stack) {
			s.Program.Resources[1].Inputs = map[string]any{"triggers": []any{map[string]any{"cp-1": uuid}, "x"}}
		}
	}
	for _, pair := range [][2]string{{"", Later}, {Later, ""}} {
		r := Compare(declared(one(pair[0])), declared(one(pair[1]))).Stacks[0]
		assert.Equal(t, Unchanged, r.State)
	}
	assert.Equal(t, Changed, Compare(declared(one("a")), declared(one(Later))).Stacks[0].State)
}

func TestDangers_NameWhatCannotBeUndone(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Stack)
		says   string
	}{
		"a control plane is removed": {func(s *Stack) { s.Machines = s.Machines[1:] }, "control plane `cp-1` is removed. Its VM is protected"},
		"etcd gets another size":     {func(s *Stack) { s.Machines = s.Machines[1:] }, "etcd goes from 3 members to 2 members"},
		"two at once": {
			func(s *Stack) { s.Machines = s.Machines[2:] }, "`up` refuses this change: 2 control planes of 3 go at once",
		},
		"a control plane is replaced": {func(s *Stack) { s.Machines[0].VMID = 999 }, "control plane `cp-1` is replaced: its disks are deleted"},
		"data is lost": {
			func(s *Stack) { s.Machines = s.Machines[:3] }, "`worker-1` is removed, and so is what is on its 1 data disk",
		},
		"a role changes":           {func(s *Stack) { s.Machines[3].ControlPlane = true }, "`worker-1` becomes a control plane"},
		"an id changes":            {func(s *Stack) { s.Keys["cluster.id"] = "2" }, "`cluster.id` changes from `1` to `2`"},
		"a network changes":        {func(s *Stack) { s.Keys["network.podCIDR"] = "10.0.0.0/16" }, "is refused by `up` if the cluster runs"},
		"volumes elsewhere":        {func(s *Stack) { s.Keys["storage.radosNamespace"] = "apps" }, "no volume moves"},
		"another source of Flux":   {func(s *Stack) { s.Keys["gitops.branch"] = "next" }, "Flux deletes what is not there"},
		"another folder of Flux":   {func(s *Stack) { s.Keys["gitops.path"] = "kubernetes/new" }, "Flux deletes what is not there"},
		"a secret is rotated":      {func(s *Stack) { s.Secrets["gitPassword"] = "3" }, "rotated or encrypted anew: `gitPassword`"},
		"the mesh's CA is rotated": {func(s *Stack) { s.Secrets["meshCA"] = "3" }, "`meshCA` must be the same in all stacks"},
		"a secret is removed":      {func(s *Stack) { delete(s.Secrets, "meshCA") }, "secrets are removed: `meshCA`"},
		"another passphrase":       {func(s *Stack) { s.Salt, s.Secrets["meshCA"] = "b", "3" }, "encrypted with another passphrase"},
		"a protected resource goes": {
			func(s *Stack) { s.Program.Resources = s.Program.Resources[1:] }, "`Secrets talos-secrets` is removed, and it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := compared(t, test.change)
			assert.Contains(t, strings.Join(r.Dangers, "\n"), test.says)
			text := Compare(declared(nil), declared(test.change)).Markdown()
			assert.Less(t, strings.Index(text, "[!CAUTION]"), strings.Index(text, "### infra"), "danger comes first")
		})
	}
	assert.Empty(t, compared(t, func(s *Stack) { s.Machines[3].Parts[0].Value = "16GiB" }).Dangers)
	two := compared(t, func(s *Stack) { s.Machines[0].Parts[0].Value, s.Machines[1].Parts[0].Value = "16GiB", "16GiB" })
	assert.Empty(t, two.Dangers, "control planes reboot in turns")
}

func TestDangers_OfAStackWithoutABaseAreThoseOfNoChange(t *testing.T) {
	broken := declared(func(s *Stack) { s.Problems = []Problem{{Text: "cluster.name: is missing"}} })
	for name, base := range map[string]Side{"a new stack": {Name: "side"}, "a base that cannot be loaded": broken} {
		r := Compare(base, declared(nil)).Stacks[0]
		assert.Empty(t, r.Dangers, name)
	}
}

func TestCompare_AMachineOfAnotherGenerationIsDrainedAndMadeAnew(t *testing.T) {
	r := compared(t, func(s *Stack) {
		for _, i := range []int{1, 3} {
			s.Machines[i].Parts = append(s.Machines[i].Parts, Part{Generation, "generation", "2"})
		}
	})
	require.Len(t, r.Machines, 2)
	assert.Equal(t, Replaced, r.Machines[0].State)
	assert.Contains(t, r.Restarts[0], "`up` drains `cp-2`, `worker-1` and shuts the machines down")
	assert.Contains(t, r.Dangers[0], "control plane `cp-2` is replaced: its disks are deleted. `up` drains it, removes its member from etcd")
	assert.NotContains(t, r.Dangers[0], "protected")
}

func TestConfigurations_AreShownOnceForMachinesWithTheSameChange(t *testing.T) {
	r := compared(t, func(s *Stack) {
		for i := range s.Machines {
			s.Machines[i].Configuration = "machine.sysctls.a = 2\nmachine.files[0].path = /x\n"
		}
	})
	assert.Equal(t, []Difference{{
		[]string{"cp-1", "cp-2", "cp-3", "worker-1"}, []string{"- machine.sysctls.a = 1", "+ machine.sysctls.a = 2"},
	}}, r.Configurations)
	assert.Contains(t, r.Restarts[0], "without a reboot")

	r = compared(t, func(s *Stack) { s.Machines[3].Configuration = "machine.sysctls.a = 1\nmachine.files[0].path = /y\n" })
	assert.Contains(t, r.Restarts[0], "Talos reboots `worker-1` for `machine.files[0].path`")
}

// What the program shows is preferred: a change of the program's code is in it, too.
func TestConfigurations_AreThoseOfThePrograms(t *testing.T) {
	r := compared(t, func(s *Stack) {
		s.Program.Resources = append(s.Program.Resources, Resource{Type: typeConfiguration, Name: "talos-worker-1-configuration", Root: "talos",
			Inputs: map[string]any{"configuration": "machine.sysctls.a = 7\nmachine.files[0].path = /x\n"}})
	})
	require.Len(t, r.Configurations, 1)
	assert.Equal(t, []string{"- machine.sysctls.a = 1", "+ machine.sysctls.a = 7"}, r.Configurations[0].Lines)
}

func TestCompare_OfAFailingProgramSaysWhyAndComparesNoResources(t *testing.T) {
	failed := func(s *Stack) { s.Program = Program{Ran: true, Problems: []Problem{{Text: "boom"}}} }
	result := Compare(declared(nil), declared(failed))
	assert.True(t, result.Fails())
	assert.Contains(t, result.Annotations(), "::error::boom\n")
	assert.False(t, result.Stacks[0].Resources.Compared)

	result = Compare(declared(failed), declared(nil))
	assert.False(t, result.Fails(), "the base is not to blame the change for")
	assert.Contains(t, strings.Join(result.Stacks[0].Notes, "\n"), "boom")
}

func TestCompare_OfChartsTakesNoValuesForNone(t *testing.T) {
	before := declared(func(s *Stack) { s.Charts = []Chart{{Name: "one", Version: "1"}} })
	after := declared(func(s *Stack) { s.Charts = []Chart{{Name: "one", Version: "1", Values: map[string]any{}}} })
	assert.Equal(t, Unchanged, Compare(before, after).Stacks[0].State)
}

// The programs of both sides show the same configuration only in the same form.
func TestCompare_OfAFailingProgramComparesConfigurationsWithoutBoth(t *testing.T) {
	before := declared(func(s *Stack) {
		s.Program.Resources = append(s.Program.Resources, Resource{Type: typeConfiguration, Name: "talos-worker-1-configuration",
			Inputs: map[string]any{"configuration": "as the program of the base shows it\n"}})
	})
	after := declared(func(s *Stack) { s.Program = Program{Ran: true, Problems: []Problem{{Text: "boom"}}} })
	assert.Empty(t, Compare(before, after).Stacks[0].Configurations)
}

func TestCompare_OfAnInvalidStackShowsItsProblemsWithTheirLines(t *testing.T) {
	invalid := func(s *Stack) {
		s.Problems = []Problem{{File: "Pulumi.infra.yaml", Line: 7, Text: "a.b: is 5%, and must not\nbe"}}
	}
	result := Compare(declared(nil), declared(invalid))
	assert.Equal(t, "::error file=Pulumi.infra.yaml,line=7::a.b: is 5%25, and must not%0Abe\n", result.Annotations())
	assert.Contains(t, result.Markdown(), "`Pulumi.infra.yaml:7`")
	assert.True(t, result.Fails())
}

// A pull request decides what is in the files. It must not decide what the comment of the workflow looks like.
func TestMarkdown_LetsNoValueEndItsCode(t *testing.T) {
	evil := "x` @everyone </details> ```\n# title\n<script> [a](b) | c"
	result := Compare(declared(nil), declared(func(s *Stack) {
		s.Keys["cluster.id"] = evil
		s.Settings = map[string]string{"A": evil}
		s.Machines[3].Parts[0].Value = evil
		s.Machines[3].Configuration = "machine.sysctls.a = " + evil
		s.Program.Warnings = []string{evil}
	}))
	text := result.Markdown()
	assert.NotContains(t, text, "\n# title")
	fence := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if fence == "" && strings.HasPrefix(line, "```") {
			fence = strings.TrimRight(line, "abcdefghijklmnopqrstuvwxyz")
			continue
		}
		if line == fence {
			fence = ""
		}
		if fence == "" && strings.Contains(line, "@everyone") {
			before, _, _ := strings.Cut(line, "@everyone")
			assert.Regexp(t, "``+[^`]", before, "it is code: %s", line)
		}
	}
	assert.Empty(t, fence, "each fence ends")
	assert.NotContains(t, result.Stacks[0].Notes, "<script>")
	assert.Contains(t, text, "&#60;script&#62;", "a warning is no code")
}

func TestMarkdown_FitsIntoAComment(t *testing.T) {
	filled := func(letter string) func(*Stack) {
		return func(s *Stack) {
			s.Tree.Objects = map[string]string{}
			for i := range 3000 {
				s.Tree.Objects[fmt.Sprintf("ConfigMap a/%d", i)] = strings.Repeat(fmt.Sprintf("%s%d\n", letter, i), 30)
				s.Keys[fmt.Sprintf("some.path[%d]", i)] = strings.Repeat("€", 40) + letter
			}
		}
	}
	result := Compare(declared(filled("a")), declared(filled("b")))
	text := result.Markdown()
	assert.Less(t, len(text), maxComment+100)
	assert.True(t, utf8.ValidString(text))
	assert.Contains(t, text, "\n<sub>", "it is complete")
	assert.Contains(t, text, "more lines, in the JSON file")
	full, err := json.Marshal(result)
	require.NoError(t, err)
	assert.Contains(t, string(full), "ConfigMap a/2999")
}

func TestDiffer_ReturnsTheShortestDifferenceInOrder(t *testing.T) {
	for _, test := range []struct{ before, after, want string }{
		{"", "", ""},
		{"a b c", "a b c", ""},
		{"a b c", "a c", "- b"},
		{"a c", "a b c", "+ b"},
		{"a b c", "a x c", "- b|+ x"},
		{"", "a", "+ a"},
		{"a", "", "- a"},
		{"a b c d", "b d e", "- a|- c|+ e"},
	} {
		lines := differ(strings.Fields(test.before), strings.Fields(test.after))
		assert.Equal(t, test.want, strings.Join(lines, "|"), "%s → %s", test.before, test.after)
	}
}

func TestDiffer_OfVeryLongTextsComparesThemAsSets(t *testing.T) {
	var before, after []string
	for i := range 3000 {
		before, after = append(before, fmt.Sprint("a", i)), append(after, fmt.Sprint("b", i))
	}
	before, after = append(before, "same", "x"), append([]string{"same"}, append(after, "y")...)
	lines := differ(before, after)
	assert.Len(t, lines, 6002)
	assert.NotContains(t, lines, "- same")
}

func TestLines_NameEveryValueByItsPath(t *testing.T) {
	assert.Equal(t, []string{
		"a[\"b.c/d\"] = 1", "empty = {}", "list[0] = x", "list[1] = \"\"", "none = []", "null = null", "text | one", "text | two", "yes = true",
	}, Lines(map[string]any{
		"a": map[string]any{"b.c/d": 1.0}, "empty": map[string]any{}, "list": []any{"x", ""}, "none": []any{}, "null": nil,
		"text": "one\ntwo\n", "yes": true,
	}))
}

func TestChanges_ComeInTheOrderOfNumbers(t *testing.T) {
	assert.Equal(t, []string{"a[2]", "a[10]", "b"}, union(map[string]string{"a[10]": "", "b": ""}, map[string]string{"a[2]": "", "b": ""}))
}
