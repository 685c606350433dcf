package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/syntax"
	"github.com/slipway-platform/slipway/internal/clients/bucket"
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
		return refusal{j.lost(ctx)}
	}
	return nil
}

// give uploads the snapshot, once it was verified and compared with the cluster.
func (j *job) give(ctx context.Context) error {
	if j.from == nil {
		from, others, err := j.Recovery.open(ctx)
		if err != nil {
			return refusal{fmt.Errorf("%s: %s: %w", recoverFrom, j.Recovery.From, err)}
		}
		j.from, j.others = from, others
	}
	j.Once("uploading the snapshot %s, %d bytes, to %s", j.Recovery.From, j.from.Bytes, j.node.Name)
	return j.upload(ctx, j.node, j.from.Reader())
}

// recoverFrom is the key of the declared snapshot.
const recoverFrom = "lifecycle.snapshots.recoverFrom"

// readTimeout is the longest time for reading the declared snapshot.
const readTimeout = 10 * time.Minute

// CheckSnapshot returns what is wrong with the snapshot that a cluster declares, nil if there is none or nothing is. It does not know the
// machine secrets. If the identity is encrypted, it only compares the checksum beside a file.
func CheckSnapshot(c *cluster.Cluster) *cluster.Problem {
	declared := c.Lifecycle.Snapshots
	if !declared.Restores() {
		return nil
	}
	remedy := "declare a snapshot that can be restored, or remove the key"
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	err := checkSnapshot(ctx, c)
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

func checkSnapshot(ctx context.Context, c *cluster.Cluster) error {
	r := RecoveryOf(c, "")
	switch object := r.object() != ""; {
	case object && (c.SnapshotAccessKey.Reveal() == "" || c.SnapshotSecretKey.Reveal() == ""),
		object && c.SnapshotIdentity.IsSet() && r.Identity == "":
		return nil // encrypted
	case c.SnapshotIdentity.IsSet() && r.Identity == "":
		path, err := snapshot.Path(r.Folder, r.From)
		if err != nil {
			return err
		}
		return snapshot.CheckSum(path)
	}
	opened, err := r.read(ctx)
	if err != nil {
		return err
	}
	contents, err := opened.Contents()
	return errors.Join(err, contents.Names(r.Nodes), opened.Close())
}

// object returns the key of the declared object; "" if a file is declared.
func (r Recovery) object() string { return cluster.Snapshots{RecoverFrom: r.From}.Object() }

// read opens the declared snapshot, an object or a file.
func (r Recovery) read(ctx context.Context) (*snapshot.Opened, error) {
	if key := r.object(); key != "" {
		return snapshot.OpenObject(ctx, r.Bucket, key, r.Identity)
	}
	path, err := snapshot.Path(r.Folder, r.From)
	if err != nil {
		return nil, err
	}
	return snapshot.Open(path, r.Identity)
}

// open opens the declared snapshot, and refuses that of another cluster. It returns the snapshot's nodes that are not declared, too.
func (r Recovery) open(ctx context.Context) (*snapshot.Opened, []string, error) {
	opened, err := r.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	contents, err := opened.Contents()
	if err := errors.Join(err, contents.Names(r.Nodes), contents.Readable(r.Key)); err != nil {
		return nil, nil, errors.Join(err, opened.Close())
	}
	return opened, xslices.Filter(contents.Nodes, func(name string) bool { return !slices.Contains(r.Nodes, name) }), nil
}

// lost is the error of a cluster that existed, and of which no control plane has etcd.
func (s *Spec) lost(ctx context.Context) error {
	folder, err := snapshot.Folder(s.Recovery.Folder)
	if err != nil {
		return err
	}
	names, err := snapshot.List(folder, s.Cluster)
	if err != nil {
		return err
	}
	found := "there is none in " + folder
	if len(names) > 0 {
		found = "in " + folder + ": " + strings.Join(names, ", ")
	}
	return fmt.Errorf("all control planes are new, and etcd with the cluster's state is lost; declare lifecycle.snapshots.recoverFrom with a "+
		"snapshot to restore, or with none to begin with an empty cluster (%s%s)", found, s.inBucket(ctx))
}

// newest is how many objects of a bucket an error names.
const newest = 5

// inBucket names the newest snapshots in the bucket, if there is one.
func (s *Spec) inBucket(ctx context.Context) string {
	from := s.Recovery.Bucket
	if from == nil {
		return ""
	}
	objects, err := bucket.List(ctx, from, bucket.Prefix(s.Cluster))
	switch {
	case err != nil:
		return "; " + err.Error()
	case len(objects) == 0:
		return "; none in the " + from.String()
	}
	text := "; newest in the " + from.String() + ":"
	for _, object := range objects[max(0, len(objects)-newest):] {
		text += " " + syntax.InBucket + object.Key
	}
	return text
}
