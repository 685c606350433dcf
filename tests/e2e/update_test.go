//go:build e2e

package e2e

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// former is the commit whose program makes the cluster that this one's takes over: the first one with the versions that the lab runs by
// default. SLIPWAY_FORMER names another, such as the tag of a release.
const former = "b70d7874"

// TestUpdate_TouchesNoPodAndNoMachineOfAFormerProgramsCluster brings a cluster up with the program and the tree of a former commit, and
// then runs this one's, with the same stack file. Only Flux Operator may be rolled out. A further run changes nothing, and the cluster is
// destroyed.
func TestUpdate_TouchesNoPodAndNoMachineOfAFormerProgramsCluster(t *testing.T) {
	t.Parallel()
	clone, from := cloneOf(t), cmp.Or(os.Getenv("SLIPWAY_FORMER"), former)
	programOf(t, clone, from)
	runGit(t, "-C", clone, "checkout", "--quiet", from, "--", "Pulumi.infra.yaml")
	l := labOfClone(t, clone, "update", func(s settings) {
		s.withoutProviders()
		skip := map[string]any{"skip": true}
		s.set("crds", map[string]any{"victoriaMetrics": skip, "cloudnativePG": skip, "rook": skip, "cephCSI": skip})
		s.set("gitops", map[string]any{"timeout": "4m", "settings": map[string]any{"DOMAIN": "infra.home.arpa"}})
		s.pool(1)["nodes"] = s.pool(1)["nodes"].([]any)[:1]
	})
	l.smallTree()
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	load := startLoad(l)
	load.during(l, []change{{"this program", func(l *lab) {
		before, began := l.survey(), time.Now()
		programOf(l.t, l.project, "origin/main") // what was cloned
		l.smallTree()
		l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
		for _, pod := range before.podsOf("^flux-system/flux-operator-") { // new values of its chart, which stop nothing
			delete(before.pods, pod)
		}
		effect{}.check(l.t, before, l.survey(), load.served(l.t, began))
	}}})
}

// programOf makes the program of a clone that of a commit.
func programOf(t *testing.T, clone, commit string) {
	t.Helper()
	of := []string{"cluster", "cmd", "components", "internal", "kubernetes", "stacks", "go.mod", "go.sum", "main.go"}
	for _, part := range of {
		require.NoError(t, os.RemoveAll(filepath.Join(clone, part)))
	}
	runGit(t, append([]string{"-C", clone, "checkout", "--quiet", commit, "--"}, of...)...)
}
