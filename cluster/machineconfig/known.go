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

// typo is the most letters in which a name that is refused differs from one that the components know.
const typo = 2

// mistypedFor returns the arguments that the components of a version do not know, and with which they do not start, where they are almost
// those of a name that is known. Others are left to the API server that runs and to the first node: a later patch release may know them.
func (a argued) mistypedFor(version semver.Version) (all []wrong) {
	table := tableOf(version.Minor)
	if table == nil {
		return nil
	}
	check := func(part, kind, name, what string) {
		meant := syntax.Nearest(name, table[kind], typo)
		if meant != "" && !slices.Contains(table[kind], name) {
			problem := fmt.Sprintf("%s is %s in Kubernetes 1.%d", name, what, version.Minor)
			all = append(all, wrong{part: part, item: name, problem: problem, remedy: "did you mean " + meant + "?"})
		}
	}
	for _, id := range []string{k8s.APIServerID, k8s.ControllerManagerID, k8s.SchedulerID, k8s.KubeletID} {
		for _, argument := range a.arguments[id] {
			flag, value, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
			part := componentParts[id] + ".extraArgs." + flag
			switch flag = strings.ReplaceAll(flag, "_", "-"); flag { // the components do likewise
			case "feature-gates":
				for _, gate := range gatesOf(value) {
					check(part, featureGates, gate, "no feature gate")
				}
			case "enable-admission-plugins", "disable-admission-plugins":
				for _, plugin := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' }) {
					check(part, admissionPlugins, plugin, "no admission plugin")
				}
			default:
				check(part, id, flag, "no flag of "+id)
			}
		}
	}
	for _, gate := range a.gates {
		check(componentParts[k8s.KubeletID]+".extraConfig.featureGates", featureGates, gate, "no feature gate")
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
