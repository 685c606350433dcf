package turn

import (
	"errors"
	"fmt"
	"time"

	"github.com/slipway-platform/slipway/cluster"
)

// LongestDrain returns how long it may take from the wait for a turn until the node is drained.
func (d Declared) LongestDrain() time.Duration { return SpareTimeout + d.DrainTimeout.Duration }

// checkLimits returns every problem of the limits of a spec.
func checkLimits(limits cluster.TurnLimits) error {
	var problems []error
	if limits.MaxUnavailable.Of(1) < 1 {
		problems = append(problems, fmt.Errorf("maxUnavailable: is %q; give a number of workers, or a share such as 10%%", limits.MaxUnavailable))
	}
	positive := func(path string, limit cluster.Duration) {
		if limit.Duration <= 0 {
			problems = append(problems, fmt.Errorf("%s: is %s; give a positive duration such as 10m", path, limit))
		}
	}
	positive("drainTimeout", limits.DrainTimeout)
	positive("returnTimeout", limits.ReturnTimeout)
	return errors.Join(problems...)
}
