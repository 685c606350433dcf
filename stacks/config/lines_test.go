package config

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"

	"github.com/slipway-platform/slipway/stacks/config/fixtures"
)

func TestLines_FindTheLineOfAPath(t *testing.T) {
	lines := ReadLines([]byte(`config:
  pulumi:tags: {}
  cluster: {name: home}
  slipway:network:
    gateway: 10.25.11.1
    nameservers:
      - 9.9.9.9
      - 9.9.9.10
  slipway:nodePools:
    - name: all
      labels:
        example.com/tier: gold
      nodes:
        - {name: home-1}
        - name: home-2
          mac: x
`))
	for path, want := range map[string]int{
		"cluster.name": 3, "cluster.id": 3, "network": 4, "network.gateway": 5, "network.vip": 4, "network.nameservers[1]": 8,
		"nodePools[0].name": 10, `nodePools[0].labels["example.com/tier"]`: 12, "nodePools[0].nodes[0].mac": 14, "nodePools[0].nodes[1].mac": 16,
		"nodePools[7]": 9, "pulumi:tags": 2, "gitops": 0, "": 0, `network["`: 4,
	} {
		assert.Equal(t, want, lines.Find(path), path)
	}
}

func TestLines_FindNothingInATextThatIsNoStackFile(t *testing.T) {
	for _, text := range []string{"", "{", "a: b", "- a"} {
		assert.Zero(t, ReadLines([]byte(text)).Find("cluster"), text)
	}
}

func TestLines_FindEveryFaultOfTheFixtures(t *testing.T) {
	found := 0
	for _, one := range fixtures.Invalid() {
		_, err := loadFixture(one.Name)
		var problem *cluster.Problem
		if !errors.As(err, &problem) {
			continue
		}
		if problem.Problem != "is missing" {
			assert.Positive(t, max(problem.Line, ReadLines([]byte(one.Text)).Find(problem.Path)), "%s: %s", one.Name, problem.Path)
		}
		found++
	}
	assert.Greater(t, found, 200)
}
