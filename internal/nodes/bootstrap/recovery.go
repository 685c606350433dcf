package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/snapshot"
)

// refusal is an error that no retry fixes.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// prepare gives the node the declared snapshot. Without one, it refuses to begin a cluster that existed anew.
func (j *job) prepare(ctx context.Context) error {
	switch {
	case j.Recovery.restores():
		return j.give(ctx)
	case j.Existed && j.Recovery.From != cluster.RecoverNothing:
		return refusal{j.Recovery.lost()}
	}
	return nil
}

// give uploads the snapshot, once it was verified and compared with the cluster.
func (j *job) give(ctx context.Context) error {
	if j.from == nil {
		from, err := j.Recovery.open()
		if err != nil {
			return refusal{fmt.Errorf("%s: %s: %w", recoverFrom, j.Recovery.From, err)}
		}
		j.from = from
	}
	j.Once("uploading the snapshot %s, %d bytes, to %s", j.Recovery.From, j.from.Bytes, j.Node)
	return j.upload(ctx, j.Node, j.from.Reader())
}

// recoverFrom is the key of the declared snapshot.
const recoverFrom = "lifecycle.snapshots.recoverFrom"

// CheckSnapshot returns what is wrong with the snapshot that a cluster declares, nil if there is none or nothing is. It does not know the
// machine secrets. If the identity is encrypted, it only compares the checksum beside the file.
func CheckSnapshot(c *cluster.Cluster) *cluster.Problem {
	declared := c.Lifecycle.Snapshots
	if !declared.Restores() {
		return nil
	}
	remedy := "declare a snapshot that can be restored, or remove the key"
	err := checkSnapshot(c, declared)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, snapshot.ErrNoIdentity):
		remedy = "set it with: pulumi config set --secret slipway:snapshotIdentity"
	case errors.Is(err, fs.ErrNotExist):
		remedy = "put the file there, or remove the key"
	}
	return cluster.NewProblem(recoverFrom, remedy, "%s cannot be restored: %s", declared.RecoverFrom, err.Error())
}

func checkSnapshot(c *cluster.Cluster, declared cluster.Snapshots) error {
	path, err := snapshot.Path(declared.Folder, declared.RecoverFrom)
	if err != nil {
		return err
	}
	identity := c.SnapshotIdentity
	if identity.IsSet() && identity.Reveal() == "" {
		return snapshot.CheckSum(path)
	}
	opened, err := snapshot.Open(path, identity.Reveal())
	if err != nil {
		return err
	}
	contents, err := opened.Contents()
	var nodes []string
	for _, node := range c.Machines() {
		nodes = append(nodes, node.Name)
	}
	return errors.Join(err, contents.Names(nodes), opened.Close())
}

// open opens the declared snapshot, and refuses that of another cluster.
func (r Recovery) open() (*snapshot.Opened, error) {
	path, err := snapshot.Path(r.Folder, r.From)
	if err != nil {
		return nil, err
	}
	opened, err := snapshot.Open(path, r.Identity)
	if err != nil {
		return nil, err
	}
	contents, err := opened.Contents()
	if err := errors.Join(err, contents.Names(r.Nodes), contents.Readable(r.Key)); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

// lost is the error of a cluster that existed, and of which no control plane has etcd.
func (r Recovery) lost() error {
	const remedy = "declare lifecycle.snapshots.recoverFrom with a snapshot to restore, or with none to begin with an empty cluster"
	folder, err := snapshot.Folder(r.Folder)
	if err != nil {
		return err
	}
	names, err := snapshot.List(folder, r.Cluster)
	switch {
	case err != nil:
		return err
	case len(names) == 0:
		return fmt.Errorf("all control planes are new, and etcd with the cluster's state is lost; %s (there is none in %s)", remedy, folder)
	}
	return fmt.Errorf("all control planes are new, and etcd with the cluster's state is lost; %s (in %s: %s)", remedy, folder,
		strings.Join(names, ", "))
}
