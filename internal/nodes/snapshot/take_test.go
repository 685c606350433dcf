package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/snapshot"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/tests/fakes/buckettest"
	"github.com/slipway-platform/slipway/tests/fakes/snapshottest"
)

// source has what each control plane sends.
type source map[string][]byte

func (s source) EtcdSnapshot(_ context.Context, node turn.Node) (io.ReadCloser, error) {
	data, answers := s[node.Name]
	if !answers {
		return nil, errors.New("connection refused")
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

var target = turn.Target{Cluster: "infra", Nodes: []turn.Node{
	{Name: "worker-1", Role: cluster.Worker}, {Name: "cp-1", Role: cluster.ControlPlane}, {Name: "cp-2", Role: cluster.ControlPlane},
}}

func TestPlace_KeepsTheDeclaredNumberOfSnapshots(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", home)
	place := snapshot.PlaceOf(&cluster.Cluster{Lifecycle: cluster.Lifecycle{Snapshots: cluster.Snapshots{Folder: "snapshots", Keep: 2}}})
	last := ""
	for i := range 3 {
		path, err := place.Take(t.Context(), source{"cp-1": snapshottest.New(t)}, target, time.Now().Add(time.Duration(i)*time.Hour), t.Logf)
		require.NoError(t, err)
		assert.FileExists(t, path)
		last = path
	}
	stored := func() int {
		files, err := os.ReadDir(home + "/slipway/snapshots")
		require.NoError(t, err)
		return len(files)
	}
	require.NoError(t, place.Prune("infra", ""))
	assert.Equal(t, 6, stored(), "three snapshots and their checksums: what is tried again and again keeps the one from before it")
	require.NoError(t, place.Prune("infra", last))
	assert.Equal(t, 4, stored())
}

func TestPlace_TakesTheSnapshotOfTheNextControlPlaneIfOneSendsNoneOrHalfOfIt(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	place, whole := snapshot.Place{Folder: "snapshots"}, snapshottest.New(t)
	path, err := place.Take(t.Context(), source{"cp-1": whole[:100], "cp-2": whole}, target, time.Now(), t.Logf)
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, whole, data)

	_, err = place.Take(t.Context(), source{"cp-1": whole[:100]}, target, time.Now().Add(time.Hour), t.Logf)
	require.ErrorContains(t, err, "etcd gives no snapshot: cp-1: the snapshot is damaged")
	require.ErrorContains(t, err, "cp-2: connection refused")
}

// stopping is a source whose first control plane is switched off when it has sent half, which ends no connection.
type stopping struct{ source }

func (s stopping) EtcdSnapshot(ctx context.Context, node turn.Node) (io.ReadCloser, error) {
	whole, err := s.source.EtcdSnapshot(ctx, node)
	if err != nil || node.Name != "cp-1" {
		return whole, err
	}
	from, to := io.Pipe()
	go func() {
		_, _ = io.CopyN(to, whole, 100)
		<-ctx.Done()
		_ = to.Close() // as Talos's client does
	}()
	return from, nil
}

func TestPlace_TakesTheSnapshotOfTheNextControlPlaneIfOneStopsToSend(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	place, whole := snapshot.Place{Folder: "snapshots"}, snapshottest.New(t)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		path, err := place.Take(t.Context(), stopping{source{"cp-1": whole, "cp-2": whole}}, target, start, t.Logf)
		require.NoError(t, err)
		assert.FileExists(t, path)
		assert.Equal(t, time.Minute, time.Since(start))

		_, err = place.Take(t.Context(), stopping{source{"cp-1": whole}}, target, time.Now(), t.Logf)
		require.ErrorContains(t, err, "cp-1: it has sent nothing for 1m0s")
	})
}

func TestPlace_WithoutAFolderTakesNone(t *testing.T) {
	path, err := snapshot.Place{}.Take(t.Context(), source{}, target, time.Now(), t.Logf)
	require.NoError(t, err)
	assert.Empty(t, path)
}

func TestPlace_CopiesTheEncryptedFileToTheBucket(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	var server buckettest.Server
	place := snapshot.Place{Folder: "snapshots", Recipients: []string{identity.Recipient().String()}, Bucket: server.Start(t)}
	path, err := place.Take(t.Context(), source{"cp-1": snapshottest.New(t)}, target, time.Now(), t.Logf)
	require.NoError(t, err)
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, file, server.Object("infra/"+filepath.Base(path)), "where the CronJob puts its own")
}

func TestPlace_WithoutItsCopyTheSnapshotIsAnErrorThatSaysWhatToDo(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	server := buckettest.Server{OnRequest: func(*http.Request) string { return "InvalidAccessKeyId" }}
	place := snapshot.Place{Folder: "snapshots", Bucket: server.Start(t)}
	path, err := place.Take(t.Context(), source{"cp-1": snapshottest.New(t)}, target, time.Now(), t.Logf)
	require.ErrorContains(t, err, path+" was not copied: bucket etcd at http://")
	require.ErrorContains(t, err, "InvalidAccessKeyId: The server says no; fix that, or go on without a copy: "+
		"pulumi config rm slipway:snapshotAccessKey, and slipway:snapshotSecretKey")
	assert.FileExists(t, path, "it may still help")
}
