package talos

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

// eventLog holds the events that a node's Events call streams. It ends with the boot.
type eventLog struct {
	change wait.Changes

	mu     sync.Mutex
	events []event
	next   uint64
}

type event struct {
	seq uint64
	at  time.Time
	msg *machine.Event
}

func newEventLog() *eventLog { return &eventLog{next: 1} }

func (l *eventLog) publish(actor string, payload proto.Message) {
	l.mu.Lock()
	value, err := proto.Marshal(payload)
	if err == nil {
		l.events = append(l.events, event{seq: l.next, at: time.Now(), msg: &machine.Event{
			Data:    &anypb.Any{TypeUrl: "talos/runtime/" + string(payload.ProtoReflect().Descriptor().FullName()), Value: value},
			Id:      fmt.Sprintf("%020d", l.next),
			ActorId: actor,
		}})
		l.next++
		if len(l.events) > keptEvents {
			l.events = slices.Delete(l.events, 0, len(l.events)-keptEvents)
		}
	}
	l.mu.Unlock()
	l.change.Notify()
}

func (l *eventLog) sequence(name, actor string, action machine.SequenceEvent_Action) {
	l.publish(actor, &machine.SequenceEvent{Sequence: name, Action: action})
}

func (l *eventLog) sequenceError(name string, err error) {
	l.publish("", &machine.SequenceEvent{Sequence: name, Action: machine.SequenceEvent_NOOP,
		Error: &common.Error{Code: common.Code_FATAL, Message: err.Error()}})
}

func (l *eventLog) task(name, actor string, action machine.TaskEvent_Action) {
	l.publish(actor, &machine.TaskEvent{Task: name, Action: action})
}

// watch calls send for the past events that the request asks for, and then for each new one.
func (l *eventLog) watch(ctx context.Context, in *machine.EventsRequest, send func(*machine.Event) error) error {
	l.mu.Lock()
	from := l.next
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
		from = l.next
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
