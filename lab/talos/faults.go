package talos

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/vm"
)

// followFaults notifies those who wait for the site to change when a fault is switched on or off.
func (s *Site) followFaults() {
	for {
		changed := s.cfg.Faults.Changed()
		s.change.Notify()
		select {
		case <-changed:
		case <-s.ctx.Done():
			return
		}
	}
}

// fault returns the active fault of a kind for the machine, by the name of its VM or its node.
func (m *guest) fault(kind fault.Kind) (fault.Fault, bool) {
	m.site.mu.Lock()
	defer m.site.mu.Unlock()
	return m.faultLocked(kind)
}

// faultLocked is fault for callers that hold the site's mutex.
func (m *guest) faultLocked(kind fault.Kind) (fault.Fault, bool) {
	return m.site.cfg.Faults.Active(kind, m.hw.Name, m.nodeName())
}

// faultError is the error of a fault for the machine: its detail, or a text; nil if the fault is off.
func (m *guest) faultError(kind fault.Kind, text string) error {
	f, on := m.fault(kind)
	if !on {
		return nil
	}
	return errors.New(cmp.Or(f.Detail, text))
}

// neverBootsReason is the reason that the status of a machine shows under the fault vm-never-boots.
const neverBootsReason = "fault " + string(fault.VMNeverBoots)

// awaitBootable waits while the fault vm-never-boots is on. It returns an error if the machine is powered off meanwhile.
func (m *guest) awaitBootable() error {
	defer func() {
		m.site.mu.Lock()
		defer m.site.mu.Unlock()
		if m.reason == neverBootsReason {
			m.reason = ""
		}
	}()
	return m.site.cfg.Faults.Wait(m.ctx, func() bool {
		on := m.site.cfg.Faults.IsActive(fault.VMNeverBoots, m.hw.Name)
		if on {
			m.setReason(neverBootsReason)
		}
		return !on
	})
}

// hangs tells whether the fault boot-hangs keeps this boot from its image from going on. It does so for the first boots after it was
// switched on.
func (b *boot) hangs() bool {
	f, on := b.m.fault(fault.BootHangs)
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	id := b.m.hw.ID
	if !on {
		delete(b.site.hung, id)
		return false
	}
	if times, err := strconv.Atoi(cmp.Or(f.Detail, "1")); err != nil || b.site.hung[id] >= times {
		return false
	}
	b.site.hung[id]++
	return true
}

// installError is the error that the fault install-fails ends an installation with; nil if the fault is off.
func (b *boot) installError() error {
	return b.m.faultError(fault.InstallFails,
		"error running phase 2 in install sequence: task 1/1: failed, task \"upgrade\" failed: exit code 1")
}

// stuckImage is the image that the machine boots in maintenance mode under the fault stuck-maintenance: the image in its drive, or the
// Talos on its disk, without a configuration. It is nil if the fault is off. The caller holds the site's mutex.
func (m *guest) stuckImage(disk *vm.Disk) *vm.Image {
	if _, on := m.faultLocked(fault.StuckMaintenance); !on || disk == nil {
		return nil
	}
	if m.hw.ISO != nil {
		return m.hw.ISO
	}
	inst := installedOn(disk)
	return &vm.Image{Version: inst.version, Schematic: inst.schematic, Platform: inst.platform, Extensions: inst.extensions}
}

// awaitUnstuck reboots a machine that the fault stuck-maintenance keeps in maintenance mode, once the fault is off.
func (b *boot) awaitUnstuck() {
	off := func() bool { _, on := b.m.fault(fault.StuckMaintenance); return !on }
	if b.site.cfg.Faults.Wait(b.ctx, off) == nil {
		b.begin(&sequence{name: "reboot", then: endReboot})
	}
}

// rebootLoopError is the error that the fault reboot-loop ends each boot with; nil if the fault is off.
func (b *boot) rebootLoopError() error {
	return b.m.faultError(fault.RebootLoop,
		"error running phase 8 in boot sequence: task 1/1: failed, failed to mount EPHEMERAL: structure needs cleaning")
}

// upgradeError is the error that the fault upgrade-fails ends the boot of a new version with; nil if the fault is off, or the version has
// run before.
func (b *boot) upgradeError() error {
	b.site.mu.Lock()
	ran := b.inst.ran
	b.site.mu.Unlock()
	if ran {
		return nil
	}
	return b.m.faultError(fault.UpgradeFails, "error running phase 4 in boot sequence: task 1/1: failed, failed to start dbus: exit status 1")
}

// applyError is the error that the fault apply-refused answers a configuration with; nil if the fault is off.
func (b *boot) applyError() error {
	return b.m.faultError(fault.ApplyRefused, "1 error occurred:\n\t* the machine configuration is refused by this node\n\n")
}

// loseBootstrapReply closes the API's connections under the fault bootstrap-reply-lost, so that the client gets no reply
// to Bootstrap.
func (b *boot) loseBootstrapReply() error {
	if _, on := b.m.fault(fault.BootstrapReplyLost); !on {
		return nil
	}
	b.api.CloseConnections()
	// A client sees its connection end. Only the apid of another node that forwarded the request sees this error.
	return status.Error(codes.Unavailable, "error reading from server: EOF")
}

// loseMember removes this node's running etcd member from the cluster under the fault etcd-member-missing, as if its
// disk had been lost: etcd of this node starts again without data and cannot join. A member that etcd would refuse to
// remove stays. It returns when the member has been removed or ctx ends.
func (b *boot) loseMember(ctx context.Context) {
	removed := func() bool {
		_, on := b.m.fault(fault.EtcdMemberMissing)
		return on && b.removeOwnMember()
	}
	if b.site.cfg.Faults.Wait(ctx, removed) == nil {
		b.services.Restart("etcd")
	}
}

// memberMissing tells whether the fault etcd-member-missing keeps etcd of this node from joining. The caller holds the
// site's mutex.
func (b *boot) memberMissing() bool {
	_, on := b.m.faultLocked(fault.EtcdMemberMissing)
	return on
}

// staysLearner tells whether the fault etcd-learner keeps this node's member a learner. The caller holds the site's
// mutex.
func (b *boot) staysLearner() bool {
	_, on := b.m.faultLocked(fault.EtcdLearner)
	return on
}

// restarts is the beginning of Talos's message about the kubelet, after which comes the error.
const restarts = "Error running Containerd(kubelet), going to restart forever: "

// kubeletError is the message of the kubelet that the fault kubelet-down ends again and again; empty if the fault is off.
func (b *boot) kubeletError() string {
	f, on := b.m.fault(fault.KubeletDown)
	if !on {
		return ""
	}
	return restarts + cmp.Or(f.Detail, `task "kubelet" failed: exit code 1 (last log "")`)
}

// imagePullError is Talos's error for an image under the fault image-pull; nil if the fault is off.
func (b *boot) imagePullError(image string) error {
	f, on := b.site.cfg.Faults.Active(fault.ImagePull, image)
	switch {
	case !on:
		return nil
	case f.Detail != "":
		return status.Errorf(codes.Unknown, "failed to pull image %q: failed to pull and unpack image %q: %s", image, image, f.Detail)
	}
	return status.Errorf(codes.NotFound, "error pulling image: failed to pull image %q: failed to resolve reference %q: %s: not found",
		image, image, image)
}

// timeServerAnswers is for callers that hold the site's mutex.
func (b *boot) timeServerAnswers() bool {
	_, silent := b.m.faultLocked(fault.NoTime)
	return !silent
}
