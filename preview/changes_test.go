package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/preview/checkout"
	"github.com/slipway-platform/slipway/preview/report"
	"github.com/slipway-platform/slipway/tests/golden"
)

// repository is the checkout that these tests change, with the copies of its stack files.
const (
	repository = ".."
	samples    = "tests/clusters/samples"
)

// edit replaces a text in a file, in which it must occur. Without one, the file is new: a copy of the repository's file is.
type edit struct{ file, was, is string }

// The stack files, and the file of infra's tree with cert-manager, if Flux owns it.
const (
	apps            = "Pulumi.apps.yaml"
	infra           = "Pulumi.infra.yaml"
	certManagerFile = "kubernetes/clusters/infra/platform/cert-manager.yaml"
)

// handedOver makes Flux the owner of a component.
var handedOver = []edit{
	{infra, "  slipway:cilium:\n", "  slipway:certManager: {owner: flux}\n  slipway:cilium:\n"},
	{certManagerFile, "", "tests/clusters/fixtures/owned/cert-manager.yaml"},
}

// bases are what the changes of these names are compared with, if that is not the repository itself.
var bases = map[string][]edit{"chart-that-flux-owns": handedOver}

// realChanges are changes of the committed stack files, by the name of their golden file.
var realChanges = map[string][]edit{
	"nothing": nil,
	"memory-of-workers": {
		{infra, "      cores: 8\n      memory: 16GiB\n", "      cores: 8\n      memory: 24GiB\n"},
	},
	"two-control-planes-removed": {
		{infra, "        - {name: infra-cp-2, vmId: 1112, mac: \"BC:24:11:00:01:12\", address: 10.25.11.12}\n", ""},
		{infra, "        - {name: infra-cp-3, vmId: 1113, mac: \"BC:24:11:00:01:13\", address: 10.25.11.13}\n", ""},
	},
	"one-control-plane-removed": {
		{infra, "        - {name: infra-cp-3, vmId: 1113, mac: \"BC:24:11:00:01:13\", address: 10.25.11.13}\n", ""},
	},
	"encryption-of-cilium": {
		{infra, "  slipway:cilium:\n", "  slipway:cilium:\n    encryption: wireguard\n"},
		{apps, "  slipway:cilium:\n", "  slipway:cilium:\n    encryption: wireguard\n"},
	},
	"domain": {
		{infra, "DOMAIN: infra.home.arpa", "DOMAIN: lab.home.arpa"},
	},
	"machines-moved-grown-and-replaced": {
		{apps, "apps-worker-1, vmId: 1221,", "apps-worker-1, host: pve2, vmId: 1221,"},
		{apps, "vmId: 1222", "vmId: 1229"},
		{apps, "      disk: 100GiB\n", "      disk: 120GiB\n"},
	},
	"machines-of-another-generation": {
		{infra, "infra-cp-2, vmId", "infra-cp-2, generation: 2, vmId"},
		{infra, "infra-worker-1, vmId", "infra-worker-1, generation: 2, vmId"},
	},
	"mesh-and-spegel": {
		{apps, "    id: 2 # unique in the mesh\n", "    id: 7\n"},
		{apps, "  slipway:kubernetes:\n", "  slipway:spegel: {enabled: false}\n  slipway:kubernetes:\n"},
	},
	"extension-removed": { // the VMs have the channel of the guest agent no more
		{infra, "    extensions:\n      - siderolabs/qemu-guest-agent\n", ""},
	},
	"extension": {
		{infra, "      - siderolabs/qemu-guest-agent\n", "      - siderolabs/qemu-guest-agent\n      - siderolabs/lldpd\n"},
	},
	"versions-of-talos-and-kubernetes": {
		{infra, "v1.14.6", "v1.14.7"},
		{infra, "v1.36.6", "v1.36.7"},
	},
	"chart-that-flux-owns": {
		{certManagerFile, "version: v1.21.2", "version: v1.21.3"},
	},
}

// read reads the repository's stacks after the edits.
func read(t *testing.T, edits ...edit) []checkout.Stack {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(folder, "kubernetes"), os.DirFS(filepath.Join(repository, "kubernetes"))))
	for _, name := range []string{apps, infra} {
		text, err := os.ReadFile(filepath.Join(repository, samples, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	for _, one := range edits {
		path := filepath.Join(folder, one.file)
		from := path
		if one.was == "" {
			from = filepath.Join(repository, one.is)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		}
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		if one.was != "" {
			require.Contains(t, string(text), one.was)
			text = []byte(strings.Replace(string(text), one.was, one.is, 1))
		}
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
	stacks, err := checkout.Read(folder)
	require.NoError(t, err)
	return stacks
}

func TestPreview_OfRealChangesIsWhatTheGoldenFilesShow(t *testing.T) {
	committed := read(t)
	for name, edits := range realChanges {
		t.Run(name, func(t *testing.T) {
			base := committed
			if before := bases[name]; before != nil {
				base, edits = read(t, before...), slices.Concat(before, edits)
			}
			result := report.Compare(checkout.Side("main", base), checkout.Side("change", read(t, edits...)))
			got := result.Markdown()
			if annotations := result.Annotations(); annotations != "" {
				got += "\n" + annotations
			}
			golden.File(t, filepath.Join("testdata", name+".md"), got)
		})
	}
}

// Talos changes nothing in what it has brought up, so that nothing restarts until an engine owns Cilium.
func TestPreview_OfInlineCiliumHasARolloutOnlyIfAnEngineOwnsIt(t *testing.T) {
	const section = "  slipway:cilium:\n    version: 1.20.2\n"
	declared := func(keys string, edits ...edit) []checkout.Stack {
		return read(t, append(edits, edit{infra, section, "  slipway:cilium:\n    mode: inline\n" + keys})...)
	}
	pulumis := report.Compare(checkout.Side("main", declared("    version: 1.20.2\n")),
		checkout.Side("change", declared("    version: 1.20.2\n    hubble: {ui: true}\n")))
	assert.Contains(t, pulumis.Markdown(), "cilium.hubble.ui")
	assert.NotContains(t, pulumis.Markdown(), "upgrades `cilium`")

	file := edit{"kubernetes/clusters/infra/platform/cilium.yaml", "", "tests/clusters/fixtures/owned/cilium.yaml"}
	base, change := declared("    owner: flux\n", file), declared("    owner: flux\n    hubble: {ui: true}\n", file)
	for _, ran := range []bool{false, true} {
		for _, stacks := range [][]checkout.Stack{base, change} {
			for i := range stacks {
				stacks[i].Program.Ran = ran
			}
		}
		if ran {
			useCharts([][]checkout.Stack{base, change})
		}
		engines := report.Compare(checkout.Side("main", base), checkout.Side("change", change))
		assert.Contains(t, engines.Markdown(), "Flux upgrades `cilium`, which it owns", ran)
	}
}

func TestPreview_OfNothingIsOneLine(t *testing.T) {
	base := read(t)
	result := report.Compare(checkout.Side("main", base), checkout.Side("change", base))
	assert.Contains(t, result.Markdown(), "\nNothing changes in `apps`, `infra`.\n")
	assert.Less(t, strings.Count(result.Markdown(), "\n"), 10)
	for _, stack := range result.Stacks {
		assert.Equal(t, report.Unchanged, stack.State)
	}
}

func TestPreview_OfAFirstCommitShowsEachStackAsNew(t *testing.T) {
	result := report.Compare(report.Side{Name: "empty"}, checkout.Side("change", read(t)))
	require.Len(t, result.Stacks, 2)
	for _, stack := range result.Stacks {
		assert.Equal(t, report.Added, stack.State)
		assert.Empty(t, stack.Dangers)
	}
	assert.Less(t, len(result.Markdown()), 20_000)
}
