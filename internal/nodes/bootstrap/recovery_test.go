package bootstrap

import (
	"bytes"
	"encoding/base64"
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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/snapshot"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/fakes/buckettest"
	"github.com/slipway-platform/slipway/tests/fakes/snapshottest"
)

var ownKey = [32]byte{7}

const snapshotName = "infra-20261122T190000Z.db"

// recoverySpec returns a spec of a cluster that existed, with a snapshot of it that is declared, and the snapshot's bytes.
func recoverySpec(t *testing.T) (Spec, []byte) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	folder, err := snapshot.Folder("snapshots")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(folder, 0o700))
	data := snapshottest.New(t, snapshottest.Node("infra-cp-1"), snapshottest.Secret(t, "x", ownKey))
	_, err = snapshot.Save(bytes.NewReader(data), filepath.Join(folder, snapshotName), nil)
	require.NoError(t, err)
	spec := threeNodeSpec()
	spec.Existed = true
	spec.Recovery = Recovery{Folder: "snapshots", From: snapshotName, Nodes: []string{"infra-cp-1", "infra-cp-2"},
		Key: base64.StdEncoding.EncodeToString(ownKey[:])}
	return spec, data
}

func TestRun_RestoresTheDeclaredSnapshotOnNewControlPlanes(t *testing.T) {
	spec, data := recoverySpec(t)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		result, err := run(t.Context(), spec, c, &bytes.Buffer{})
		require.NoError(t, err)
		assert.Equal(t, Report{Node: cp1, Bootstrapped: true, Recovered: snapshotName}, result)
		assert.Equal(t, []string{cp1}, c.bootstraps)
		assert.Equal(t, [][]byte{data}, c.uploads)
		assert.Contains(t, result.Sentence(), "etcd was restored from "+snapshotName)
	})
}

// A Node object of a machine that was removed after the snapshot stays NotReady, and nothing else would say so.
func TestRun_NamesNodesOfTheSnapshotThatAreNotDeclared(t *testing.T) {
	spec, _ := recoverySpec(t)
	spec.Recovery.Nodes = []string{"infra-cp-1", "infra-worker-1"}
	folder, err := snapshot.Folder("snapshots")
	require.NoError(t, err)
	spec.Recovery.From = "older.db"
	data := snapshottest.New(t, snapshottest.Node("infra-cp-1"), snapshottest.Node("infra-worker-8"), snapshottest.Node("infra-worker-9"))
	_, err = snapshot.Save(bytes.NewReader(data), filepath.Join(folder, spec.Recovery.From), nil)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		result, err := run(t.Context(), spec, newCluster(), &bytes.Buffer{})
		require.NoError(t, err)
		assert.Equal(t, []string{"infra-worker-8", "infra-worker-9"}, result.Undeclared)
		assert.Contains(t, result.Sentence(), "; the snapshot has nodes that are not declared: infra-worker-8, infra-worker-9; "+
			"if one stays NotReady after the next up: kubectl delete node NAME")
	})
}

func TestRun_RestoresNothingWhileEtcdExists(t *testing.T) {
	spec, _ := recoverySpec(t)
	c := newCluster()
	c.states[cp2] = etcd{state: "Running", healthy: true}
	result, err := run(t.Context(), spec, c, &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, Report{Node: cp2, Unused: snapshotName}, result)
	assert.Contains(t, result.Sentence(), "is not restored; remove lifecycle.snapshots.recoverFrom")
	assert.Empty(t, c.uploads)
	assert.Empty(t, c.bootstraps)
}

func TestRun_RestoresNothingBesideDataOfEtcd(t *testing.T) {
	spec, _ := recoverySpec(t)
	synctest.Test(t, func(t *testing.T) {
		for _, booting := range []etcd{{state: "Preparing", data: true}, {state: "Running"}, {state: "Failed", data: true}} {
			c := newCluster()
			c.states[cp2] = booting
			_, err := run(t.Context(), spec, c, &bytes.Buffer{})
			require.ErrorContains(t, err, "healthy etcd: gave up after 15m0s")
			assert.Empty(t, c.uploads)
			assert.Empty(t, c.bootstraps)
		}
	})
}

func TestRun_RefusesToBeginALostClusterAnew(t *testing.T) {
	spec, _ := recoverySpec(t)
	spec.Recovery.From = ""
	c := newCluster()
	_, err := run(t.Context(), spec, c, &bytes.Buffer{})
	for _, want := range []string{"all control planes are new, and etcd with the cluster's state is lost", "lifecycle.snapshots.recoverFrom",
		"slipway/snapshots: " + snapshotName} {
		require.ErrorContains(t, err, want)
	}
	assert.Empty(t, c.bootstraps)

	spec.Cluster = "apps"
	_, err = run(t.Context(), spec, c, &bytes.Buffer{})
	require.ErrorContains(t, err, "there is none in ")

	synctest.Test(t, func(t *testing.T) {
		spec.Recovery.From = cluster.RecoverNothing
		result, err := run(t.Context(), spec, newCluster(), &bytes.Buffer{})
		require.NoError(t, err)
		assert.Equal(t, Report{Node: cp1, Bootstrapped: true}, result)
	})
}

func TestRun_RefusesASnapshotBeforeItUploadsAnything(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	spec, data := recoverySpec(t)
	folder, err := snapshot.Folder("snapshots")
	require.NoError(t, err)
	save := func(name string, data []byte, recipients ...string) {
		_, err := snapshot.Save(bytes.NewReader(data), filepath.Join(folder, name), recipients)
		require.NoError(t, err)
	}
	save("sealed.db.age", data, identity.Recipient().String())
	save("apps.db", snapshottest.New(t, snapshottest.Node("apps-cp-1")))
	save("rebuilt.db", snapshottest.New(t, snapshottest.Node("infra-cp-1"), snapshottest.Secret(t, "x", [32]byte{8})))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "damaged.db"), data[:len(data)-600], 0o600))
	for name, want := range map[string]string{
		"missing.db":    "no such file",
		"damaged.db":    "it is damaged",
		"sealed.db.age": "it is encrypted, and there is no identity of age",
		"apps.db":       "it is of another cluster: its nodes are apps-cp-1",
		"rebuilt.db":    "it is of another cluster: its Secrets cannot be read",
	} {
		c := newCluster()
		spec.Recovery.From = name
		_, err := run(t.Context(), spec, c, &bytes.Buffer{})
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "lifecycle.snapshots.recoverFrom: "+name)
		assert.Empty(t, c.uploads)
		assert.Empty(t, c.bootstraps)
	}
	spec.Recovery.From, spec.Recovery.Identity = "sealed.db.age", identity.String()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		_, err := run(t.Context(), spec, c, &bytes.Buffer{})
		require.NoError(t, err)
		assert.Equal(t, [][]byte{data}, c.uploads, "decrypted")
	})
}

// recoveryFromBucket returns a recovery from an encrypted object of a bucket, and what the object is a snapshot of.
func recoveryFromBucket(t *testing.T, server *buckettest.Server) (Recovery, []byte) {
	t.Helper()
	spec, data := recoverySpec(t)
	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "x.snap.age")
	_, err = snapshot.Save(bytes.NewReader(data), path, []string{identity.Recipient().String()})
	require.NoError(t, err)
	sealed, err := os.ReadFile(path)
	require.NoError(t, err)
	const key = "infra/infra-2026-01-02T03:04:05Z.snap.age"
	server.Put(key, sealed, time.Now())
	spec.Recovery.From, spec.Recovery.Bucket, spec.Recovery.Identity = "bucket:"+key, server.Start(t), identity.String()
	return spec.Recovery, data
}

func TestRecovery_ReadsAnObjectOfTheBucketAndLeavesNothingBehind(t *testing.T) {
	recovery, data := recoveryFromBucket(t, &buckettest.Server{})
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	opened, _, err := recovery.open(t.Context())
	require.NoError(t, err)
	got, err := io.ReadAll(opened.Reader())
	require.NoError(t, err)
	assert.Equal(t, data, got)
	entries, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, entries, "even while it is open")
	require.NoError(t, opened.Close())
}

func TestRun_RefusesAnObjectBeforeItUploadsAnything(t *testing.T) {
	var server buckettest.Server
	recovery, data := recoveryFromBucket(t, &server)
	server.Put("infra/damaged", data[:len(data)-600], time.Now())
	server.Put("infra/foreign", snapshottest.New(t, snapshottest.Node("apps-cp-1")), time.Now())
	refused := *recovery.Bucket
	refused.Name = "other"
	for want, change := range map[string]func(*Recovery){
		"NoSuchKey: ":   func(r *Recovery) { r.From = "bucket:infra/missing" },
		"it is damaged": func(r *Recovery) { r.From = "bucket:infra/damaged" },
		"it is of another cluster: its nodes are apps-cp-1": func(r *Recovery) { r.From = "bucket:infra/foreign" },
		"it is encrypted, and there is no identity of age":  func(r *Recovery) { r.Identity = "" },
		"NoSuchBucket: ": func(r *Recovery) { r.Bucket = &refused },
	} {
		spec, c := threeNodeSpec(), newCluster()
		spec.Existed, spec.Recovery = true, recovery
		change(&spec.Recovery)
		_, err := run(t.Context(), spec, c, &bytes.Buffer{})
		require.ErrorContains(t, err, "lifecycle.snapshots.recoverFrom: "+spec.Recovery.From)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), recovery.Bucket.SecretKey)
		assert.Empty(t, c.uploads)
		assert.Empty(t, c.bootstraps)
	}
}

func TestRun_ALostClusterNamesTheNewestSnapshotsInTheBucket(t *testing.T) {
	var server buckettest.Server
	spec, _ := recoverySpec(t)
	spec.Recovery.From, spec.Recovery.Bucket = "", server.Start(t)
	_, err := run(t.Context(), spec, newCluster(), &bytes.Buffer{})
	require.ErrorContains(t, err, "; none in the bucket etcd at http://")
	for i := range 6 {
		server.Put("infra/"+string(rune('a'+i)), nil, time.Now().Add(time.Duration(i)*time.Hour))
	}
	_, err = run(t.Context(), spec, newCluster(), &bytes.Buffer{})
	require.ErrorContains(t, err, ": bucket:infra/b bucket:infra/c bucket:infra/d bucket:infra/e bucket:infra/f)")
	server.OnRequest = func(*http.Request) string { return "AccessDenied" }
	_, err = run(t.Context(), spec, newCluster(), &bytes.Buffer{})
	require.ErrorContains(t, err, "AccessDenied: The server says no)")
}

func TestCheckSnapshot_ReadsAnObjectUnlessSecretsAreEncrypted(t *testing.T) {
	var server buckettest.Server
	recovery, _ := recoveryFromBucket(t, &server)
	c := clusters.Infra(t)
	c.GitOps.Settings = map[string]string{cluster.SnapshotEndpoint: recovery.Bucket.Endpoint, cluster.SnapshotBucket: "etcd"}
	c.Lifecycle.Snapshots.RecoverFrom = recovery.From
	c.SnapshotAccessKey, c.SnapshotSecretKey = cluster.NewSecret("ID"), cluster.NewSecret("KEY")
	c.SnapshotIdentity = cluster.NewSecret(recovery.Identity)
	require.Nil(t, CheckSnapshot(c))
	c.SnapshotIdentity = cluster.Secret{}
	require.ErrorContains(t, CheckSnapshot(c), "there is no identity of age to decrypt it with; set it with: pulumi config set --secret")
	server.Put("apps/x", snapshottest.New(t, snapshottest.Node("apps-cp-1")), time.Now())
	c.Lifecycle.Snapshots.RecoverFrom = "bucket:apps/x"
	require.ErrorContains(t, CheckSnapshot(c), "it is of another cluster: its nodes are apps-cp-1")
	server.OnRequest = func(*http.Request) string { return "AccessDenied" }
	require.ErrorContains(t, CheckSnapshot(c), "AccessDenied: ")
	c.SnapshotIdentity = cluster.EncryptedSecret()
	require.Nil(t, CheckSnapshot(c), "nothing is read in vain")
	c.SnapshotIdentity, c.SnapshotSecretKey = cluster.Secret{}, cluster.EncryptedSecret()
	require.Nil(t, CheckSnapshot(c))
}

func TestRun_EndsWhenEtcdFailsToRecoverAndRecoversItInTheNextRun(t *testing.T) {
	spec, _ := recoverySpec(t)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.damaged = true
		start := time.Now()
		_, err := run(t.Context(), spec, c, &bytes.Buffer{})
		require.ErrorContains(t, err, "infra-cp-1: etcd failed after the bootstrap: error verifying snapshot: invalid database")
		assert.Less(t, time.Since(start), time.Minute)
		c.damaged = false
		result, err := run(t.Context(), spec, c, &bytes.Buffer{})
		require.NoError(t, err)
		assert.Equal(t, snapshotName, result.Recovered)
	})
}

func TestRun_UploadsNoSecondSnapshotWhileALostCallMayHaveAnEffect(t *testing.T) {
	spec, _ := recoverySpec(t)
	synctest.Test(t, func(t *testing.T) {
		c, refused := newCluster(), &refusing{times: 1, err: status.Error(codes.Unavailable, "broken pipe")}
		refused.fakeCluster = c
		start := time.Now()
		_, err := run(t.Context(), spec, refused, &bytes.Buffer{})
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(start), answerTimeout)
		assert.Len(t, c.uploads, 2)
	})
}

func TestRun_ReportsARestoreAlthoughTheAnswerOfTheCallWasLost(t *testing.T) {
	spec, _ := recoverySpec(t)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.OnBootstrap = func(string) error { return status.Error(codes.Unavailable, "broken pipe") }
		result, err := run(t.Context(), spec, c, &bytes.Buffer{})
		require.NoError(t, err)
		assert.Equal(t, Report{Node: cp1, Bootstrapped: true, Recovered: snapshotName}, result)
		assert.Len(t, c.bootstraps, 1)
	})
}

func TestRun_RecoversByTheTalosAPI(t *testing.T) {
	api := &server{}
	connect, talosconfig := serve(t, api)
	spec, data := recoverySpec(t)
	spec.Target = servedSpec(talosconfig).Target
	result, err := runWith(t, connect, spec, &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, Report{Node: cp1, Bootstrapped: true, Recovered: snapshotName}, result)
	assert.Equal(t, data, api.uploaded)
	assert.True(t, api.recovered)
}
