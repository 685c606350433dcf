package turn

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A run that was killed in a turn leaves its node cordoned. The next run may come to the node itself first, or to another one.
func TestTake_SaysThatAnEarlierRunHasLeftANodeCordoned(t *testing.T) {
	for taken, want := range map[string]string{
		"worker-1": "worker-1: an earlier run has left it cordoned",
		"worker-2": "worker-1: an earlier run has left it cordoned; it is healthy, and schedulable again",
	} {
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(2)
			f.nodes["worker-1"] = KubeNode{Ready: true, Unschedulable: true, Ours: true, Boot: "1"}
			e := f.engine(t, nodes)
			var said []string
			e.Say = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
			require.NoError(t, e.Take(t.Context(), f.change(nodes, taken)))
			assert.Contains(t, said, want)
			assert.False(t, f.nodes["worker-1"].Unschedulable)
		})
	}
}
