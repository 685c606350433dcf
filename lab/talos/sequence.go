package talos

import (
	"context"
	"errors"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/slipway-platform/slipway/lab/talos/service"
	"github.com/slipway-platform/slipway/lab/vm"
)

// sequence is a way to end a boot, with its phases as in Talos.
type sequence struct {
	name  string // as Talos names it: reboot, shutdown, reset, upgrade, stageUpgrade
	actor string
	then  ending // endReboot becomes endKexec where Talos does so, unless powerCycle is set
	// powerCycle means that the machine starts again by its firmware.
	powerCycle bool
	// takeover means that the sequence replaces whatever other sequence runs.
	takeover bool
	// drains means that the node is cordoned and drained first. An error there ends the sequence, unless mayFail.
	drains, mayFail bool
	// abrupt means that neither pods nor services are stopped.
	abrupt bool
	// beforeStop, if not nil, leaves etcd before the services stop. Its error ends the sequence.
	beforeStop func() error
	// afterStop, if not nil, runs after the services have stopped, as the task with the name afterName. Its error ends the sequence.
	afterStop func(context.Context) error
	afterName string

	ctx    context.Context // ends when another sequence takes over
	cancel context.CancelFunc
}

// takesOver are the sequences that replace a running sequence, by its name.
var takesOver = map[string]string{"reboot": "reboot", "reset": "reboot"}

// begin starts a sequence in the background. As in Talos, the caller is not told when another sequence runs and this one does not
// start: only an event says so.
func (b *boot) begin(seq *sequence) {
	seq.ctx, seq.cancel = context.WithCancel(b.ctx)
	b.site.mu.Lock()
	running := b.sequence
	locked := running != nil && !seq.takeover && takesOver[running.name] != seq.name
	if !locked {
		b.sequence = seq
		select { // one that has not started yet
		case <-b.requests:
		default:
		}
		b.requests <- seq
	}
	b.site.mu.Unlock()
	switch {
	case locked:
		b.Printk("[talos] %s failed: failed to acquire lock", seq.name)
		b.Events.Publish(seq.actor, &machine.SequenceEvent{Sequence: seq.name, Action: machine.SequenceEvent_NOOP,
			Error: &common.Error{Code: common.Code_LOCKED, Message: "sequence not started: failed to acquire lock"}})
	case running != nil:
		running.cancel()
	}
}

// awaitEnd waits for the end of the boot and runs the sequence that ends it.
func (b *boot) awaitEnd() ending {
	select {
	case seq := <-b.requests:
		return b.stop(seq)
	case <-b.ctx.Done():
		return endOff
	}
}

// stop runs a sequence. If another sequence takes over, the boot goes on until a sequence ends.
func (b *boot) stop(seq *sequence) ending {
	if end, done := b.perform(seq); done {
		return end
	}
	return b.awaitEnd()
}

// perform runs the tasks of a sequence as Talos does, and reports them as events. It returns false if another sequence takes over.
func (b *boot) perform(seq *sequence) (ending, bool) {
	b.Printk("[talos] %s sequence: starting", seq.name)
	b.Events.Sequence(seq.name, seq.actor, machine.SequenceEvent_START)
	for _, task := range b.tasks(seq) {
		b.setStage(task.stage)
		b.Events.Task(task.name, seq.actor, machine.TaskEvent_START)
		err := task.run(seq.ctx)
		switch {
		case b.ctx.Err() != nil:
			return endOff, true
		case seq.ctx.Err() != nil:
			b.Printk("[talos] %s sequence: canceled", seq.name)
			return 0, false
		case err != nil:
			return b.sequenceFailed(seq, err)
		}
		b.Events.Task(task.name, seq.actor, machine.TaskEvent_STOP)
	}
	b.setStage(StageStopping)
	b.Events.Sequence(seq.name, seq.actor, machine.SequenceEvent_STOP)
	b.Printk("[talos] %s sequence: done", seq.name)
	b.site.mu.Lock()
	api := b.api
	b.site.mu.Unlock()
	if api != nil {
		api.Drain(replyLimit) // the reply to the request for this sequence is among those
	}
	if seq.then == endReboot && !seq.powerCycle {
		return b.reboot(b.disk), true
	}
	return seq.then, true
}

// reboot loads the kernel of the Talos on a disk, and returns endKexec; endReboot if there is none, or under SecureBoot.
func (b *boot) reboot(disk *vm.Disk) ending {
	secure := b.secureBoot()
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	switch {
	case secure:
		b.Printk("[talos] kexec skipped as secure boot is enabled")
		return endReboot
	case disk == nil || installedOn(disk) == nil:
		return endReboot
	}
	b.Printk("[talos] prepared kexec environment with kernel and initrd extracted from uki")
	b.m.kexec = disk
	return endKexec
}

// task is a step of a sequence.
type task struct {
	name  string // as Talos names it
	stage Stage
	run   func(context.Context) error
}

func (b *boot) tasks(seq *sequence) []task {
	var out []task
	if seq.drains {
		out = append(out, task{"cordonAndDrainNode", StageDraining, func(ctx context.Context) error {
			err := b.cordonAndDrain(ctx)
			if err != nil && seq.mayFail {
				b.Printk("[talos] task cordonAndDrainNode: failed: %v", err)
				return nil
			}
			return err
		}})
	}
	if !seq.abrupt {
		out = append(out, task{"stopAllPods", StageStopping, b.stopPods})
	}
	if seq.beforeStop != nil {
		out = append(out, task{"leaveEtcd", StageStopping, func(context.Context) error { return seq.beforeStop() }})
	}
	if !seq.abrupt {
		out = append(out, task{"stopAllServices", StageStopping, func(ctx context.Context) error {
			b.services.StopAll()
			defer b.site.cfg.Latency.Record.Begin("stop before a reboot", b.m.hw.Name)()
			return sleep(ctx, b.site.cfg.Latency.Service)
		}})
	}
	if seq.afterStop != nil {
		out = append(out, task{seq.afterName, StageStopping, seq.afterStop})
	}
	return out
}

// sequenceFailed reports the error of a sequence, and ends the boot after a while: such an error is fatal in Talos, which makes the old
// release boot if the new one has not run since the upgrade, and reboots.
func (b *boot) sequenceFailed(seq *sequence, err error) (ending, bool) {
	b.Printk("[talos] %s failed: %v", seq.name, err)
	b.Events.SequenceError(seq.name, fmt.Errorf("sequence failed: %w", err))
	b.setStage(StageFailed)
	if sleep(b.ctx, b.site.cfg.Latency.Install) != nil {
		return endOff, true
	}
	b.revertUpgrade()
	b.Printk("[talos] rebooting")
	return endReboot, true
}

// cordonAndDrain cordons the node and evicts its pods, as Talos does before it shuts down, resets or upgrades: it waits a minute for the
// cordon, and for the pods as long as DrainLimit; the pods that are left then do not stop it. A node that has never joined has no pods.
func (b *boot) cordonAndDrain(ctx context.Context) error {
	b.site.mu.Lock()
	joined := b.inst != nil && b.inst.joined
	b.site.mu.Unlock()
	if !joined {
		return nil
	}
	limit := b.site.cfg.Latency.DrainLimit
	cordoning, cancel := context.WithTimeout(ctx, limit/5)
	defer cancel()
	b.Printk("[talos] task cordonAndDrainNode (1/1): waiting for node to be cordoned")
	var k Kubelet
	if err := b.site.waitUntil(cordoning, func() bool { k = b.kubelet; return k != nil }); err != nil {
		return context.DeadlineExceeded
	}
	if err := k.Cordon(cordoning); err != nil {
		return err
	}
	draining, done := context.WithTimeout(ctx, limit)
	defer done()
	return k.Drain(draining, func(line string) { b.Printk("[talos] task cordonAndDrainNode (1/1): %s", line) })
}

// stopPods ends the kubelet and the node's pods gracefully.
func (b *boot) stopPods(ctx context.Context) error {
	b.site.mu.Lock()
	k := b.kubelet
	b.kubelet, b.kubeletUp, b.resigned = nil, false, true
	b.site.mu.Unlock()
	if k != nil {
		b.Printk("[talos] shutting down kubelet gracefully")
		k.Shutdown(ctx)
	}
	if err := b.services.SetWanted("kubelet", false); err != nil && !errors.Is(err, service.ErrUnknown) {
		return err
	}
	return nil
}
