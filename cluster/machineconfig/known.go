package machineconfig

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/blang/semver/v4"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// argumentTables has a table for a minor release of Kubernetes: what its components themselves say that they take, one of a kind in each
// line. A test in lab/tools/kube compares it with them, and writes the next one.
//
//go:embed arguments/*.txt
var argumentTables embed.FS

// The kinds of the table that are not the flags of a component.
const (
	featureGates     = "feature-gate"
	admissionPlugins = "admission-plugin"
	kubeletFields    = "kubelet-field" // of KubeletConfiguration
)

// takes is what the components of a minor release take: names by kind.
type takes map[string][]string

// tableOf reads the table of a minor release. It is nil for a release without one, of which nothing is refused.
var tableOf = func() func(minor uint64) takes {
	read := sync.OnceValue(func() map[string]takes {
		tables := map[string]takes{}
		files, _ := argumentTables.ReadDir("arguments")
		for _, file := range files {
			text, _ := argumentTables.ReadFile("arguments/" + file.Name())
			table := takes{}
			for line := range strings.Lines(string(text)) {
				kind, name, _ := strings.Cut(strings.TrimSpace(line), " ")
				table[kind] = append(table[kind], name)
			}
			tables[strings.TrimSuffix(file.Name(), ".txt")] = table
		}
		return tables
	})
	return func(minor uint64) takes { return read()[fmt.Sprintf("1.%d", minor)] }
}()

// oldestTable is the minor release of the oldest table.
const oldestTable = 35

// typo is the most letters in which a name that is refused differs from one that the components know.
const typo = 2

// removedBy returns the minor release, up to another one, that was the first without a name that one before it knew; 0 for none.
func removedBy(kind, name string, upTo uint64) uint64 {
	removed, known := uint64(0), false
	for minor := uint64(oldestTable); minor <= upTo; minor++ {
		switch table := tableOf(minor); {
		case table == nil:
		case slices.Contains(table[kind], name):
			removed, known = 0, true
		case known && removed == 0:
			removed = minor
		}
	}
	return removed
}

// unknownTo returns the arguments that the components of a version do not take, and with which they do not start: what an earlier release
// knew, and what is almost the name of one that is known. Others are left to the API server that runs and to the first node: a later patch
// release may know them. go-kubernetes knows of removals, too, but of some releases not all, or none.
func (a argued) unknownTo(version semver.Version) (all []wrong) {
	table := tableOf(version.Minor)
	if table == nil {
		return nil
	}
	check := func(part, kind, name, what string) {
		if slices.Contains(table[kind], name) {
			return
		}
		one := wrong{part: part, item: name, remedy: removeIt}
		if removed := removedBy(kind, name, version.Minor); removed != 0 {
			one.problem = fmt.Sprintf("%s is no %s any more since Kubernetes 1.%d", name, what, removed)
			all = append(all, one)
			return
		}
		if meant := syntax.Nearest(name, table[kind], typo); meant != "" {
			one.problem = fmt.Sprintf("%s is no %s in Kubernetes 1.%d", name, what, version.Minor)
			one.remedy = "did you mean " + meant + "?"
			all = append(all, one)
		}
	}
	for _, id := range []string{k8s.APIServerID, k8s.ControllerManagerID, k8s.SchedulerID, k8s.KubeletID} {
		for _, argument := range a.arguments[id] {
			flag, value, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
			part := componentParts[id] + ".extraArgs." + flag
			switch flag = strings.ReplaceAll(flag, "_", "-"); flag { // the components do likewise
			case "feature-gates":
				for _, gate := range gatesOf(value) {
					check(part, featureGates, gate, "feature gate")
				}
			case "enable-admission-plugins", "disable-admission-plugins":
				for _, plugin := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' }) {
					check(part, admissionPlugins, plugin, "admission plugin")
				}
			default:
				check(part, id, flag, "flag of "+id)
			}
		}
	}
	config := componentParts[k8s.KubeletID] + ".extraConfig."
	for _, gate := range a.gates {
		check(config+"featureGates", featureGates, gate, "feature gate")
	}
	for _, field := range a.fields { // Talos refuses an unknown one, and leaves the kubelet as it is, without a word
		check(config+field, kubeletFields, field, "field of KubeletConfiguration")
	}
	return append(all, a.unknownToEtcd(table)...)
}

// unknownToEtcd returns the arguments that are almost flags of etcd. Talos chooses etcd's release by itself, so that no removal is known.
func (a argued) unknownToEtcd(table takes) (all []wrong) {
	for _, argument := range a.arguments[etcdID] {
		flag, _, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		if meant := syntax.Nearest(flag, table[etcdID], typo); meant != "" && !slices.Contains(table[etcdID], flag) {
			all = append(all, wrong{
				part: componentParts[etcdID] + ".extraArgs." + flag, item: flag,
				problem: flag + " is no flag of etcd", remedy: "did you mean " + meant + "?",
			})
		}
	}
	return all
}

// gatesOf returns the names in a list of feature gates, GATE=BOOLEAN or COMPONENT:GATE=BOOLEAN, separated by commas. Spaces count for nothing.
func gatesOf(list string) (names []string) {
	for one := range strings.SplitSeq(list, ",") {
		name, _, _ := strings.Cut(one, "=")
		if name = strings.TrimSpace(name[strings.LastIndex(name, ":")+1:]); name != "" {
			names = append(names, name)
		}
	}
	return names
}
