package releases_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster/releases"
)

func on(t *testing.T, day string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.DateOnly, day)
	assert.NoError(t, err)
	return parsed
}

func TestTable_HasEachMinorReleaseOnceInOrder(t *testing.T) {
	for _, project := range releases.All {
		assert.NotEmpty(t, project.Policy, project.Name)
		assert.Regexp(t, "^https://", project.Source, project.Name)
		for i, m := range project.Minors {
			if m.Ended != "" {
				on(t, m.Ended)
			}
			if i > 0 {
				_, standing := releases.Project{Minors: project.Minors[:i]}.Find(m.Minor+".0", time.Time{})
				assert.Equal(t, releases.Newer, standing, "%s %s", project.Name, m.Minor)
			}
			for _, fit := range m.With {
				_, fits := project.Fits(m.Minor+".0", named(t, fit.Project), fit.From)
				assert.True(t, fits, "%s %s", project.Name, m.Minor)
			}
		}
	}
}

// named returns the project that a row of another one names.
func named(t *testing.T, name string) releases.Project {
	t.Helper()
	for _, project := range releases.All {
		if project.Name == name {
			return project
		}
	}
	t.Fatalf("no project %q", name)
	return releases.Project{}
}

func TestFind_KnowsTheLastDayOfSupport(t *testing.T) {
	for day, want := range map[string]releases.Standing{"2026-04-27": releases.Supported, "2026-04-28": releases.Ended} {
		_, standing := releases.Talos.Find("v1.12.7", on(t, day))
		assert.Equal(t, want, standing, day)
	}
	for version, want := range map[string]releases.Standing{"v1.11.0": releases.Older, "1.99.0": releases.Newer, "2.0.0": releases.Newer} {
		_, standing := releases.Talos.Find(version, time.Time{})
		assert.Equal(t, want, standing, version)
	}
}

func TestFits_ComparesNumbersAndNotText(t *testing.T) {
	for gatewayAPI, want := range map[string]bool{"v1.6.0": false, "v1.6.1": true, "v1.6.10": true, "v1.60.1": false, "v1.7.0": false} {
		_, fits := releases.Cilium.Fits("1.20.4", releases.GatewayAPI, gatewayAPI)
		assert.Equal(t, want, fits, gatewayAPI)
	}
}
