package health

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEvaluate_CompletesCommandsAndLeavesOutThoseThatCannotBe(t *testing.T) {
	check := Check[int, int]{Name: "c", ByHand: "kubectl get node NODE", Judge: func(int, int) []Result {
		own := Fail("b", "no")
		own.Command = "talosctl -n ADDRESS version"
		return []Result{own, Fail("a", "no"), Fail("", "no"), Pass("c"), NotSeen("d", "it")}
	}}
	results := Evaluate([]Check[int, int]{check}, 0, 0, func(subject string) []string {
		if subject == "" {
			return nil
		}
		return []string{"NODE", subject, "ADDRESS", "10.0.0.1"}
	})
	var commands []string
	for _, result := range results {
		assert.Equal(t, "c", result.Check)
		commands = append(commands, result.Subject+": "+result.Command)
	}
	assert.Equal(t, []string{": ", "a: kubectl get node a", "b: talosctl -n 10.0.0.1 version", "c: ", "d: "}, commands)
}

func TestHold_OfNoResultsIsFalse(t *testing.T) { assert.False(t, Hold(nil)) }
