package config

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"

	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
)

func TestLine_FindsTheLineOfAPath(t *testing.T) {
	source, err := ParseFile("Pulumi.home.yaml", []byte(`config:
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
	require.NoError(t, err)
	for path, want := range map[string]int{
		"cluster.name": 3, "cluster.id": 3, "network": 4, "network.gateway": 5, "network.vip": 4, "network.nameservers[1]": 8,
		"nodePools[0].name": 10, `nodePools[0].labels["example.com/tier"]`: 12, "nodePools[0].nodes[0].mac": 14, "nodePools[0].nodes[1].mac": 16,
		"nodePools[7]": 9, "pulumi:tags": 2, "gitops": 0, "": 0, `network["`: 4,
	} {
		assert.Equal(t, want, source.Line(path), path)
	}
}

func TestLine_FindsNothingInATextThatIsNoStackFile(t *testing.T) {
	for _, text := range []string{"", "{", "a: b", "- a"} {
		source, _ := ParseFile("Pulumi.home.yaml", []byte(text))
		assert.Zero(t, source.Line("cluster"), text)
	}
}

func TestLine_FindsEveryFaultOfTheFixtures(t *testing.T) {
	found := 0
	for _, one := range fixtures.Invalid() {
		_, err := loadFixture(one.Name)
		var problem *cluster.Problem
		if !errors.As(err, &problem) {
			continue
		}
		if problem.Problem != "is missing" {
			source, err := ParseFile("Pulumi.home.yaml", []byte(one.Text))
			require.NoError(t, err)
			assert.Positive(t, max(problem.Line, source.Line(problem.Path)), "%s: %s", one.Name, problem.Path)
		}
		found++
	}
	assert.Greater(t, found, 200)
}
