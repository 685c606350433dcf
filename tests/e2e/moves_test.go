//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// nodeAdded adds a Proxmox node before and behind the others. Before them, it would place every machine elsewhere.
func nodeAdded(t *testing.T, l *lab) {
	before := l.machines()
	file := l.stackFile("infra")
	original, err := os.ReadFile(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, os.WriteFile(file, original, 0o600)) }()

	editStackFile(t, file, func(s settings) { s.set("proxmox", map[string]any{"nodes": []any{"pve1", "pve2", "pve3", "pve4"}}) })
	l.pulumi("preview", "--expect-no-changes", "--stack", "infra")

	editStackFile(t, file, func(s settings) { s.set("proxmox", map[string]any{"nodes": []any{"pve4", "pve1", "pve2", "pve3"}}) })
	pin := regexp.MustCompile(`write host: (\S+) at nodePools\[(\d+)\]\.nodes\[(\d+)\] to keep it there`)
	pins := map[string][]string{}
	for _, how := range [][]string{{"preview"}, {"up", "--yes", "--skip-preview"}} {
		out, err := l.try(append([]string{"pulumi", "--non-interactive", "--color=never", "--stack", "infra"}, how...)...)
		require.Error(t, err, "%v would move machines without being told to", how)
		for _, found := range pin.FindAllStringSubmatch(out, -1) {
			pins[found[0]] = found
		}
		require.Len(t, pins, len(before), "%v names every machine that would move:\n%s", how, end(out))
	}
	require.Equal(t, before, l.machines())

	editStackFile(t, file, func(s settings) {
		for _, found := range pins {
			pool, _ := strconv.Atoi(found[2])
			node, _ := strconv.Atoi(found[3])
			s.pool(pool)["nodes"].([]any)[node].(map[string]any)["host"] = found[1]
		}
	})
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	require.Equal(t, before, l.machines())
}

// hostsChanged moves a worker, and lets two control planes change places.
func hostsChanged(t *testing.T, l *lab) {
	before := l.machines()
	hosts := map[string]string{"infra-worker-1": "pve3", "infra-cp-2": "pve3", "infra-cp-3": "pve2"}
	movesTo(t, l, before, hosts)
}

// movesTo pins machines to other hosts, and checks that a run moves them, and changes nothing else of any machine.
func movesTo(t *testing.T, l *lab, before map[string]machine, hosts map[string]string) {
	t.Helper()
	want := maps.Clone(before)
	editStackFile(t, l.stackFile("infra"), func(s settings) {
		for name, host := range hosts {
			require.NotEqual(t, host, before[name].Host)
			s.node(name)["host"] = host
			want[name] = before[name].moved(host)
		}
	})
	out := l.pulumi("preview", "--stack", "infra")
	for name := range hosts {
		require.Regexp(t, `talos-`+name+`-vm +update\b`, out)
	}
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(t, want, l.machines())
	for name, host := range hosts {
		require.Equal(t, host, l.zone(name))
	}
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
}

// zone returns the Proxmox node that the labels of a node name.
func (l *lab) zone(node string) string {
	l.t.Helper()
	return l.field("node/"+node, `{.metadata.labels.topology\.kubernetes\.io/zone}`)
}

// hostEmptied empties a Proxmox node for maintenance, and fills it again: the pinned machine there and the others.
func hostEmptied(t *testing.T, l *lab) {
	const host = "pve2"
	before := l.machines()
	editStackFile(t, l.stackFile("infra"), func(s settings) { s.set("proxmox", map[string]any{"maintenance": []any{host}}) })
	const shared = `proxmox.maintenance: puts infra-cp-\d and infra-cp-\d on pve\d, whose failure would take them all`
	require.Regexp(t, shared, l.pulumiSays(`^warning: `+shared, "up", "--yes", "--skip-preview", "--stack", "infra"))
	want, left, away := maps.Clone(before), 0, l.machines()
	for name, now := range away {
		require.NotEqual(t, host, now.Host, name)
		if before[name].Host == host {
			want[name] = before[name].moved(now.Host)
			left++
		}
	}
	require.Greater(t, left, 1, "a control plane and a worker")
	require.Equal(t, want, away, "no other machine has moved, and no machine is another one")

	editStackFile(t, l.stackFile("infra"), func(s settings) { s.set("proxmox", map[string]any{"maintenance": []any{}}) })
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	for name, was := range before {
		if was.Host == host {
			want[name] = away[name].moved(host)
		}
	}
	require.Equal(t, want, l.machines(), "they are back, and the others are where they were")
}

// TestLifecycle_WhatProxmoxRefusesIsNotTakenForDone empties a Proxmox node whose machine cannot migrate at first, and gives the machine
// memory while it is locked. The provider's state then has what is not, so the next run would find nothing to do.
func TestLifecycle_WhatProxmoxRefusesIsNotTakenForDone(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "refused", func(s settings) {
		s.withoutProviders()
		oneNode(s)
		s.set("gitops", map[string]any{"enabled": false})
	})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	const name, why = "infra-cp-1", "not enough memory on the target"
	before := l.machines()
	home := before[name].Host

	l.must("fault", "proxmox-task-fails", "qmigrate", "--detail", why)
	l.declare("proxmox", map[string]any{"maintenance": []any{home}})
	l.fails(why)
	l.must("fault", "--off", "proxmox-task-fails", "qmigrate")
	l.fails(fmt.Sprintf(`%s: VM %d is on Proxmox node %s, and the state says pve\d: .*; run pulumi refresh, then up again`,
		name, before[name].ID, home))
	require.Equal(t, home, l.machines()[name].Host)

	l.pulumi("refresh", "--yes", "--skip-preview", "--stack", "infra")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	away := l.machines()
	require.NotEqual(t, home, away[name].Host)
	require.Equal(t, map[string]machine{name: before[name].moved(away[name].Host)}, away)

	l.declare("proxmox", map[string]any{"maintenance": []any{}})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(t, map[string]machine{name: away[name].moved(home)}, l.machines())

	// The same for a change that Proxmox VE refuses.
	const locked = "500 VM is locked (backup)"
	request := fmt.Sprintf("PUT /nodes/%s/qemu/%d/config", home, before[name].ID)
	l.must("fault", "proxmox-error", request, "--detail", locked)
	editStackFile(t, l.stackFile("infra"), func(s settings) { s.pool(0)["memory"] = "12GiB" })
	l.fails(regexp.QuoteMeta("VM is locked (backup)"))
	l.must("fault", "--off", "proxmox-error", request)
	l.fails(fmt.Sprintf(`%s: VM %d has memory of \d+ MiB, and the state says 12288: .*; run pulumi refresh, then up again`,
		name, before[name].ID))
	l.pulumi("refresh", "--yes", "--skip-preview", "--stack", "infra")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.NotEqual(t, before[name].Boot, l.machines()[name].Boot, "it has rebooted with its memory")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	unprotectAndDestroy(l)
}

// movedByHand migrates a VM as a person would, in Proxmox VE.
func movedByHand(t *testing.T, l *lab) {
	const name, from, to = "infra-worker-2", "pve2", "pve1"
	before := l.machines()
	require.Equal(t, from, before[name].Host)
	vm := fmt.Sprintf("qemu/%d", before[name].ID)
	var nothing any
	l.proxmox("PUT", "nodes/"+from+"/"+vm+"/config", &nothing, "ide0=none,media=cdrom")
	var upid string
	l.proxmox("POST", "nodes/"+from+"/"+vm+"/migrate", &upid, "target="+to, "online=1", "with-local-disks=1")
	var status struct{ Status, ExitStatus string }
	l.eventually("the migration ends", func() bool {
		l.proxmox("GET", "nodes/"+from+"/tasks/"+upid+"/status", &status)
		return status.Status == "stopped"
	})
	require.Equal(t, "OK", status.ExitStatus)
	l.pulumi("refresh", "--yes", "--skip-preview", "--stack", "infra")

	out, err := l.try("pulumi", "--non-interactive", "--color=never", "up", "--yes", "--skip-preview", "--stack", "infra")
	require.Error(t, err, "up moved the machine back without being told to")
	require.Contains(t, out, name+" was placed on "+to)
	require.Equal(t, to, l.machines()[name].Host)

	editStackFile(t, l.stackFile("infra"), func(s settings) { s.node(name)["host"] = to })
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	want := maps.Clone(before)
	want[name] = before[name].moved(to)
	require.Equal(t, want, l.machines())
	require.Equal(t, to, l.zone(name))
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
}

// secondCheckout runs up in a clone of the project whose backend does not have the state.
func secondCheckout(t *testing.T, l *lab) {
	home, clone := l.home(), filepath.Join(l.home(), "second")
	runGit(t, "clone", "--quiet", filepath.Join("..", ".."), clone)
	file, err := os.ReadFile(l.stackFile("infra"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(clone, "Pulumi.infra.yaml"), file, 0o600))
	backend := filepath.Join(home, "second-state")
	require.NoError(t, os.Mkdir(backend, 0o700))
	// in runs pulumi in the clone, with a backend; "" means the one that has the state.
	in := func(backend string, args ...string) (string, error) {
		const script = `cd "$1" && exec env ${2:+PULUMI_BACKEND_URL="file://$2"} pulumi --non-interactive --color=never "${@:3}"`
		return l.try(append([]string{"bash", "-c", script, "bash", clone, backend}, args...)...)
	}
	must := func(backend string, args ...string) string {
		t.Helper()
		out, err := in(backend, args...)
		require.NoError(t, err, "%v\n%s", args, end(out))
		return out
	}
	must(backend, "stack", "init", "infra")
	before, tasks, volumes := l.machines(), l.tasks(), l.status().Volumes

	out, err := in(backend, "up", "--yes", "--skip-preview", "--stack", "infra")
	require.Error(t, err, "the second checkout has created the cluster again")
	for name, machine := range before {
		require.Contains(t, out, fmt.Sprintf("VM %d (%s) on Proxmox node %s is not in this stack's state", machine.ID, name, machine.Host))
	}
	require.Contains(t, out, "use the backend and stack whose state has it")
	for _, urn := range urnsIn(t, must(backend, "stack", "export", "--stack", "infra")) {
		types := strings.Split(strings.Split(urn, "::")[2], "$")
		require.Regexp(t, `^(pulumi:pulumi:Stack$|pulumi:index:Stash$|pulumi:providers:|slipway:)`, types[len(types)-1], "the refused up has registered %s", urn)
	}
	must(backend, "destroy", "--yes", "--skip-preview", "--stack", "infra")
	must(backend, "stack", "rm", "--yes", "--preserve-config", "--stack", "infra")
	require.Equal(t, tasks, l.tasks(), "Proxmox VE was given work")
	require.Equal(t, volumes, l.status().Volumes)
	require.Equal(t, before, l.machines())

	must("", "up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
}

// oneRebuilt replaces the VM of the control plane that was bootstrapped first.
func oneRebuilt(t *testing.T, l *lab) {
	const name = "infra-cp-1"
	identity := func() string {
		return l.field("namespace/kube-system", "{.metadata.uid}") + " " + l.field("configmap/cilium-config", "{.metadata.uid}")
	}
	cluster, before := identity(), l.machines()

	vms := slices.DeleteFunc(urns(t, l, "infra"), func(urn string) bool { return !strings.HasSuffix(urn, name+"-vm") })
	require.Len(t, vms, 1)
	l.pulumi("state", "unprotect", vms[0], "--yes", "--stack", "infra")
	out := l.pulumi("up", "--yes", "--skip-preview", "--replace", vms[0], "--stack", "infra")
	require.Contains(t, out, "etcd already exists")
	require.Contains(t, out, "gate-probe", "the gates vouch for the new machine, too")

	after := l.machines()
	require.NotEqual(t, before[name].SMBIOS, after[name].SMBIOS, "it is another VM")
	delete(before, name)
	delete(after, name)
	require.Equal(t, before, after, "the other machines are the same")
	require.Equal(t, cluster, identity(), "the cluster and what is in it are the same")
	members := strings.TrimSpace(l.in("talosctl", "--context=infra", "--nodes=10.25.11.11", "etcd", "members"))
	require.Len(t, strings.Split(members, "\n"), 1+3, "a header and the members:\n%s", members)
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
}
