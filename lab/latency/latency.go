// Package latency is the one place where the lab's simulated durations stand. A simulated Proxmox task, boot or
// install takes the time given here: short, so that a rehearsal is quick, but never zero, so that nothing which
// real hardware does later looks as if it were already done.
package latency

import (
	"fmt"
	"time"
)

// Latencies are the durations of everything simulated. All are positive; use Default as the starting point.
type Latencies struct {
	Task        time.Duration `json:"task"`        // a short Proxmox task: create, start, stop, delete
	Download    time.Duration `json:"download"`    // a Proxmox download-url task, per file
	Boot        time.Duration `json:"boot"`        // power-on until the Talos API answers (maintenance or running)
	Install     time.Duration `json:"install"`     // apply in maintenance mode until Talos is on disk, before the reboot
	Service     time.Duration `json:"service"`     // one Talos service from start to healthy
	EtcdJoin    time.Duration `json:"etcdJoin"`    // a control plane's etcd member from learner to voter
	ImagePull   time.Duration `json:"imagePull"`   // first pull of an image on a node
	PodStart    time.Duration `json:"podStart"`    // a container from created to running and ready
	VIPFailover time.Duration `json:"vipFailover"` // loss of the VIP holder until another control plane answers
	SlowFactor  int           `json:"slowFactor"`  // by how much a "slow" fault stretches a duration
}

// Default returns the durations the lab runs with unless told otherwise.
func Default() Latencies {
	return Latencies{
		Task:        300 * time.Millisecond,
		Download:    time.Second,
		Boot:        1500 * time.Millisecond,
		Install:     2 * time.Second,
		Service:     200 * time.Millisecond,
		EtcdJoin:    time.Second,
		ImagePull:   400 * time.Millisecond,
		PodStart:    500 * time.Millisecond,
		VIPFailover: 2 * time.Second,
		SlowFactor:  20,
	}
}

// Scale multiplies every duration by factor, so that one flag slows a whole lab down. It refuses what is not positive.
func (l Latencies) Scale(factor float64) (Latencies, error) {
	if factor <= 0 {
		return l, fmt.Errorf("latency: factor %v is not positive; the lab's durations are never zero", factor)
	}
	for _, d := range []*time.Duration{&l.Task, &l.Download, &l.Boot, &l.Install, &l.Service, &l.EtcdJoin, &l.ImagePull, &l.PodStart, &l.VIPFailover} {
		*d = max(time.Millisecond, time.Duration(float64(*d)*factor))
	}
	return l, nil
}
