//go:build matrix

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/e2e/faults"
)

// What a run of the matrix waits for.
const (
	matrixStack   = "infra"
	gateTimeout   = "60s"            // longer than a healthy gate takes here, many times
	stillWaiting  = 20 * time.Second // an up that waits for this long without ending is one that waits
	longestRepair = 15 * time.Minute // the Talos provider alone retries for ten minutes
)

// TestMatrix breaks a cluster on its way up in every way that the matrix knows, and repairs it.
func TestMatrix(t *testing.T) {
	for i, lane := range faults.Lanes {
		t.Run(fmt.Sprintf("Lane%d", i+1), func(t *testing.T) {
			l := startLab(t, fmt.Sprintf("matrix-%d", i+1))
			for _, key := range []string{"readiness.timeout", "gitops.timeout"} {
				l.pulumi("config", "set", "--stack", matrixStack, "--path", "slipway:"+key, gateTimeout)
			}
			r := &way{lab: l}
			for _, c := range lane {
				t.Run(strings.ReplaceAll(c.Name, " ", "_"), func(t *testing.T) {
					l.t = t
					r.run(c)
				})
			}
			l.t = t
			r.completes()
		})
	}
}

// way is a cluster on its way up.
type way struct {
	lab     *lab
	running *background   // an up that waits or goes on, if one does
	lift    []faults.Case // what is to be lifted as soon as the next fault is on, so that up does not get past that one
}

func (r *way) run(c faults.Case) {
	l := r.lab
	l.t.Helper()
	if c.Moment == faults.AtTheGate && r.running == nil && !r.installed() {
		// What happens at the gate finds a cluster whose network core was installed.
		r.running = l.up(matrixStack)
		r.running.reaches("Cilium was installed", r.installed)
	}
	r.breaks(c)
	r.lifts()
	if r.running == nil {
		r.running = l.up(matrixStack)
	}
	switch c.Up {
	case faults.Stops:
		started := time.Now()
		out, err := r.running.end(longestRepair)
		r.running = nil
		require.Error(l.t, err, "up went on\n%s", end(out))
		assert.Regexp(l.t, c.Says, out)
		for _, urn := range urns(l.t, l, matrixStack) {
			for _, component := range c.Absent() {
				for _, what := range []string{"$kubernetes:", "$command:"} {
					assert.NotContains(l.t, urn, component+what, "something exists of what comes after")
				}
			}
		}
		l.t.Logf("stopped after %.1f s", time.Since(started).Seconds())
		r.repairs(c)
	case faults.Waits:
		r.running.lasts(stillWaiting)
		r.lift = append(r.lift, c)
	case faults.GoesOn:
		r.lift = append(r.lift, c)
	}
}

// installed tells whether the cluster has its network core.
func (r *way) installed() bool {
	_, err := r.lab.try("kubectl", "--context=admin@"+matrixStack, "get", "daemonset", "-n", "kube-system", "cilium")
	return err == nil
}

func (r *way) breaks(c faults.Case) {
	arguments := append([]string{"fault"}, c.Arguments()...)
	if c.Detail != "" {
		arguments = append(arguments, "--detail", c.Detail)
	}
	r.lab.must(arguments...)
}

func (r *way) lifts() {
	for _, c := range r.lift {
		r.repairs(c)
	}
	r.lift = nil
}

func (r *way) repairs(c faults.Case) {
	r.lab.must(append([]string{"fault", "--off"}, c.Arguments()...)...)
	if c.Repair != "" {
		r.lab.in("sh", "-c", c.Repair)
	}
}

// completes has the next up, or the one that still waits, take the cluster to Flux. What an up does not notice is there
// until then, and repaired by the up after it.
func (r *way) completes() {
	l := r.lab
	l.t.Helper()
	unnoticed := slices.DeleteFunc(slices.Clone(r.lift), func(c faults.Case) bool { return c.Up != faults.GoesOn })
	r.lift = slices.DeleteFunc(r.lift, func(c faults.Case) bool { return c.Up == faults.GoesOn })
	r.lifts()
	started := time.Now()
	if r.running == nil {
		r.running = l.up(matrixStack)
	}
	out, err := r.running.end(longestRepair)
	require.NoError(l.t, err, "the repaired cluster does not come up\n%s", end(out))
	l.t.Logf("completed in %.1f s", time.Since(started).Seconds())
	if r.lift = unnoticed; len(unnoticed) > 0 {
		r.lifts()
		l.pulumi("up", "--yes", "--skip-preview", "--stack", matrixStack)
	}
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", matrixStack)
}
