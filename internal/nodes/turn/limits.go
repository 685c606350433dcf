package turn

import (
	"errors"
	"time"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Defaults of Limits.
const (
	defaultDrainTimeout  = 10 * time.Minute
	defaultReturnTimeout = 20 * time.Minute // covers the pull of an installer, its installation and the boot
)

// Limits are the declared limits of turns. The zero value of each means its default.
type Limits struct {
	MaxUnavailable int            `json:"maxUnavailable,omitempty"` // workers out of service at once, those in their turn included; 0 means 1
	DrainTimeout   probe.Duration `json:"drainTimeout,omitempty"`   // longest drain of a node; 0 means 10 min
	ReturnTimeout  probe.Duration `json:"returnTimeout,omitempty"`  // longest return of a changed node; 0 means 20 min
}

// LimitsOf returns the limits that a cluster declares.
func LimitsOf(declared cluster.Lifecycle) Limits {
	return Limits{
		MaxUnavailable: declared.MaxUnavailable,
		DrainTimeout:   probe.Duration(declared.DrainTimeout.Duration),
		ReturnTimeout:  probe.Duration(declared.ReturnTimeout.Duration),
	}
}

// Unavailable returns how many workers may be out of service at once.
func (l Limits) Unavailable() int { return max(l.MaxUnavailable, 1) }

// Drain returns the longest drain of a node.
func (l Limits) Drain() time.Duration { return l.DrainTimeout.Or(defaultDrainTimeout) }

// Return returns the longest return of a changed node.
func (l Limits) Return() time.Duration { return l.ReturnTimeout.Or(defaultReturnTimeout) }

// CheckLimits returns every problem of the limits.
func (l Limits) CheckLimits() error {
	return errors.Join(probe.NotNegative("drainTimeout", l.DrainTimeout), probe.NotNegative("returnTimeout", l.ReturnTimeout))
}
