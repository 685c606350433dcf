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
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// Place says where the snapshots of a cluster are kept that are taken before a change.
type Place struct {
	Folder     string   `json:"folder,omitempty"`     // below ${XDG_STATE_HOME:-~/.local/state}/slipway; "" means that none is taken
	Keep       int      `json:"keep,omitempty"`       // how many of a cluster are kept; 0 means all
	Recipients []string `json:"recipients,omitempty"` // age public keys that it is encrypted to; none: not encrypted
}

// PlaceOf returns the place that a stack file declares.
func PlaceOf(declared cluster.Snapshots) Place {
	return Place{Folder: declared.Folder, Keep: declared.Keep, Recipients: declared.Recipients}
}

// Source gives snapshots of etcd, as etcd sends them.
type Source interface {
	EtcdSnapshot(ctx context.Context, node turn.Node) (io.ReadCloser, error)
}

// Take writes a snapshot of a cluster's etcd to a file, from the first of the control planes that gives one, says so, and deletes the
// oldest ones. It returns the file's path; "" for a place without a folder.
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
		err := p.save(ctx, from, node, path)
		if err == nil {
			say("the snapshot is %s", path)
			return path, Prune(folder, of.Cluster, p.Keep)
		}
		problems = append(problems, fmt.Errorf("%s: %w", node.Name, err))
	}
	return "", fmt.Errorf("etcd gives no snapshot: %w", errors.Join(problems...))
}

func (p Place) save(ctx context.Context, from Source, node turn.Node, path string) error {
	data, err := from.EtcdSnapshot(ctx, node)
	if err != nil {
		return err
	}
	defer data.Close() //nolint:errcheck // all is read by then
	_, err = Save(data, path, p.Recipients)
	return err
}
