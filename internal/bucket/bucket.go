// Package bucket writes, reads and lists objects in a bucket of a server that speaks S3.
package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/slipway-platform/slipway/cluster"
)

// Bucket is a bucket with keys that may use it.
type Bucket struct {
	Endpoint  string `json:"endpoint"`  // https URL of the server
	Name      string `json:"name"`      // of the bucket
	Region    string `json:"region"`    // of the bucket
	AccessKey string `json:"accessKey"` // secret
	SecretKey string `json:"secretKey"` // secret
}

// Object is an object of a bucket.
type Object struct {
	Key     string
	Changed time.Time
}

// OfSnapshots returns the bucket for snapshots of etcd that a stack file declares; nil if `up` has no keys for it.
func OfSnapshots(c *cluster.Cluster) *Bucket {
	if !c.SnapshotAccessKey.IsSet() {
		return nil
	}
	of := c.GitOps.Settings
	return &Bucket{
		Endpoint: of[cluster.SnapshotEndpoint], Name: of[cluster.SnapshotBucket], Region: cmp.Or(of[cluster.SnapshotRegion], "us-east-1"),
		AccessKey: c.SnapshotAccessKey.Reveal(), SecretKey: c.SnapshotSecretKey.Reveal(),
	}
}

// Prefix begins the keys of a cluster's snapshots in the bucket, both those of the CronJob and those of `up`.
func Prefix(cluster string) string { return cluster + "/" }

// String returns the server and the name, without the keys.
func (b *Bucket) String() string { return "bucket " + b.Name + " at " + b.Endpoint }

// attempts is how often a request is made that fails for a reason that may pass.
const attempts = 3

func (b *Bucket) client() (*minio.Client, error) {
	server, err := url.Parse(b.Endpoint)
	if err != nil {
		return nil, err
	}
	return minio.New(server.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(b.AccessKey, b.SecretKey, ""),
		Secure: server.Scheme == "https", Region: b.Region, MaxRetries: attempts,
		BucketLookup: minio.BucketLookupPath, // servers other than AWS need it
	})
}

// Put writes a file under a key. Keys that may only write are enough.
func (b *Bucket) Put(ctx context.Context, key, path string) error {
	client, err := b.client()
	if err == nil {
		_, err = client.FPutObject(ctx, b.Name, key, path, minio.PutObjectOptions{
			ContentType: "application/octet-stream",
			// The MD5 sum, which every server compares, takes the place of checksums that older servers do not know.
			SendContentMd5: true, DisableContentSha256: true,
		})
	}
	return b.explain(err)
}

// Get copies an object.
func (b *Bucket) Get(ctx context.Context, key string, to io.Writer) error {
	client, err := b.client()
	if err != nil {
		return b.explain(err)
	}
	object, err := client.GetObject(ctx, b.Name, key, minio.GetObjectOptions{})
	if err != nil {
		return b.explain(err)
	}
	defer object.Close() //nolint:errcheck // all was read, or the error says more
	_, err = io.Copy(to, object)
	return b.explain(err)
}

// List returns the objects whose keys have a prefix, the oldest first.
func (b *Bucket) List(ctx context.Context, prefix string) ([]Object, error) {
	client, err := b.client()
	if err != nil {
		return nil, b.explain(err)
	}
	var objects []Object
	for one := range client.ListObjectsIter(ctx, b.Name, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if one.Err != nil {
			return nil, b.explain(one.Err)
		}
		objects = append(objects, Object{Key: one.Key, Changed: one.LastModified})
	}
	slices.SortStableFunc(objects, func(a, b Object) int { return a.Changed.Compare(b.Changed) })
	return objects, nil
}

// explain returns an error with the bucket, and with the code by which S3 names the cause. It holds nothing of the keys.
func (b *Bucket) explain(err error) error {
	var refused minio.ErrorResponse
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*os.PathError)):
		return err
	case errors.As(err, &refused) && refused.Code != "":
		return fmt.Errorf("%s: %s: %s", b, refused.Code, strings.TrimSuffix(refused.Message, "."))
	}
	return fmt.Errorf("%s: %w", b, err)
}
