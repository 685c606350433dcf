//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPreview_ShowsWhatAChangeDoes runs `make preview` for changes of a stack file, in a lab without any machine, and later on the state of
// the cluster that the base describes.
func TestPreview_ShowsWhatAChangeDoes(t *testing.T) {
	l := labOfShape(t, "preview", func(s settings) { // machines and Cilium are enough
		s.set("gitops", map[string]any{"enabled": false})
		s.withoutProviders()
	})
	clone := filepath.Join(t.TempDir(), "change") // make writes into it, and the lab's own checkout cannot be written
	runGit(t, "clone", "--quiet", l.project, clone)
	p := previews{lab: l, clone: clone, charts: filepath.Join(t.TempDir(), "charts")}

	t.Run("NothingIsOneLine", func(t *testing.T) {
		r := p.of(t, true, nil)
		assert.Contains(t, r.markdown, "\nNothing changes in `infra`.\n")
		assert.NotContains(t, r.markdown, "###")
	})
	t.Run("MemoryOfWorkers", func(t *testing.T) {
		r := p.of(t, true, moreMemory)
		assert.Contains(t, r.markdown, "Proxmox reboots `infra-worker-1`, `infra-worker-2`")
		require.Len(t, r.infra.Machines, 2)
		assert.True(t, r.infra.Machines[0].Reboots)
		assert.Empty(t, r.infra.Dangers)
	})
	t.Run("AValueOfCiliumWithItsManifests", func(t *testing.T) {
		r := p.of(t, true, func(s settings) { s.set("cilium", map[string]any{"encryption": "wireguard"}) })
		require.Len(t, r.infra.Charts, 1)
		assert.Contains(t, strings.Join(r.infra.Charts[0].Values, "\n"), "+ encryption.type = wireguard")
		assert.Empty(t, r.infra.Charts[0].Unrendered)
		assert.Contains(t, fmt.Sprint(r.infra.Charts[0].Objects), "enable-wireguard = true")
		assert.Contains(t, r.markdown, "ConfigMap kube-system/cilium-config")
		assert.NotEmpty(t, r.infra.Dangers)
	})
	t.Run("AControlPlaneRemoved", func(t *testing.T) {
		r := p.of(t, true, withoutAControlPlane)
		assert.Contains(t, r.markdown, "control plane `infra-cp-3` is removed")
		assert.Contains(t, r.markdown, "etcd goes from 3 members to 2 members: quorum is 2 of 2.")
		assert.Less(t, strings.Index(r.markdown, "[!CAUTION]"), strings.Index(r.markdown, "### infra"), "danger comes first")
	})

	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	p.states = filepath.Join(t.TempDir(), "states")
	require.NoError(t, os.Mkdir(p.states, 0o700))
	l.in("pulumi", "stack", "export", "--stack", "infra", "--file", filepath.Join(p.states, "infra.json")) // secrets stay encrypted

	t.Run("NothingOfWhatExists", func(t *testing.T) {
		r := p.of(t, true, nil)
		require.NotNil(t, r.infra.Existing, r.markdown)
		assert.Empty(t, r.infra.Existing.Operations)
		assert.Empty(t, r.infra.Existing.OfBase, "the base was brought up")
		assert.Greater(t, r.infra.Existing.Same, 20)
		assert.Contains(t, r.markdown, "\nNothing changes in `infra`.\n")
	})
	t.Run("MemoryOfWorkersThatExist", func(t *testing.T) {
		r := p.of(t, true, moreMemory)
		assert.Equal(t, []string{"update talos-infra-worker-1-vm", "update talos-infra-worker-2-vm"}, r.operations("proxmoxve:"))
		assert.Empty(t, r.infra.Existing.OfBase)
	})
	t.Run("AControlPlaneThatExistsRemoved", func(t *testing.T) {
		r := p.of(t, false, withoutAControlPlane) // Pulumi refuses to delete a protected resource, which is a problem of the change
		assert.Contains(t, r.operations("proxmoxve:"), "delete talos-infra-cp-3-vm")
		assert.Contains(t, strings.Join(r.infra.Dangers, "\n"), "by the state, `VirtualMachine talos-infra-cp-3-vm` is deleted. It is protected")
	})
	t.Run("AControlPlaneThatExistsGetsAnotherGeneration", func(t *testing.T) {
		r := p.of(t, true, func(s settings) { s.node("infra-cp-2")["generation"] = 2 })
		assert.Equal(t, []string{"replace talos-infra-cp-2-vm"}, r.operations("proxmoxve:VM/"))
		dangers := strings.Join(r.infra.Dangers, "\n")
		assert.Contains(t, dangers, "by the state, `VirtualMachine talos-infra-cp-2-vm` is replaced: what exists is deleted.")
		assert.NotContains(t, dangers, "It is protected", "up replaces it")
		r = p.of(t, false, func(s settings) { s.node("infra-cp-2")["generation"], s.node("infra-cp-3")["generation"] = 2, 2 })
		assert.Contains(t, r.markdown, "infra-cp-2, infra-cp-3 are control planes, and one run removes or replaces one of them at most")
	})
	t.Run("WhatTheBaseHasNotBroughtUpStandsApart", func(t *testing.T) {
		editStackFile(t, filepath.Join(clone, "Pulumi.infra.yaml"), moreMemory)
		commitAll(t, clone, "memory")
		r := p.of(t, true, func(s settings) { s.pool(1)["tags"] = []any{"marked"} })
		assert.Empty(t, r.infra.Existing.OfBase, "tags are added to the same VMs, so that they differ from what the base would do")
		assert.NotEmpty(t, r.operations("proxmoxve:"))
		r = p.of(t, true, nil)
		assert.Empty(t, r.infra.Existing.Operations)
		assert.Len(t, slices.DeleteFunc(r.infra.Existing.OfBase, func(o existing) bool { return !strings.HasPrefix(o.Type, "proxmoxve:") }), 2)
	})
	unprotectAndDestroy(l)
}

func moreMemory(s settings) { s.pool(1)["memory"] = "24GiB" }

func withoutAControlPlane(s settings) {
	s.pool(0)["nodes"] = s.pool(0)["nodes"].([]any)[:2]
	s.set("lifecycle", map[string]any{"allowEvenControlPlanes": true})
}

// previews runs `make preview` in a clone.
type previews struct {
	lab           *lab
	clone, charts string // charts are fetched into it
	states        string // folder with exported states; "" for none
}

// existing is a part of the JSON file.
type existing struct {
	Op, Type, Name string
	Lines          []string
}

// shown is what `make preview` has written, as far as the test reads it.
type shown struct {
	markdown string
	infra    struct {
		State    string
		Dangers  []string
		Machines []struct {
			Name    string
			Reboots bool
		}
		Charts []struct {
			Values     []string
			Unrendered string
			Objects    any
		}
		Existing *struct {
			Operations, OfBase []existing
			Same               int
		}
	}
}

// operations returns the operations on resources of the types that begin with a prefix.
func (s shown) operations(prefix string) []string {
	var all []string
	for _, one := range s.infra.Existing.Operations {
		if strings.HasPrefix(one.Type, prefix) {
			all = append(all, one.Op+" "+one.Name)
		}
	}
	return all
}

// of previews an edit of the stack file, and takes it back. A change with problems makes make fail.
func (p previews) of(t *testing.T, works bool, edit func(settings)) shown {
	t.Helper()
	file := filepath.Join(p.clone, "Pulumi.infra.yaml")
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	if edit != nil {
		editStackFile(t, file, edit)
		defer func() { require.NoError(t, os.WriteFile(file, before, 0o600)) }()
	}
	out, err := p.lab.try("make", "-C", p.clone, "preview", "BASE=HEAD", "CHARTS="+p.charts, "FETCH=yes", "STATE="+p.states)
	require.Equal(t, works, err == nil, end(out))
	var s shown
	markdown, err := os.ReadFile(filepath.Join(p.clone, "bin", "preview", "preview.md"))
	require.NoError(t, err)
	s.markdown = string(markdown)
	text, err := os.ReadFile(filepath.Join(p.clone, "bin", "preview", "preview.json"))
	require.NoError(t, err)
	var report struct{ Stacks []json.RawMessage }
	require.NoError(t, json.Unmarshal(text, &report))
	require.Len(t, report.Stacks, 1)
	require.NoError(t, json.Unmarshal(report.Stacks[0], &s.infra))
	t.Logf("a comment of %d bytes, %d bytes of JSON", len(markdown), len(text))
	assert.NotContains(t, string(markdown)+string(text), "PRIVATE KEY")
	return s
}
