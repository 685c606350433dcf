package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/bucket"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// Place says where the snapshots of a cluster are kept that are taken before a change.
type Place struct {
	Folder     string            `json:"folder,omitempty"`     // below ${XDG_STATE_HOME:-~/.local/state}/slipway; "" means that none is taken
	Keep       int               `json:"keep,omitempty"`       // how many of a cluster are kept in the folder; 0 means all
	Recipients []string          `json:"recipients,omitempty"` // age public keys that it is encrypted to; none: not encrypted
	Bucket     *cluster.S3Bucket `json:"bucket,omitempty"`     // that gets a copy of each; nil means none
}

// PlaceOf returns the place that a stack file declares.
func PlaceOf(c *cluster.Cluster) Place {
	declared := c.Lifecycle.Snapshots
	return Place{Folder: declared.Folder, Keep: declared.Keep, Recipients: declared.Recipients, Bucket: c.BucketOfSnapshots()}
}

// Source gives snapshots of etcd, as etcd sends them.
type Source interface {
	EtcdSnapshot(ctx context.Context, node turn.Node) (io.ReadCloser, error)
}

// Take writes a snapshot of a cluster's etcd to a file, from the first of the control planes that gives one, copies it to the bucket, and
// says so. It returns the file's path; "" for a place without a folder. Prune once what it was taken for has succeeded: until then, the
// oldest file may be the only one from before a change that is tried again and again.
func (p Place) Take(
	ctx context.Context, from Source, of turn.Target, at time.Time, say func(format string, args ...any),
) (string, error) {
	if p.Folder == "" {
		return "", nil
	}
	folder, err := Folder(p.Folder)
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, Name(of.Cluster, at, len(p.Recipients) > 0))
	var problems []error
	for _, node := range of.ControlPlanes() {
		say("takes a snapshot of etcd from %s", node.Name)
		_, err := Read(ctx, func(ctx context.Context) (io.ReadCloser, error) { return from.EtcdSnapshot(ctx, node) }, path, p.Recipients)
		if err == nil {
			say("the snapshot is %s", path)
			return path, p.copy(ctx, of.Cluster, path, say)
		}
		problems = append(problems, fmt.Errorf("%s: %w", node.Name, err))
	}
	return "", fmt.Errorf("etcd gives no snapshot: %w", errors.Join(problems...))
}

// Prune deletes the oldest files of a cluster, so that no more are left than are kept. taken is what Take has returned; without a new file,
// none is deleted.
func (p Place) Prune(cluster, taken string) error {
	if taken == "" {
		return nil
	}
	return Prune(filepath.Dir(taken), cluster, p.Keep)
}

// silence is how long a control plane may send nothing of a snapshot: one that is switched off ends no connection.
const silence = time.Minute

// Read opens a snapshot, as etcd sends it, and saves it as Save does. It ends when nothing has come for a minute.
func Read(
	ctx context.Context, open func(context.Context) (io.ReadCloser, error), path string, recipients []string,
) (file File, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ends := time.AfterFunc(silence, func() { cancel(fmt.Errorf("it has sent nothing for %s", silence)) })
	defer ends.Stop()
	data, err := open(ctx)
	if err == nil {
		defer data.Close() // all is read by then
		file, err = Save(noted{data, func() { ends.Reset(silence) }}, path, recipients)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // Talos's client takes the end of ctx for the end of the snapshot
	}
	return file, err
}

// noted calls a function after each read.
type noted struct {
	io.Reader
	after func()
}

func (n noted) Read(into []byte) (int, error) {
	defer n.after()
	return n.Reader.Read(into)
}

// copy puts the file of a snapshot into the bucket. Without the copy, nothing may be changed: the file may be gone together with the
// machine that runs `up`.
func (p Place) copy(ctx context.Context, cluster, path string, say func(format string, args ...any)) error {
	if p.Bucket == nil {
		return nil
	}
	key := bucket.Prefix(cluster) + filepath.Base(path)
	if err := bucket.Put(ctx, p.Bucket, key, path); err != nil {
		return fmt.Errorf("the snapshot %s was not copied: %w; fix that, or go on without a copy: pulumi config rm slipway:snapshotAccessKey, "+
			"and slipway:snapshotSecretKey", path, err)
	}
	say("its copy is %s in the %s", key, p.Bucket)
	return nil
}
