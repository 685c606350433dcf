package upgrade

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The cluster may run on those that do not answer. This step would not run again for them, and the bootstrap would wait for them.
func TestRun_ANewControlPlaneDoesNotMakeAClusterNewWhileOthersDoNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.node("cp-1").answer = answer{}
		for _, name := range []string{"cp-2", "cp-3"} {
			f.node(name).down = errors.New("no route")
		}
		start := time.Now()
		report, err := f.run(t, spec)
		require.EqualError(t, err, "nothing was changed: no control plane that answers has a configuration, so it is not known whether the "+
			"cluster is new: cp-2: its Talos API does not answer: no route; cp-3: its Talos API does not answer: no route; "+silentHint)
		assert.False(t, report.New)
		assert.Equal(t, silentTimeout, time.Since(start))
	})
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.node("cp-1").answer = answer{}
		for _, name := range []string{"cp-2", "cp-3"} {
			node := f.node(name)
			node.down = errors.New("no route")
			time.AfterFunc(time.Minute, func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				node.down = nil
			})
		}
		_, err := f.run(t, spec)
		require.ErrorContains(t, err, "etcd needs both of cp-2, cp-3, and cp-1 gets its configuration after this step")
	})
}
