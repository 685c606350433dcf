package journal

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/slipway-platform/slipway/lab/wait"
)

// keptEvents is the number of events that a node keeps.
const keptEvents = 1000

// Events are what a node's Events call streams.
type Events struct {
	change wait.Changes

	mu     sync.Mutex
	events []event
	last   uint64 // number of the newest event
}

type event struct {
	seq uint64
	at  time.Time
	msg *machine.Event
}

// Publish adds an event. actor is the id of the call that has caused it, if one has.
func (l *Events) Publish(actor string, payload proto.Message) {
	l.mu.Lock()
	value, err := proto.Marshal(payload)
	if err == nil {
		l.last++
		l.events = append(l.events, event{seq: l.last, at: time.Now(), msg: &machine.Event{
			Data:    &anypb.Any{TypeUrl: "talos/runtime/" + string(payload.ProtoReflect().Descriptor().FullName()), Value: value},
			Id:      fmt.Sprintf("%020d", l.last),
			ActorId: actor,
		}})
		if len(l.events) > keptEvents {
			l.events = slices.Delete(l.events, 0, len(l.events)-keptEvents)
		}
	}
	l.mu.Unlock()
	l.change.Notify()
}

// Sequence tells that a sequence has started or stopped.
func (l *Events) Sequence(name, actor string, action machine.SequenceEvent_Action) {
	l.Publish(actor, &machine.SequenceEvent{Sequence: name, Action: action})
}

// SequenceError tells that a sequence has failed.
func (l *Events) SequenceError(name string, err error) {
	l.Publish("", &machine.SequenceEvent{Sequence: name, Action: machine.SequenceEvent_NOOP,
		Error: &common.Error{Code: common.Code_FATAL, Message: err.Error()}})
}

// Task tells that a task of a sequence has started or stopped.
func (l *Events) Task(name, actor string, action machine.TaskEvent_Action) {
	l.Publish(actor, &machine.TaskEvent{Task: name, Action: action})
}

// Watch calls send for the past events that the request asks for, and then for each new one.
func (l *Events) Watch(ctx context.Context, in *machine.EventsRequest, send func(*machine.Event) error) error {
	l.mu.Lock()
	from := l.last + 1
	for i, e := range l.events {
		back := len(l.events) - i
		if in.TailEvents < 0 || back <= int(in.TailEvents) ||
			in.TailSeconds > 0 && time.Since(e.at) <= time.Duration(in.TailSeconds)*time.Second ||
			in.TailId != "" && e.msg.Id > in.TailId {
			from = e.seq
			break
		}
	}
	l.mu.Unlock()
	for {
		changed := l.change.Changed()
		l.mu.Lock()
		var fresh []*machine.Event
		for _, e := range l.events {
			if e.seq >= from && (in.WithActorId == "" || e.msg.ActorId == in.WithActorId) {
				fresh = append(fresh, e.msg)
			}
		}
		from = l.last + 1
		l.mu.Unlock()
		for _, e := range fresh {
			if err := send(e); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
