package bucket

import (
	"bytes"
	"cmp"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/manager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"
)

// inbox serves a bucket that can be written. Over TLS, clients of Amazon's send their checksums after the content.
func inbox(t *testing.T, tls bool) (in *Inbox, client func(change func(*s3.Options)) *s3.Client) {
	t.Helper()
	in = &Inbox{Name: "etcd", AccessKey: "writer", SecretKey: "right", Folder: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	server := httptest.NewUnstartedServer(in.Handler())
	if tls {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return in, func(change func(*s3.Options)) *s3.Client {
		o := s3.Options{Region: "us-east-1", UsePathStyle: true, BaseEndpoint: aws.String(server.URL), HTTPClient: server.Client(),
			Credentials: credentials.NewStaticCredentialsProvider("writer", "right", ""), RetryMaxAttempts: 1,
			RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired}
		if change != nil {
			change(&o)
		}
		return s3.New(o)
	}
}

func send(t *testing.T, client *s3.Client, bucket, key string, content []byte) error {
	t.Helper()
	_, err := manager.NewUploader(client).Upload(t.Context(), &s3.PutObjectInput{
		Bucket: aws.String(bucket), Key: aws.String(key), Body: bytes.NewReader(content),
	})
	return err
}

func TestInbox_TakesWhatTheRealClientSends(t *testing.T) {
	small, large := []byte("one"), bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	supported := func(o *s3.Options) { o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported }
	for name, tls := range map[string]bool{"with TLS": true, "without TLS": false} {
		in, client := inbox(t, tls)
		for what, one := range map[string]struct {
			change  func(*s3.Options)
			content []byte
		}{
			"at once": {nil, small}, "at once, with a checksum": {supported, small},
			"in parts": {nil, large}, "in parts, with checksums": {supported, large},
		} {
			key := "infra/infra-2026-01-02T03:04:05Z " + what + ".snap.age"
			require.NoError(t, send(t, client(one.change), "etcd", key, one.content), "%s, %s", name, what)
			stored, err := os.ReadFile(filepath.Join(in.Folder, key))
			require.NoError(t, err)
			require.True(t, bytes.Equal(one.content, stored), "%s, %s", name, what)
		}
		require.Empty(t, in.uploads)
	}
}

func TestInbox_RefusesEverythingElseWithTheErrorsOfS3(t *testing.T) {
	in, client := inbox(t, true)
	for code, change := range map[string]func(*s3.Options){
		"InvalidAccessKeyId":    func(o *s3.Options) { o.Credentials = credentials.NewStaticCredentialsProvider("other", "right", "") },
		"SignatureDoesNotMatch": func(o *s3.Options) { o.Credentials = credentials.NewStaticCredentialsProvider("writer", "wrong", "") },
		"the region 'eu-west-1' is wrong; expecting 'us-east-1'": func(o *s3.Options) { o.Region = "eu-west-1" },
	} {
		require.ErrorContains(t, send(t, client(change), "etcd", "key", []byte("one")), code)
	}
	good := client(nil)
	require.ErrorContains(t, send(t, good, "other", "key", []byte("one")), "NoSuchBucket")
	require.NoError(t, send(t, good, "etcd", "key", []byte("one")))
	_, err := good.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("etcd"), Key: aws.String("key")})
	require.ErrorContains(t, err, "AccessDenied")
	_, err = good.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String("etcd"), Key: aws.String("key")})
	require.ErrorContains(t, err, "AccessDenied")
	_, err = good.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("etcd")})
	require.ErrorContains(t, err, "AccessDenied")
	_, err = good.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("etcd"), Key: aws.String("damaged"),
		Body: strings.NewReader("one"), ChecksumCRC32: aws.String("AAAAAA==")})
	require.ErrorContains(t, err, "BadDigest")
	_, err = good.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("etcd"), Key: aws.String("../outside"),
		Body: strings.NewReader("one")})
	require.Error(t, err)
	stored, err := os.ReadDir(in.Folder)
	require.NoError(t, err)
	require.Len(t, stored, 1)
}

func TestInbox_APartThatIsMissingOrTooSmallMakesNoObject(t *testing.T) {
	in, client := inbox(t, true)
	c, bucket, key := client(nil), aws.String("etcd"), aws.String("key")
	begun, err := c.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: bucket, Key: key})
	require.NoError(t, err)
	tags := map[int32]*string{}
	for _, number := range []int32{1, 2} {
		part, err := c.UploadPart(t.Context(), &s3.UploadPartInput{Bucket: bucket, Key: key, UploadId: begun.UploadId,
			PartNumber: aws.Int32(number), Body: strings.NewReader("small")})
		require.NoError(t, err)
		tags[number] = part.ETag
	}
	for code, numbers := range map[string][]int32{"EntityTooSmall": {1, 2}, "InvalidPart": {3}, "InvalidPartOrder": {2, 1}} {
		list := &types.CompletedMultipartUpload{}
		for _, number := range numbers {
			list.Parts = append(list.Parts, types.CompletedPart{PartNumber: aws.Int32(number), ETag: cmp.Or(tags[number], tags[1])})
		}
		_, err = c.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{Bucket: bucket, Key: key, UploadId: begun.UploadId,
			MultipartUpload: list})
		require.ErrorContains(t, err, code)
	}
	_, err = c.AbortMultipartUpload(t.Context(), &s3.AbortMultipartUploadInput{Bucket: bucket, Key: key, UploadId: begun.UploadId})
	require.NoError(t, err)
	require.Empty(t, in.uploads)
	stored, err := os.ReadDir(in.Folder)
	require.NoError(t, err)
	require.Empty(t, stored)
}

func TestInbox_NobodyWritesWithoutASignature(t *testing.T) {
	in, _ := inbox(t, false)
	server := httptest.NewServer(in.Handler())
	defer server.Close()
	require.Equal(t, "AccessDenied", refused(t, unsigned(t, http.MethodPut, server.URL+"/etcd/key"), http.StatusForbidden))
}

func TestInbox_GivesAReaderWhatWasWrittenAndItsList(t *testing.T) {
	in, client := inbox(t, true)
	in.ReaderKey = "reader"
	reader := client(func(o *s3.Options) { o.Credentials = credentials.NewStaticCredentialsProvider("reader", "right", "") })
	listed, err := reader.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("etcd")})
	require.NoError(t, err)
	require.Empty(t, listed.Contents)
	require.NoError(t, send(t, client(nil), "etcd", "infra/2026-01-02T03:04:05Z.snap.age", []byte("one")))
	require.NoError(t, send(t, reader, "etcd", "infra/20260102T030405Z.db.age", []byte("two")))
	require.NoError(t, send(t, reader, "etcd", "apps/x", []byte("three")))
	listed, err = reader.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("etcd"), Prefix: aws.String("infra/")})
	require.NoError(t, err)
	require.Len(t, listed.Contents, 2)
	require.Equal(t, "infra/2026-01-02T03:04:05Z.snap.age", *listed.Contents[0].Key)
	require.WithinDuration(t, time.Now(), *listed.Contents[0].LastModified, time.Minute)
	got, err := reader.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("etcd"), Key: aws.String("infra/20260102T030405Z.db.age")})
	require.NoError(t, err)
	content, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	require.Equal(t, "two", string(content))
	_, err = reader.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("etcd"), Key: aws.String("infra/other")})
	require.ErrorContains(t, err, "NoSuchKey")
}
