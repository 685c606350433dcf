package machineconfig

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// argumentTables has a table for a minor release of Kubernetes: what its components themselves say that they take. Each line is a kind, a
// name and, of flags and fields, the type of the value, such as int32[0,100] or string{none,static}, or of an alias what it stands for. Of
// fields, a.b is in a mapping, a[] an item of a list, a.* a value of a mapping with any keys, and =a has the fields of a. A test in
// lab/tools/kube compares it with them, and writes the next one.
//
//go:embed arguments/*.txt
var argumentTables embed.FS

// The kinds of the table that are not the flags of a component.
const (
	featureGates     = "feature-gate"
	admissionPlugins = "admission-plugin"
	kubeletFields    = "kubelet-field" // of KubeletConfiguration
	controllers      = "controller"    // of kube-controller-manager
	schedulerFields  = "scheduler-field"
	schedulerPlugins = "scheduler-plugin"
	etcdFeatureGates = "etcd-feature-gate"
	gateDefaults     = "gate-default" // of those in gateNeeds: whether it is on, and which of AllAlpha and AllBeta sets it
	gateNeeds        = "gate-needs"   // the gates without which one that is on is refused
	apis             = "api"          // GROUP/VERSION, also of what is not served, and the words for several, such as api/beta
)

// takes is what the components of a minor release take: by kind and name, the type of the value, or what an alias stands for, or "".
type takes map[string]map[string]string

// names returns what a kind has, sorted.
func (t takes) names(kind string) []string { return slices.Sorted(maps.Keys(t[kind])) }

// has tells whether a kind has a name.
func (t takes) has(kind, name string) bool {
	_, is := t[kind][name]
	return is
}

// tables are the tables, by their releases.
var tables = sync.OnceValue(func() map[string]takes {
	all := map[string]takes{}
	files, _ := argumentTables.ReadDir("arguments")
	for _, file := range files {
		text, _ := argumentTables.ReadFile("arguments/" + file.Name())
		table := takes{}
		for line := range strings.Lines(string(text)) {
			parts := append(strings.Fields(line), "")
			if table[parts[0]] == nil {
				table[parts[0]] = map[string]string{}
			}
			table[parts[0]][parts[1]] = parts[2]
		}
		all[strings.TrimSuffix(file.Name(), ".txt")] = table
	}
	return all
})

// tableOf returns the table of a minor release. It is nil for a release without one, of which nothing is refused.
func tableOf(minor uint64) takes { return tables()[fmt.Sprintf("1.%d", minor)] }

// oldestTable is the minor release of the oldest table.
const oldestTable = 35

// removedBy returns the minor release, up to another one, that was the first without a name that one before it knew; 0 for none.
func removedBy(kind, name string, upTo uint64) uint64 {
	removed, known := uint64(0), false
	for minor := uint64(oldestTable); minor <= upTo; minor++ {
		switch table := tableOf(minor); {
		case table == nil:
		case table.has(kind, name):
			removed, known = 0, true
		case known && removed == 0:
			removed = minor
		}
	}
	return removed
}
