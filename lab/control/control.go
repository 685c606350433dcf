// Package control is the API for commands outside the lab's namespaces: HTTP on a Unix socket in the lab's folder.
package control

import (
	"time"

	"github.com/slipway-platform/slipway/lab/fault"
)

// Status is everything that exists in a running lab.
type Status struct {
	Started    time.Time     `json:"started"`
	Endpoints  []Endpoint    `json:"endpoints"`
	Faults     []fault.Fault `json:"faults"`
	VMs        []VM          `json:"vms"`
	Processes  []Process     `json:"processes"`
	Volumes    []string      `json:"volumes"` // on the Proxmox VE datastores; empty after a stack was destroyed
	Memory     int64         `json:"memory"`  // of all processes in the lab, bytes; shared pages are counted once
	PeakMemory int64         `json:"peakMemory"`
}

// Endpoint is a simulated server.
type Endpoint struct {
	Name string `json:"name"` // e.g. "Proxmox VE API"
	URL  string `json:"url"`
}

// VM is a virtual machine, with the state of the guest in it.
type VM struct {
	ID        int      `json:"id"`
	Name      string   `json:"name"`
	Host      string   `json:"host"`             // Proxmox VE node
	Status    string   `json:"status"`           // running or stopped
	Stage     string   `json:"stage"`            // of Talos: booting, maintenance, installing, running …
	Reason    string   `json:"reason,omitempty"` // why it does not proceed
	Cluster   string   `json:"cluster,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	Log       string   `json:"log,omitempty"`
}

// Process is a real process.
type Process struct {
	Name    string `json:"name"`
	Cluster string `json:"cluster"`
	Node    string `json:"node,omitempty"`
	PID     int    `json:"pid"` // inside the lab's pid namespace
	RSS     int64  `json:"rss"` // resident memory, bytes
	Log     string `json:"log"`
}
