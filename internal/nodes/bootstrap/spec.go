// Package bootstrap creates the etcd cluster of a Talos Kubernetes cluster, empty or from a snapshot: on one control plane, and exactly
// once, however often it runs.
//
// A Talos node that has etcd data answers AlreadyExists. That counts as success: an earlier run may have been killed after the call and
// before Pulumi recorded the result. A node without data is bootstrapped only while no other control plane has etcd: a replaced first node
// would otherwise start a second cluster. A cluster that existed is not begun anew, empty, unless that is declared.
package bootstrap

import (
	"errors"
	"time"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// Longest is how long a run may take: enough for the installation and the reboot of control planes on slow disks.
const Longest = 15 * time.Minute

// Spec says which cluster to bootstrap.
type Spec struct {
	turn.Target          // its control planes are all asked; the first of them that is not left out is bootstrapped
	Recovery    Recovery `json:"recovery,omitzero"`

	// Machines tell the control planes' VMs from earlier ones with the same addresses. Only their change matters: the step runs again.
	Machines []string `json:"machines,omitempty"`

	// Existed means that the cluster had etcd before. It is no part of the text.
	Existed bool `json:"-"`
}

// Recovery says what becomes of a cluster that no control plane has etcd of.
type Recovery struct {
	Folder   string   `json:"folder,omitempty"`   // of the snapshots, below that of snapshot.Folder
	From     string   `json:"from,omitempty"`     // the snapshot, as cluster.Snapshots has it in RecoverFrom
	Identity string   `json:"identity,omitempty"` // private keys of age that decrypt it; secret
	Nodes    []string `json:"nodes,omitempty"`    // names of the cluster's nodes, of which the snapshot has one
	Key      string   `json:"key,omitempty"`      // with which the machine secrets encrypt Secrets, in base64; secret

	Bucket *cluster.S3Bucket `json:"bucket,omitempty"` // of the snapshots; nil means none
}

// RecoveryOf returns what becomes of a declared cluster whose control planes are all new, by the key of its machine secrets for Secrets.
func RecoveryOf(c *cluster.Cluster, key string) Recovery {
	declared := c.Lifecycle.Snapshots
	made := Recovery{Folder: declared.Folder, From: declared.RecoverFrom, Bucket: c.BucketOfSnapshots()}
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

// first returns the control plane to bootstrap; none, without a name, if all are left out.
func (s *Spec) first() turn.Node {
	for _, node := range s.ControlPlanes() {
		if !s.Skip.Has(node.Name) {
			return node
		}
	}
	return turn.Node{}
}

// Validate returns every problem of the spec. Its errors hold nothing of the talosconfig.
func (s *Spec) Validate() error {
	var none error
	if len(s.Skip) > 0 && s.first().Name == "" {
		none = errors.New("skip: names every control plane; remove one that can be bootstrapped")
	}
	return errors.Join(none, s.CheckTarget(), s.CheckTalosconfig())
}
