// Package bucket writes, reads and lists objects in a bucket of a server that speaks S3.
package bucket

import (
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

// Object is an object of a bucket.
type Object struct {
	Key     string
	Changed time.Time
}

// Prefix begins the keys of the named cluster's snapshots in the bucket, both those of the CronJob and those of `up`.
func Prefix(name string) string { return name + "/" }

// attempts is how often a request is made that fails for a reason that may pass.
const attempts = 3

func open(b *cluster.S3Bucket) (*minio.Client, error) {
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
func Put(ctx context.Context, b *cluster.S3Bucket, key, path string) error {
	client, err := open(b)
	if err == nil {
		_, err = client.FPutObject(ctx, b.Name, key, path, minio.PutObjectOptions{
			ContentType: "application/octet-stream",
			// The MD5 sum, which every server compares, takes the place of checksums that older servers do not know.
			SendContentMd5: true, DisableContentSha256: true,
		})
	}
	return explain(b, err)
}

// Get copies an object.
func Get(ctx context.Context, b *cluster.S3Bucket, key string, to io.Writer) error {
	client, err := open(b)
	if err != nil {
		return explain(b, err)
	}
	object, err := client.GetObject(ctx, b.Name, key, minio.GetObjectOptions{})
	if err != nil {
		return explain(b, err)
	}
	defer object.Close() // all was read, or the error says more
	_, err = io.Copy(to, object)
	return explain(b, err)
}

// List returns the objects whose keys have a prefix, the oldest first.
func List(ctx context.Context, b *cluster.S3Bucket, prefix string) ([]Object, error) {
	client, err := open(b)
	if err != nil {
		return nil, explain(b, err)
	}
	var objects []Object
	for one := range client.ListObjectsIter(ctx, b.Name, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if one.Err != nil {
			return nil, explain(b, one.Err)
		}
		objects = append(objects, Object{Key: one.Key, Changed: one.LastModified})
	}
	slices.SortStableFunc(objects, func(a, b Object) int { return a.Changed.Compare(b.Changed) })
	return objects, nil
}

// explain returns an error with the bucket, and with the code by which S3 names the cause. It holds nothing of the keys.
func explain(b *cluster.S3Bucket, err error) error {
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
