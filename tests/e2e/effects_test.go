//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/tests/e2e/served"
)

// row is a change of a row of the table in docs/changes.md. TestMatrix_EachRowIsMadeByATestOrSaysWhyNot of tests/docs compares the words.
type row struct {
	cell    string            // the row's first cell
	does    string            // the beginning of its last cell
	before  func(*lab)        // what the change needs
	edit    func(settings)    // the change of the stack file
	arrived func(*lab) bool   // whether the cluster has the change, at once or soon after the run; nil if nothing in the cluster shows it
	stays   func(*lab) string // what must be the same afterwards
	says    string            // pattern of the error, if the change is refused
}

// run is one `up` with the changes of rows.
type run struct {
	rows   []row
	says   string // pattern of warnings that `up` may print
	effect effect
}

// make returns what makes the changes, and compares what they touch with the effect.
func (r run) make(load *load) func(*lab) {
	return func(l *lab) {
		stayed := map[string]string{}
		for _, one := range r.rows {
			if one.before != nil {
				one.before(l)
			}
			if one.stays != nil {
				stayed[one.cell] = one.stays(l)
			}
		}
		before, began := l.survey(), time.Now()
		for _, one := range r.rows {
			editStackFile(l.t, l.stackFile("infra"), one.edit)
		}
		l.pulumiSays(r.says, "up", "--yes", "--skip-preview", "--stack", "infra")
		for _, one := range r.rows {
			if one.arrived != nil {
				l.eventually("the cluster has the change of "+one.cell, func() bool { return one.arrived(l) })
			}
			if one.stays != nil {
				assert.Equal(l.t, stayed[one.cell], one.stays(l), one.cell)
			}
		}
		r.effect.check(l.t, before, l.survey(), load.served(l.t, began))
	}
}

// effect is what a change touches. Everything else must be as before.
type effect struct {
	replaced []string // patterns of pods, by namespace and name: all that were there are others now
	drained  []string // nodes whose pods are evicted
	rebooted []string // nodes that reboot, drained before
	gone     []string // nodes that are removed, drained before
}

// check compares what was there before with what is there now.
func (e effect) check(t *testing.T, before, after survey, seen served.Report) {
	t.Helper()
	for name, was := range before.machines {
		is, exists := after.machines[name]
		if slices.Contains(e.gone, name) {
			assert.False(t, exists, "%s is still there", name)
			continue
		}
		assert.Equal(t, slices.Contains(e.rebooted, name), was.Boot != is.Boot, "%s: whether it has rebooted", name)
		was.Boot = is.Boot
		assert.Equal(t, was, is, "%s is another machine", name)
	}
	away := slices.Concat(e.drained, e.rebooted, e.gone)
	var touched []string
	for name, was := range before.pods {
		expected := slices.Contains(away, was.node) || slices.ContainsFunc(e.replaced, func(pattern string) bool {
			return regexp.MustCompile(pattern).MatchString(name)
		})
		if is := after.pods[name]; !expected && is != was {
			touched = append(touched, name+" on "+was.node+" with "+was.state+" is "+is.state)
		}
	}
	assert.Empty(t, touched, "pods that are gone, are others or have restarted")
	for _, pattern := range e.replaced {
		of := before.podsOf(pattern)
		assert.NotEmpty(t, of, pattern)
		for _, name := range of {
			assert.NotEqual(t, before.pods[name], after.pods[name], "%s was not replaced", name)
		}
	}
	for node := range seen.Away {
		if _, known := before.machines[node]; known && !slices.Contains(away, node) {
			assert.Fail(t, "a node was cordoned or not Ready", node)
		}
	}
	switch {
	case len(e.rebooted) > 0:
		assert.Equal(t, 1, seen.MostAway, "nodes that were away at once")
		return
	case len(e.drained) > 0:
		assert.LessOrEqual(t, seen.MostAway, 1, "nodes that were away at once")
	}
	assert.Zero(t, seen.ServersAway, "API servers that were away")
}

// survey is what changes may touch.
type survey struct {
	machines map[string]machine
	pods     map[string]pod // by namespace and name, without those that end or whose node is gone, and those of Jobs, which come and go
}

// pod is what tells a pod from the one before it.
type pod struct{ node, state string }

func (s survey) podsOf(pattern string) (names []string) {
	for name := range s.pods {
		if regexp.MustCompile(pattern).MatchString(name) {
			names = append(names, name)
		}
	}
	return names
}

func (l *lab) survey() survey {
	l.t.Helper()
	all := survey{machines: l.machines(), pods: map[string]pod{}}
	for line := range strings.Lines(l.kubectl("get", "--all-namespaces", "pods", "--selector=!job-name", "--output=jsonpath="+
		`{range .items[*]}{.metadata.namespace}/{.metadata.name}{"\t"}{.spec.nodeName}{"\t"}{.metadata.deletionTimestamp}{"\t"}`+
		`{.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}`)) {
		parts := strings.Split(strings.TrimRight(line, "\n"), "\t")
		require.Len(l.t, parts, 4, line)
		if _, runs := all.machines[parts[1]]; runs && parts[2] == "" {
			all.pods[parts[0]] = pod{node: parts[1], state: parts[3]}
		}
	}
	require.Greater(l.t, len(all.pods), 20)
	return all
}

// renumber gives the network and all nodes other addresses.
func (s settings) renumber(from, to string) {
	for _, key := range []string{"slipway:network", "slipway:nodePools"} {
		text, err := yaml.Marshal(s[key])
		if err == nil {
			var value any
			if err = yaml.Unmarshal([]byte(strings.ReplaceAll(string(text), from, to)), &value); err == nil {
				s[key] = value
			}
		}
		if err != nil {
			panic("the settings were YAML: " + err.Error())
		}
	}
}

// changeableTree commits a small tree of what reads settings: a pool of load balancers, their announcement, a Gateway, and a ConfigMap. It
// is there twice, in two folders.
func (l *lab) changeableTree() {
	l.t.Helper()
	l.smallTree()
	text, err := os.ReadFile(filepath.Join(l.project, "kubernetes", "infrastructure", "networking", "cilium.yaml"))
	require.NoError(l.t, err)
	layers := strings.Split(string(text), "\n---\n")
	require.Contains(l.t, layers[0], "name: cilium-ipam")
	require.Contains(l.t, layers[1], "name: cilium-announce")
	infra := filepath.Join(l.project, "kubernetes", "clusters", "infra")
	for file, text := range map[string]string{
		"kustomization.yaml": `{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization, ` +
			`resources: [network.yaml, entrance.yaml, greeting.yaml]}`,
		"network.yaml":  layers[0] + "\n---\n" + layers[1],
		"entrance.yaml": entrance,
		"greeting.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: greeting, namespace: flux-system}, ` +
			`data: {words: "${GREETING}"}}`,
	} {
		require.NoError(l.t, os.WriteFile(filepath.Join(infra, "workloads", file), []byte(text+"\n"), 0o600))
	}
	require.NoError(l.t, os.CopyFS(filepath.Join(l.project, "kubernetes", "clusters", "moved"), os.DirFS(infra)))
	l.commit("the tree twice", nil)
}
