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

	"github.com/slipway-platform/slipway/internal/clients/bucket"
	"github.com/slipway-platform/slipway/tests/fakes/buckettest"
)

func TestBucket_GivesBackWhatWasPutIntoIt(t *testing.T) {
	var server buckettest.Server
	in := server.Start(t)
	content := bytes.Repeat([]byte("snapshot"), 1000)
	path := filepath.Join(t.TempDir(), "x.db")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	require.NoError(t, bucket.Put(t.Context(), in, "infra/x 2026:01.db", path))
	assert.Equal(t, content, server.Object("infra/x 2026:01.db"))
	var got bytes.Buffer
	require.NoError(t, bucket.Get(t.Context(), in, "infra/x 2026:01.db", &got))
	assert.Equal(t, content, got.Bytes())
}

func TestBucket_ListsTheObjectsOfAPrefixOldestFirst(t *testing.T) {
	var server buckettest.Server
	in := server.Start(t)
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	server.Put("infra/a", nil, noon)
	server.Put("infra/b", nil, noon.Add(-time.Hour))
	server.Put("infra-2/c", nil, noon)
	objects, err := bucket.List(t.Context(), in, "infra/")
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
	require.ErrorIs(t, bucket.Put(t.Context(), in, "infra/x.db", path), os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	problems := map[string]error{
		"AccessDenied: The server says no": bucket.Put(t.Context(), in, "infra/x.db", path),
		"NoSuchKey: ":                      bucket.Get(t.Context(), in, "infra/x.db", &bytes.Buffer{}),
	}
	other := *in
	other.Name = "other"
	_, problems["NoSuchBucket: "] = bucket.List(t.Context(), &other, "")
	closed := *in
	closed.Endpoint = "https://127.0.0.1:1"
	_, problems["connection refused"] = bucket.List(t.Context(), &closed, "")
	for want, err := range problems {
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, " at http")
		assert.NotContains(t, err.Error(), "SECRET")
	}
}
