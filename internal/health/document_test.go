package health_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	argocd "github.com/slipway-platform/slipway/internal/engines/argocd/handover"
	"github.com/slipway-platform/slipway/internal/engines/flux/handover"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/externalsecrets"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/health/mesh"
	"github.com/slipway-platform/slipway/internal/health/storage"
	"github.com/slipway-platform/slipway/internal/health/workloads"
	"github.com/slipway-platform/slipway/tests/golden"
)

func TestDocument_ListsTheChecks(t *testing.T) {
	const document = "../../docs/gates.md"
	golden.Part(t, document, "checks of the gate", table(t, gate.Checks))
	golden.Part(t, document, "checks of workloads", table(t, workloads.Checks))
	golden.Part(t, document, "checks of external secrets", table(t, externalsecrets.Checks))
	golden.Part(t, document, "checks of the handover", table(t, handover.Checks))
	golden.Part(t, document, "checks of the handover to Argo CD", table(t, argocd.Checks))
	golden.Part(t, document, "checks of the storage", table(t, storage.Checks))
	golden.Part(t, document, "checks of the mesh", table(t, mesh.Checks))
}

// table lists checks in Markdown.
func table[S, C any](t *testing.T, checks []health.Check[S, C]) string {
	var text strings.Builder
	text.WriteString("| check | what is looked at | by hand |\n| --- | --- | --- |\n")
	names := map[string]bool{}
	for _, check := range checks {
		assert.False(t, names[check.Name], "two checks are named %q", check.Name)
		names[check.Name] = true
		for _, cell := range []string{check.Name, check.Looks, check.ByHand} {
			assert.NotEmpty(t, cell, check.Name)
			assert.NotContains(t, cell, "|", "it would end the cell")
		}
		commands := strings.ReplaceAll(check.ByHand, "; ", "`, `")
		text.WriteString("| " + check.Name + " | " + check.Looks + " | `" + commands + "` |\n")
	}
	return text.String()
}
