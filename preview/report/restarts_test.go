package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// restartsOf returns what restarts if a cluster that base describes is changed. The cluster has every version.
func restartsOf(t *testing.T, base, change func(*Stack)) []string {
	t.Helper()
	result := Compare(side(base), side(base, change))
	require.Len(t, result.Stacks, 1)
	return result.Stacks[0].Restarts
}

// side describes a cluster that has every version, with changes.
func side(changes ...func(*Stack)) Side {
	return declared(func(s *Stack) {
		for key, value := range map[string]string{
			"talos.version": "v1.12.7", "kubernetes.version": "v1.35.8", "cilium.version": "1.18.6", "talos.extensions[0]": "siderolabs/a",
			"lifecycle.certificateAuthorities.kubernetes": "1",
		} {
			s.Keys[key] = value
		}
		s.Charts = []Chart{{Name: "cilium", Version: "1"}, {Name: "coredns", Version: "1"}, {Name: "spegel", Version: "1"}}
		s.Owners = map[string]string{"cilium": "pulumi", "coredns": "pulumi", "spegel": "flux"}
		for _, change := range changes {
			if change != nil {
				change(s)
			}
		}
	})
}

// everything changes what each step of a run restarts.
func everything(s *Stack) {
	s.Keys["lifecycle.certificateAuthorities.kubernetes"] = "2"
	s.Keys["talos.version"], s.Keys["kubernetes.version"] = "v1.12.8", "v1.35.9"
	s.Machines[0].Parts = append(s.Machines[0].Parts, Part{Generation, "generation", "2"})
	s.Machines[1].Parts[0].Value, s.Machines[3].Parts[0].Value = "16GiB", "16GiB"
	for i := range s.Machines {
		s.Machines[i].Configuration = strings.ReplaceAll(s.Machines[i].Configuration, "/x", "/y")
	}
	for i := range s.Charts {
		s.Charts[i].Version = "2"
	}
	s.Program.Resources[1].Inputs = map[string]any{"triggers": []any{"two"}}
}

// assertInOrder asserts that each sentence begins as said.
func assertInOrder(t *testing.T, sentences []string, begin ...string) {
	t.Helper()
	require.Len(t, sentences, len(begin), strings.Join(sentences, "\n"))
	for i, text := range begin {
		assert.Truef(t, strings.HasPrefix(sentences[i], text), "%s: %s", text, sentences[i])
	}
}

func TestRestarts_StandInTheOrderOfAnUp(t *testing.T) {
	assertInOrder(t, restartsOf(t, nil, everything),
		"`up` replaces Kubernetes' CA",
		"`up` drains `cp-1` and shuts the machines down, control planes first, before any other machine changes. The VMs of `cp-1` are then",
		"Proxmox reboots `cp-2`, `worker-1` for",
		"Talos `v1.12.8` instead of `v1.12.7`: `up` drains, upgrades and reboots all machines",
		"Kubernetes `v1.35.9` instead of `v1.35.8`:",
		"Talos reboots `cp-2`, `cp-3`, `worker-1` once more for `machine.files[0].path`",
		"Helm upgrades `cilium`. Its agents restart",
		"Helm upgrades `coredns`.",
		"Flux upgrades `spegel`, which it owns",
		"Along the way, these commands run again, gates among them: `gate-probe`.")
}

func TestRestarts_OfWorkersThatJoinAfterTheGateComeAfterCilium(t *testing.T) {
	assertInOrder(t, restartsOf(t, func(s *Stack) { s.Keys["workers.join"] = "afterGate" }, everything),
		"`up` replaces Kubernetes' CA", "`up` drains `cp-1`",
		"Proxmox reboots `cp-2` for", "Talos `v1.12.8` instead", "Kubernetes `v1.35.9` instead", "Talos reboots `cp-2`, `cp-3` once more",
		"Helm upgrades `cilium`",
		"Proxmox reboots `worker-1` for", "Talos reboots `worker-1` once more",
		"Helm upgrades `coredns`", "Flux upgrades `spegel`", "Along the way")
}

func TestRestarts_OfOtherExtensionsAreAnUpgradeOfTalos(t *testing.T) {
	const upgrades = ": `up` drains, upgrades and reboots all machines"
	for name, test := range map[string]struct {
		change func(map[string]string)
		says   string
	}{
		"more": {func(keys map[string]string) { keys["talos.extensions[1]"] = "siderolabs/b" }, "Talos with `siderolabs/b`"},
		"less": {func(keys map[string]string) { delete(keys, "talos.extensions[0]") }, "Talos without `siderolabs/a`"},
		"another": {
			func(keys map[string]string) { keys["talos.extensions[0]"] = "siderolabs/b" }, "Talos with `siderolabs/b`, without `siderolabs/a`",
		},
		"and another version": {
			func(keys map[string]string) {
				keys["talos.extensions[1]"], keys["talos.version"] = "siderolabs/b", "v1.12.8"
			},
			"Talos `v1.12.8` instead of `v1.12.7`, with `siderolabs/b`",
		},
	} {
		t.Run(name, func(t *testing.T) {
			assertInOrder(t, restartsOf(t, nil, func(s *Stack) { test.change(s.Keys) }), test.says+upgrades)
		})
	}
	two := func(first, second string) func(*Stack) {
		return func(s *Stack) { s.Keys["talos.extensions[0]"], s.Keys["talos.extensions[1]"] = first, second }
	}
	assertInOrder(t, restartsOf(t, two("a", "b"), two("b", "a")), "Talos with its extensions in another order"+upgrades)
}

func TestRestarts_OfConfigurationsDependOnTheReleaseOfTalos(t *testing.T) {
	on := func(talos string, more ...func(*Stack)) func(*Stack) {
		return func(s *Stack) {
			s.Keys["talos.version"] = talos
			for i := range s.Machines {
				s.Machines[i].Configuration = "machine.files[0].path = /etc/cri/conf.d/20-customization.part\nmachine.files[0].content = a\n"
			}
			for _, change := range more {
				change(s)
			}
		}
	}
	add := func(text string) func(*Stack) {
		return func(s *Stack) {
			for i := range s.Machines {
				s.Machines[i].Configuration = strings.Replace(s.Machines[i].Configuration, "content = a\n", text, 1)
			}
		}
	}
	for name, one := range map[string]struct {
		text          string
		before, since []string
	}{
		"containerd": {"content = b\n", []string{"Talos reboots `cp-1`, `cp-2`, `cp-3`, `worker-1` for `machine.files[0].content`"},
			[]string{"Talos restarts containerd on `cp-1`, `cp-2`, `cp-3`, `worker-1` for `containerd's settings in machine.files`"}},
		"environment": {"content = a\nmachine.env.a = b\n", []string{"Talos reboots `cp-1`"},
			[]string{"`up` reboots `cp-1`, `cp-2`, `cp-3`, `worker-1` for `machine.env`, each drained and in its turn"}},
		"etcd": {"content = a\ncluster.etcd.extraArgs.a = b\n",
			[]string{"`up` reboots `cp-1`, `cp-2`, `cp-3` for `cluster.etcd`", "Talos takes over the changed configuration of `worker-1`"},
			[]string{"`up` reboots `cp-1`, `cp-2`, `cp-3` for `cluster.etcd`", "Talos takes over the changed configuration of `worker-1`"}},
		"a rule of udev": {"content = a\nmachine.udev.rules[0] = b\n", []string{"Talos reboots `cp-1`"},
			[]string{"Talos takes over the changed configuration of `cp-1`, `cp-2`, `cp-3`, `worker-1` without a reboot"}},
	} {
		t.Run(name, func(t *testing.T) {
			assertInOrder(t, restartsOf(t, on("v1.13.9"), on("v1.13.9", add(one.text))), one.before...)
			assertInOrder(t, restartsOf(t, on("v1.14.6"), on("v1.14.6", add(one.text))), one.since...)
		})
	}
}

// The configuration of an extension comes once the extension is there.
func TestRestarts_AConfigurationOfAnUpgradedMachineComesWithoutAnotherReboot(t *testing.T) {
	assertInOrder(t, restartsOf(t, nil, func(s *Stack) {
		s.Keys["talos.extensions[1]"] = "siderolabs/lldpd"
		s.Machines[0].Configuration += "ExtensionServiceConfig lldpd.a = 1\n"
	}), "Talos with `siderolabs/lldpd`", "Talos takes over the changed configuration of `cp-1` without another reboot")
}

func TestRestarts_ImagesOfTheUpgradeRestartNothingMore(t *testing.T) {
	names := func(installer, kubelet string) func(*Stack) {
		return func(s *Stack) {
			s.Machines[0].Configuration += "machine.install.image = " + installer + "\nmachine.kubelet.image = " + kubelet + "\n"
		}
	}
	former := names("a", "b")
	upgraded := func(talos, kubernetes string, more func(*Stack)) func(*Stack) {
		return func(s *Stack) {
			s.Keys["talos.version"], s.Keys["kubernetes.version"] = talos, kubernetes
			s.Machines[0].Configuration = declared(nil).Stacks[0].Machines[0].Configuration
			more(s)
		}
	}
	assertInOrder(t, restartsOf(t, former, upgraded("v1.12.8", "v1.35.9", names("c", "d"))),
		"Talos `v1.12.8`", "Kubernetes `v1.35.9`",
		"The configuration of `cp-1` gets the images of the upgrade, for which nothing restarts any more.")
	assertInOrder(t, restartsOf(t, former, upgraded("v1.12.7", "v1.35.9", names("a", "d"))),
		"Kubernetes `v1.35.9`", "The configuration of `cp-1` gets the images of the upgrade")
	assertInOrder(t, restartsOf(t, former, upgraded("v1.12.8", "v1.35.8", names("c", "d"))),
		"Talos `v1.12.8`", "Talos takes over the changed configuration of `cp-1` without another reboot")
	assertInOrder(t, restartsOf(t, former, upgraded("v1.12.7", "v1.35.8", names("a", "d"))),
		"Talos takes over the changed configuration of `cp-1` without a reboot")
}

// The versions are compared after new VMs and before everything else. Flux waits for no run.
func TestRestarts_EndWhereUpRefusesTheVersions(t *testing.T) {
	for name, test := range map[string]struct {
		key, version string
		why          string
	}{
		"an older Talos":      {"talos.version", "v1.12.6", "talos.version: v1.12.6 is older than v1.12.7, which runs on all nodes"},
		"an older Kubernetes": {"kubernetes.version", "v1.34.9", "kubernetes.version: v1.34.9 is older than v1.35.8"},
		"an older Cilium":     {"cilium.version", "1.18.5", "cilium.version: 1.18.5 is older than 1.18.6"},
		"a skipped minor":     {"cilium.version", "1.20.0", "cilium.version: 1.20.0 skips minor releases after 1.18.6"},
	} {
		t.Run(name, func(t *testing.T) {
			base := side(nil)
			change := side(everything, func(s *Stack) {
				s.Keys["talos.version"], s.Keys["kubernetes.version"], s.Keys["cilium.version"] = "v1.12.7", "v1.35.8", "1.18.6"
				s.Keys[test.key] = test.version
			})
			stack := Compare(base, change).Stacks[0]
			require.NotEmpty(t, stack.Dangers)
			assert.Contains(t, stack.Dangers[0], "`up` refuses this change: "+test.why)
			assertInOrder(t, stack.Restarts, "`up` replaces Kubernetes' CA", "`up` drains `cp-1`", "Proxmox reboots", "Here `up` stops",
				"Flux upgrades `spegel`")
		})
	}
}

func TestDangers_SayThatFluxInstallsWhatUpRefuses(t *testing.T) {
	owned := func(s *Stack) { s.Owners["cilium"] = "flux" }
	stack := Compare(side(owned), side(owned, func(s *Stack) {
		s.Keys["cilium.version"], s.Charts[0].Version = "1.20.0", "1.20.0"
	})).Stacks[0]
	require.Len(t, stack.Dangers, 1)
	assert.Contains(t, stack.Dangers[0], "1.20.0 skips minor releases after 1.18.6")
	assert.Contains(t, stack.Dangers[0], "Flux, which owns it, does not refuse it.")
	assertInOrder(t, stack.Restarts, "Here `up` stops", "Flux upgrades `cilium`")
}

func TestRestarts_OfAChartAreThoseOfItsOwner(t *testing.T) {
	owner := func(name string) func(*Stack) { return func(s *Stack) { s.Owners["cilium"] = name } }
	and := func(version string, change func(*Stack)) func(*Stack) {
		return func(s *Stack) {
			s.Charts[0].Version = version
			change(s)
		}
	}
	for name, test := range map[string]struct {
		base, change func(*Stack)
		says         string
		agents       bool // restart
	}{
		"Pulumi's":  {owner("pulumi"), and("2", owner("pulumi")), "Helm upgrades `cilium`.", true},
		"Flux's":    {owner("flux"), and("2", owner("flux")), "Flux upgrades `cilium`, which it owns", true},
		"Argo CD's": {owner("argocd"), and("2", owner("argocd")), "Argo CD upgrades `cilium`, which it owns", true},
		"handed back by Argo CD": {
			owner("argocd"), owner("pulumi"), "Pulumi takes `cilium` back from Argo CD, for which nothing restarts.", false,
		},
		"handed over": {
			owner("pulumi"), owner("flux"), "Flux takes `cilium` over from Pulumi, for which nothing restarts.", false,
		},
		"handed over, and different": {
			owner("pulumi"), and("2", owner("flux")), "Flux takes `cilium` over from Pulumi, and then upgrades it", true,
		},
		"handed back": {
			owner("flux"), owner("pulumi"), "Pulumi takes `cilium` back from Flux, for which nothing restarts.", false,
		},
		"handed back, and different": {
			owner("flux"), and("2", owner("pulumi")), "Pulumi takes `cilium` back from Flux, and Helm upgrades it.", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			sentences := restartsOf(t, test.base, test.change)
			assertInOrder(t, sentences, test.says)
			assert.Equal(t, test.agents, strings.HasSuffix(sentences[0], " Its agents restart, two nodes at a time."))
		})
	}
}

func TestRestarts_OfMachinesThatLeaveSayWhatBecomesOfTheirVMs(t *testing.T) {
	assertInOrder(t, restartsOf(t, nil, func(s *Stack) {
		s.Machines[0].VMID = 999
		s.Machines = s.Machines[:3]
	}), "`up` drains `worker-1` and shuts the machines down, control planes first, before any other machine changes. "+
		"The VMs of `worker-1` are deleted at the end.", "The VMs of `cp-1` are deleted and made anew, without a drain.")
}

func TestRestarts_OfADeclaredTimeAreRebootsOfWhatHasBootedBefore(t *testing.T) {
	since := func(time string) func(*Stack) {
		return func(s *Stack) { s.Keys["lifecycle.bootedSince"] = time }
	}
	assertInOrder(t, restartsOf(t, nil, since("2026-01-02T03:04:05Z")),
		"`lifecycle.bootedSince` `2026-01-02T03:04:05Z`: `up` drains and reboots the nodes that have booted before, "+
			"control planes one after the other")
	assert.Empty(t, restartsOf(t, since("2026-01-02T03:04:05Z"), since("2026-01-02T03:04:05Z")))
	assert.Empty(t, restartsOf(t, since("2026-01-02T03:04:05Z"), func(*Stack) {}), "without the key, nothing reboots")
}
