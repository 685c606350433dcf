package health

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/internal/probe"
)

func TestTarget_ZeroDurationsMeanTheDefaults(t *testing.T) {
	target := Target{StableFor: probe.Duration(time.Second)}
	target.SetDefaults()
	assert.Equal(t, Target{Timeout: probe.Duration(DefaultTimeout), StableFor: probe.Duration(time.Second)}, target)
}

func TestTarget_NamesEveryProblemAtOnce(t *testing.T) {
	target := Target{Timeout: -1, StableFor: -1}
	for _, problem := range []string{"cluster: is empty", "kubeconfig: is empty", "timeout: -1ns is negative", "stableFor: -1ns is negative"} {
		assert.ErrorContains(t, target.Validate(), problem)
	}
	assert.NotContains(t, target.ValidatePublic().Error(), "kubeconfig")
}
