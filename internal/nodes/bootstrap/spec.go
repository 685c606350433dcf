// Package bootstrap creates the etcd cluster of a Talos Kubernetes cluster, empty or from a snapshot: on one control plane, and exactly
// once, however often it runs.
//
// A Talos node that has etcd data answers AlreadyExists. That counts as success: an earlier run may have been killed after the call and
// before Pulumi recorded the result. A node without data is bootstrapped only while no other control plane has etcd: a replaced first node
// would otherwise start a second cluster. A cluster that existed is not begun anew, empty, unless that is declared.
package bootstrap

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/bucket"
	"github.com/slipway-platform/slipway/internal/probe"
)

// DefaultTimeout is the longest wait if a Spec has none: enough for the installation and the reboot of control planes on slow disks.
const DefaultTimeout = 15 * time.Minute

// Spec says which cluster to bootstrap.
type Spec struct {
	Talosconfig   string         `json:"talosconfig"`       // client configuration, YAML; secret; required
	Node          netip.Addr     `json:"node"`              // address of the control plane to bootstrap; required
	ControlPlanes []netip.Addr   `json:"controlPlanes"`     // addresses of all control planes, Node among them; required
	Timeout       probe.Duration `json:"timeout,omitempty"` // longest wait for the whole run; 0 means DefaultTimeout
	Recovery      Recovery       `json:"recovery,omitzero"`

	// Machines tell the control planes' VMs from earlier ones with the same addresses. Only their change matters: the step runs again.
	Machines []string `json:"machines,omitempty"`

	// Existed means that the cluster had etcd before. It is no part of the text.
	Existed bool `json:"-"`
}

// Recovery says what becomes of a cluster that no control plane has etcd of.
type Recovery struct {
	Cluster  string   `json:"cluster,omitempty"`  // name, as its snapshots are named
	Folder   string   `json:"folder,omitempty"`   // of the snapshots, below that of snapshot.Folder
	From     string   `json:"from,omitempty"`     // the snapshot, as cluster.Snapshots has it in RecoverFrom
	Identity string   `json:"identity,omitempty"` // private keys of age that decrypt it; secret
	Nodes    []string `json:"nodes,omitempty"`    // names of the cluster's nodes, of which the snapshot has one
	Key      string   `json:"key,omitempty"`      // with which the machine secrets encrypt Secrets, in base64; secret

	Bucket *bucket.Bucket `json:"bucket,omitempty"` // of the snapshots; nil means none
}

// RecoveryOf returns what becomes of a declared cluster whose control planes are all new, by the key of its machine secrets for Secrets.
func RecoveryOf(c *cluster.Cluster, key string) Recovery {
	declared := c.Lifecycle.Snapshots
	made := Recovery{Cluster: c.Identity.Name, Folder: declared.Folder, From: declared.RecoverFrom, Bucket: bucket.OfSnapshots(c)}
	if declared.Restores() {
		made.Identity, made.Key = c.SnapshotIdentity.Reveal(), key
		for _, node := range c.Machines() {
			made.Nodes = append(made.Nodes, node.Name)
		}
	}
	return made
}

// restores reports whether a snapshot is declared.
func (r Recovery) restores() bool { return cluster.Snapshots{RecoverFrom: r.From}.Restores() }

// SetDefaults sets what was left out.
func (s *Spec) SetDefaults() { s.Timeout = probe.Duration(s.Timeout.Or(DefaultTimeout)) }

// Validate returns every problem of the spec. Its errors hold nothing of the talosconfig.
func (s *Spec) Validate() error {
	problems := []error{
		probe.Required("talosconfig", s.Talosconfig, "give the content of a talosconfig"),
		probe.NotNegative("timeout", s.Timeout),
	}
	if !s.Node.IsValid() {
		problems = append(problems, errors.New("node: is empty; give the address of the first control plane"))
	}
	if !slices.Contains(s.ControlPlanes, s.Node) {
		problems = append(problems, fmt.Errorf("controlPlanes: %q is not among %q; list every control plane", s.Node, s.ControlPlanes))
	}
	return errors.Join(problems...)
}
