// Package latency holds the lab's simulated durations. They are short, for a quick rehearsal, but never zero: a step that takes time on
// real hardware must not appear finished at once.
package latency

import (
	"fmt"
	"time"
)

// Latencies are the durations of all simulated work. All must be positive; start from Default.
type Latencies struct {
	Task      time.Duration `json:"task"`      // a short Proxmox task: create, start, stop, delete
	Download  time.Duration `json:"download"`  // a Proxmox download-url task, per file
	Boot      time.Duration `json:"boot"`      // power-on until the Talos API answers (maintenance or running)
	Install   time.Duration `json:"install"`   // apply in maintenance mode until Talos is on disk, before the reboot
	Service   time.Duration `json:"service"`   // one Talos service from start to healthy
	EtcdJoin  time.Duration `json:"etcdJoin"`  // a control plane's etcd member from learner to voter
	ImagePull time.Duration `json:"imagePull"` // first pull of an image on a node
	PodStart  time.Duration `json:"podStart"`  // a container from created to running and ready
	// CiliumSecond is a second of Cilium's health probing: its rounds of tens of seconds, its timeouts.
	CiliumSecond time.Duration `json:"ciliumSecond"`
	VIPFailover  time.Duration `json:"vipFailover"` // loss of the VIP holder until another control plane answers
	// DrainLimit is how long Talos waits for the pods that it evicts before it shuts down, resets or upgrades, and five times as long as
	// it waits for the cordon. In Talos, these are 5 minutes and 1 minute.
	DrainLimit time.Duration `json:"drainLimit"`
	SlowFactor int           `json:"slowFactor"` // factor by which the fault proxmox-task-slow extends a task

	Record *Recorder `json:"-"` // of the work of machines; nil: none
}

// Default returns the durations of a lab without --latency.
func Default() Latencies {
	return Latencies{
		Task:         300 * time.Millisecond,
		Download:     time.Second,
		Boot:         1500 * time.Millisecond,
		Install:      2 * time.Second,
		Service:      200 * time.Millisecond,
		EtcdJoin:     time.Second,
		ImagePull:    400 * time.Millisecond,
		PodStart:     500 * time.Millisecond,
		CiliumSecond: 20 * time.Millisecond,
		VIPFailover:  2 * time.Second,
		DrainLimit:   time.Minute,
		SlowFactor:   20,
	}
}

// Scale multiplies every duration by factor, which must be positive.
func (l Latencies) Scale(factor float64) (Latencies, error) {
	if factor <= 0 {
		return l, fmt.Errorf("latency: factor %v is not positive; the lab's durations are never zero", factor)
	}
	for _, d := range []*time.Duration{&l.Task, &l.Download, &l.Boot, &l.Install, &l.Service, &l.EtcdJoin, &l.ImagePull,
		&l.PodStart, &l.CiliumSecond, &l.VIPFailover,
		&l.DrainLimit} {
		*d = max(time.Millisecond, time.Duration(float64(*d)*factor))
	}
	return l, nil
}
