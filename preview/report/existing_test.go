package report

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onState is a side whose program ran on an empty backend and on the state of the stack.
func onState(operations ...Operation) Side {
	side := declared(nil)
	side.Stacks[0].StateOf = "2026-01-02T03:04:05Z"
	side.Stacks[0].Existing = Program{Ran: true, Operations: operations}
	for _, one := range operations {
		if one.After != nil {
			side.Stacks[0].Program.Resources = append(side.Stacks[0].Program.Resources, Resource{Type: one.Type, Name: one.Name, Inputs: one.After})
		}
	}
	return side
}

func existing(t *testing.T, base, change Side) *Existing {
	t.Helper()
	r := Compare(base, change).Stacks[0].Existing
	require.NotNil(t, r)
	return r
}

// vm is an operation on a VM with that memory.
func vm(op string, before, after int) Operation {
	inputs := func(memory int) map[string]any {
		if memory == 0 {
			return nil
		}
		return map[string]any{"memory": map[string]any{"dedicated": memory}}
	}
	return Operation{Op: op, Type: typeVM, Name: "worker-9-vm", Before: inputs(before), After: inputs(after)}
}

func TestExisting_WhatLeavesTheStackAndStaysIsNoDangerButADeletedNamespaceIs(t *testing.T) {
	owned := Operation{Op: Forget, Type: typeRelease, Name: "core-cert-manager", Before: map[string]any{"chart": "x"}}
	namespace := Operation{Op: "delete", Type: typeNamespace, Name: "core-spegel-namespace", Before: map[string]any{"kind": "Namespace"}}
	result := Compare(onState(), onState(owned, namespace))
	assert.Equal(t, []string{"by the state, `Namespace core-spegel-namespace` is deleted, with everything in it."}, result.Stacks[0].Dangers)
	assert.Contains(t, result.Markdown(), "! forget Release core-cert-manager (it stays)")
	assert.Contains(t, result.Markdown(), "- delete Namespace core-spegel-namespace")
}

func TestExisting_ShowsWhatTheChangeDoesDangerousFirst(t *testing.T) {
	release := Operation{Op: "create", Type: typeRelease, Name: "new", After: map[string]any{"chart": "x"}}
	leaves := Operation{Op: "delete", Type: typeVM, Name: "cp-3-vm", Protect: true, Before: map[string]any{"vmId": 1}}
	e := existing(t, onState(vm("same", 8, 8)), onState(release, vm("update", 8, 16), leaves))
	require.Len(t, e.Operations, 3)
	assert.Equal(t, []string{"delete", "update", "create"}, []string{e.Operations[0].Op, e.Operations[1].Op, e.Operations[2].Op})
	assert.Equal(t, []string{"- memory.dedicated = 8", "+ memory.dedicated = 16"}, e.Operations[1].Lines)
	result := Compare(onState(vm("same", 8, 8)), onState(release, vm("update", 8, 16), leaves))
	assert.Contains(t, result.Stacks[0].Dangers, "by the state, `VirtualMachine cp-3-vm` is deleted. It is protected: `up` refuses until the "+
		"protection is removed.")
	text := result.Markdown()
	assert.Contains(t, text, "**On what exists, by the state of `2026-01-02T03:04:05Z`**: "+
		"1 to delete; 1 to update; 1 to create; 0 stay as they are.")
	assert.Contains(t, text, "- delete VirtualMachine cp-3-vm (protected)\n! update VirtualMachine worker-9-vm\n"+
		"-     memory.dedicated = 8\n+     memory.dedicated = 16\n+ create Release new\n")
	assert.Contains(t, text, "the states of its stacks were read")
}

func TestExisting_WhatTheBaseWouldDoStandsApart(t *testing.T) {
	e := existing(t, onState(vm("update", 8, 16)), onState(vm("update", 8, 16)))
	assert.Empty(t, e.Operations)
	assert.Len(t, e.OfBase, 1)
	e = existing(t, onState(vm("update", 8, 16)), onState(vm("update", 8, 32)))
	assert.Len(t, e.Operations, 1)
	assert.Empty(t, e.OfBase)
}

func TestExisting_OfNothingIsOneLine(t *testing.T) {
	result := Compare(onState(vm("same", 8, 8)), onState(vm("same", 8, 8)))
	assert.Equal(t, Unchanged, result.Stacks[0].State)
	assert.Contains(t, result.Markdown(), "\nNothing changes in `infra`.\n")
}

// What depends on a secret cannot be compared: in the state it is hidden, and the program was given a placeholder.
func TestExisting_SecretsAndWhatDependsOnThemAreNotCompared(t *testing.T) {
	for name, test := range map[string]struct {
		before, after, empty any
		known                bool
	}{
		"a secret":                           {Hidden, Hidden, Hidden, false},
		"a secret that is known later":       {Hidden, Later, Later, false},
		"what is known later":                {"a", Later, Later, false},
		"a part of a text":                   {"a-1", "a-" + Later, "a-" + Later, false},
		"a checksum of a secret":             {"1111", "2222", "3333", false},
		"a list with a secret":               {[]any{"a", Hidden}, []any{"b", Hidden}, []any{"b", Hidden}, true},
		"a text":                             {"a", "b", "b", true},
		"a text that an empty backend lacks": {"a", "b", Later, true},
		"lines of which one is known later":  {"a\nb\n", "a\n" + Later + "\n", Later, true},
	} {
		t.Run(name, func(t *testing.T) {
			one := func(op string) Operation {
				return Operation{Op: op, Type: typeCommand, Name: "x", Because: []string{"triggers"},
					Before: map[string]any{"triggers": test.before, "same": 1}, After: map[string]any{"triggers": test.after, "same": 1}}
			}
			for op, want := range map[string]string{"update": "update", "replace": "replace"} {
				change := onState(one(op))
				change.Stacks[0].Program.Resources[len(change.Stacks[0].Program.Resources)-1].Inputs = map[string]any{"triggers": test.empty}
				e := existing(t, declared(nil), change)
				if !test.known {
					assert.Empty(t, e.Operations)
					assert.Equal(t, []string{"Command x"}, e.Unknown)
					continue
				}
				require.Len(t, e.Operations, 1)
				assert.Equal(t, want, e.Operations[0].Op)
			}
		})
	}
}

func TestExisting_AReplacementForAnotherResourceIsAReplacement(t *testing.T) {
	e := existing(t, onState(), onState(Operation{
		Op: "replace", Type: typeCommand, Name: "gate", Before: map[string]any{"a": 1}, After: map[string]any{"a": 1},
	}))
	require.Len(t, e.Operations, 1)
	assert.Equal(t, "replace", e.Operations[0].Op)
}

// The Kubernetes plugin adds its defaults to the inputs that it stores. In the preview it is not configured, and adds nothing.
func TestExisting_DefaultsOfTheKubernetesPluginAreNoDifference(t *testing.T) {
	release := func(version string) Operation {
		return Operation{Op: "update", Type: typeRelease, Name: "cilium",
			Before: map[string]any{"version": "1", "atomic": false, "description": "", "repositoryOpts": map[string]any{"repo": "x", "caFile": ""}},
			After:  map[string]any{"version": version, "compat": "true", "repositoryOpts": map[string]any{"repo": "x"}}}
	}
	e := existing(t, onState(), onState(release("1")))
	assert.Empty(t, e.Operations)
	e = existing(t, onState(), onState(release("2")))
	require.Len(t, e.Operations, 1)
	assert.Equal(t, []string{"- version = 1", "+ version = 2"}, e.Operations[0].Lines)
}

// A component has no provider that could say that it changes.
func TestExisting_AChangedConfigurationIsAnOperation(t *testing.T) {
	configuration := func(text string) Operation {
		return Operation{Op: "same", Type: typeConfiguration, Name: "cp-1-configuration", Before: map[string]any{"configuration": "a = 1\n"},
			After: map[string]any{"configuration": text}}
	}
	assert.Len(t, existing(t, onState(configuration("a = 1\n")), onState(configuration("a = 2\n"))).Operations, 1)
	assert.Equal(t, 1, existing(t, onState(), onState(configuration("a = 1\n"))).Same)
}
