package bucket_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/bucket"
	"github.com/slipway-platform/slipway/tests/fakes/buckettest"
)

func TestBucket_GivesBackWhatWasPutIntoIt(t *testing.T) {
	var server buckettest.Server
	in := server.Start(t)
	content := bytes.Repeat([]byte("snapshot"), 1000)
	path := filepath.Join(t.TempDir(), "x.db")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	require.NoError(t, in.Put(t.Context(), "infra/x 2026:01.db", path))
	assert.Equal(t, content, server.Object("infra/x 2026:01.db"))
	var got bytes.Buffer
	require.NoError(t, in.Get(t.Context(), "infra/x 2026:01.db", &got))
	assert.Equal(t, content, got.Bytes())
}

func TestBucket_ListsTheObjectsOfAPrefixOldestFirst(t *testing.T) {
	var server buckettest.Server
	in := server.Start(t)
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	server.Put("infra/a", nil, noon)
	server.Put("infra/b", nil, noon.Add(-time.Hour))
	server.Put("infra-2/c", nil, noon)
	objects, err := in.List(t.Context(), "infra/")
	require.NoError(t, err)
	require.Len(t, objects, 2)
	assert.Equal(t, bucket.Object{Key: "infra/b", Changed: noon.Add(-time.Hour)}, objects[0])
	assert.Equal(t, "infra/a", objects[1].Key)
}

func TestBucket_AnErrorNamesTheBucketAndTheCauseAndNoKey(t *testing.T) {
	server := buckettest.Server{OnRequest: func(r *http.Request) string {
		if r.Method == http.MethodPut {
			return "AccessDenied"
		}
		return ""
	}}
	in := server.Start(t)
	path := filepath.Join(t.TempDir(), "x.db")
	require.ErrorIs(t, in.Put(t.Context(), "infra/x.db", path), os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	problems := map[string]error{
		"AccessDenied: The server says no": in.Put(t.Context(), "infra/x.db", path),
		"NoSuchKey: ":                      in.Get(t.Context(), "infra/x.db", &bytes.Buffer{}),
	}
	other := *in
	other.Name = "other"
	_, problems["NoSuchBucket: "] = other.List(t.Context(), "")
	closed := *in
	closed.Endpoint = "https://127.0.0.1:1"
	_, problems["connection refused"] = closed.List(t.Context(), "")
	for want, err := range problems {
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, " at http")
		assert.NotContains(t, err.Error(), "SECRET")
	}
}

func TestOfSnapshots_IsTheBucketOfTheSettingsWithTheKeysOfUp(t *testing.T) {
	c := &cluster.Cluster{}
	c.GitOps.Settings = map[string]string{"ETCD_BACKUP_ENDPOINT": "https://s3.example.com", "ETCD_BACKUP_BUCKET": "etcd"}
	assert.Nil(t, bucket.OfSnapshots(c), "without keys")
	c.SnapshotAccessKey, c.SnapshotSecretKey = cluster.NewSecret("ID"), cluster.NewSecret("KEY")
	assert.Equal(t, &bucket.Bucket{Endpoint: "https://s3.example.com", Name: "etcd", Region: "us-east-1", AccessKey: "ID", SecretKey: "KEY"},
		bucket.OfSnapshots(c))
	c.GitOps.Settings["ETCD_BACKUP_REGION"] = "eu-central-1"
	assert.Equal(t, "eu-central-1", bucket.OfSnapshots(c).Region)
}
