package talosapi

import (
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/stretchr/testify/assert"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// The events are those of a kubelet that Talos has started twice.
func TestService_HasStartedWhenItBeganToRunAndNotWhenItsHealthChanged(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0).UTC() }
	events := &machine.ServiceEvents{}
	for i, state := range []string{"Preparing", Running, Running, "Stopping", "Finished", "Starting", "Preparing", Running, Running} {
		events.Events = append(events.Events, &machine.ServiceEvent{State: state, Ts: timestamppb.New(at(int64(i)))})
	}
	seen := serviceOf(&machine.ServiceInfo{State: Running, Events: events})
	assert.Equal(t, at(7), seen.Started)
	assert.Equal(t, at(8), seen.Since)
	events.Events = events.Events[8:]
	assert.Zero(t, serviceOf(&machine.ServiceInfo{State: Running, Events: events}).Started, "Talos keeps the last events only")
}
