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

// The stack of the matrix and its timeouts.
const (
	matrixStack   = "infra"
	gateTimeout   = "60s"            // much longer than a healthy gate takes here
	treeTimeout   = "5m"             // for a run that applies the whole tree
	stillWaiting  = 20 * time.Second // a run that has not ended after this time counts as waiting
	longestRepair = 15 * time.Minute // the Talos provider alone retries for ten minutes
)

// TestMatrix runs every lane of the matrix, each in its own lab.
func TestMatrix(t *testing.T) {
	for i, lane := range faults.Lanes {
		t.Run(fmt.Sprintf("Lane%d", i+1), func(t *testing.T) {
			l := startLab(t, fmt.Sprintf("matrix-%d", i+1))
			r := &laneRun{lab: l}
			r.setTimeout("readiness", gateTimeout)
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

// laneRun is the run of a lane, which creates one cluster.
type laneRun struct {
	lab     *lab
	running *background   // the run in progress; nil means none
	pending []faults.Case // switched off once the next fault is on, which then stops `up`
}

func (r *laneRun) run(c faults.Case) {
	l := r.lab
	l.t.Helper()
	if c.Moment == faults.AtTheGate && r.running == nil && !r.installed() {
		// A fault at the gate needs a cluster with an installed network core.
		r.running = l.up(matrixStack)
		r.running.reaches("Cilium was installed", r.installed)
	}
	r.switchOn(c)
	r.switchOffPending()
	if r.running == nil {
		timeout := gateTimeout
		if c.Up != faults.Stops {
			timeout = treeTimeout
		}
		r.setTimeout("gitops", timeout)
	}
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
					assert.NotContains(l.t, urn, component+what, "a later component exists")
				}
			}
		}
		l.t.Logf("stopped after %.1f s", time.Since(started).Seconds())
		r.switchOff(c)
	case faults.Waits:
		r.running.lasts(stillWaiting)
		r.pending = append(r.pending, c)
	case faults.GoesOn:
		r.pending = append(r.pending, c)
	}
}

// setTimeout declares how long a step's probe waits.
func (r *laneRun) setTimeout(section, timeout string) {
	r.lab.t.Helper()
	r.lab.pulumi("config", "set", "--stack", matrixStack, "--path", "slipway:"+section+".timeout", timeout)
}

// installed reports whether Cilium is installed in the cluster.
func (r *laneRun) installed() bool {
	_, err := r.lab.try("kubectl", "--context=admin@"+matrixStack, "get", "daemonset", "-n", "kube-system", "cilium")
	return err == nil
}

func (r *laneRun) switchOn(c faults.Case) {
	arguments := append([]string{"fault"}, c.Arguments()...)
	if c.Detail != "" {
		arguments = append(arguments, "--detail", c.Detail)
	}
	r.lab.must(arguments...)
}

func (r *laneRun) switchOffPending() {
	for _, c := range r.pending {
		r.switchOff(c)
	}
	r.pending = nil
}

func (r *laneRun) switchOff(c faults.Case) {
	r.lab.must(append([]string{"fault", "--off"}, c.Arguments()...)...)
	if c.Repair != "" {
		r.lab.in("sh", "-c", c.Repair)
	}
}

// completes runs up until it has installed Flux, or waits for the run in progress. Faults that do not affect up stay on until then; the
// next up corrects what they have changed.
func (r *laneRun) completes() {
	l := r.lab
	l.t.Helper()
	unnoticed := slices.DeleteFunc(slices.Clone(r.pending), func(c faults.Case) bool { return c.Up != faults.GoesOn })
	r.pending = slices.DeleteFunc(r.pending, func(c faults.Case) bool { return c.Up == faults.GoesOn })
	r.switchOffPending()
	started := time.Now()
	if r.running == nil {
		r.setTimeout("gitops", treeTimeout)
		r.running = l.up(matrixStack)
	}
	out, err := r.running.end(longestRepair)
	require.NoError(l.t, err, "the cluster does not come up\n%s", end(out))
	l.checkOutput(out, "")
	l.t.Logf("completed in %.1f s", time.Since(started).Seconds())
	if r.pending = unnoticed; len(unnoticed) > 0 {
		r.switchOffPending()
		l.pulumi("up", "--yes", "--skip-preview", "--stack", matrixStack)
	}
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", matrixStack)
}
