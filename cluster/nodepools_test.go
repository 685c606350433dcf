package cluster

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRoles_AnEvenNumberOfControlPlanesIsAllowedOnlyOnTheWay(t *testing.T) {
	for count, want := range map[int][2]bool{1: {true, true}, 2: {false, true}, 3: {true, true}, 4: {false, true}, 8: {false, false}} {
		for i, allowed := range []bool{false, true} {
			c := &Cluster{NodePools: []NodePool{
				{Role: ControlPlane, Nodes: machines(make([]string, count)...)}, {Role: Worker, Nodes: machines("")},
			}}
			c.Lifecycle.AllowEvenControlPlanes = allowed
			var findings Findings
			clusterCheck{Findings: &findings, Cluster: c}.roles()
			about := 0
			for _, problem := range findings.All() {
				if strings.Contains(problem.Problem, "control planes") {
					about++
				}
			}
			assert.Equal(t, want[i], about == 0, "%d control planes, even numbers allowed: %v: %v", count, allowed, findings.All())
		}
	}
}
