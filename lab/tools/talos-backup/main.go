// Command talos-backup stands in for siderolabs/talos-backup v0.1.0-beta.3, whose module is not served everywhere: the same variables,
// steps, names of objects, and texts of errors, with the clients of Talos and Amazon that it uses.
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"filippo.io/age"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/s3/manager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
)

const (
	sector   = 512      // etcd's database consists of sectors, its checksum follows
	partSize = 10 << 20 // larger files go up in parts
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Println(err)
		os.Exit(-1)
	}
}

// run takes a snapshot, encrypts it unless that is switched off, and uploads it.
func run(ctx context.Context) error {
	talosconfig, err := clientconfig.Open("")
	if err != nil {
		return fmt.Errorf("failed to get talosconfig: %w", err)
	}
	talos, err := client.New(ctx, client.WithConfig(talosconfig))
	if err != nil {
		return fmt.Errorf("failed to create talos client: %w", err)
	}
	cluster := cmp.Or(os.Getenv("CLUSTER_NAME"), talosconfig.Context)
	file, err := take(ctx, talos, cluster)
	if err != nil {
		return fmt.Errorf("failed to take etcd snapshot: %w", err)
	}
	defer remove(file)
	kind := "snapshot"
	if os.Getenv("DISABLE_ENCRYPTION") != "true" {
		kind = "encrypted snapshot"
		if file, err = encrypt(file, os.Getenv("AGE_X25519_PUBLIC_KEY")); err != nil {
			return fmt.Errorf("failed to encrypt etcd snapshot: %w", err)
		}
		defer remove(file)
	}
	if err := upload(ctx, file, cmp.Or(os.Getenv("S3_PREFIX"), cluster)); err != nil {
		return fmt.Errorf("failed to push %s: %w", kind, err)
	}
	return nil
}

func remove(file string) {
	if err := os.Remove(file); err != nil {
		log.Printf("error cleaning up file %q: %q", file, err)
	}
}

// take stores a snapshot in the working directory.
func take(ctx context.Context, talos *client.Client, cluster string) (string, error) {
	name := fmt.Sprintf("%s-%s.snap", cluster, time.Now().Format(time.RFC3339))
	file, err := os.OpenFile(name+".part", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", fmt.Errorf("error creating temp file: %w", err)
	}
	defer file.Close()
	defer os.Remove(file.Name()) //nolint:errcheck // it has another name by then, unless something failed
	snapshot, err := talos.EtcdSnapshot(ctx, &machine.EtcdSnapshotRequest{})
	if err != nil {
		return "", fmt.Errorf("error taking snapshot: %w", err)
	}
	defer snapshot.Close()
	size, err := io.Copy(file, snapshot)
	if err != nil {
		return "", fmt.Errorf("error reading: %w", err)
	}
	if err := file.Sync(); err != nil {
		return "", fmt.Errorf("error fsyncing: %w", err)
	}
	if size%sector != sha256.Size {
		return "", fmt.Errorf("sha256 checksum not found (size %d)", size)
	}
	log.Printf("etcd snapshot for cluster %q saved to %q (%d bytes)\n", cluster, name, size)
	return name, os.Rename(file.Name(), name)
}

// encrypt encrypts a file to an age key, and returns the name of the encrypted one.
func encrypt(file, key string) (string, error) {
	recipient, err := age.ParseX25519Recipient(key)
	if err != nil {
		return "", fmt.Errorf("failed to parse public key: %w", err)
	}
	plain, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("failed to open file for encryption %q: %w", file, err)
	}
	defer plain.Close()
	out, err := os.OpenFile(file+".age", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", fmt.Errorf("failed to allocate encrypted file %q: %w", file+".age", err)
	}
	w, err := age.Encrypt(out, recipient)
	if err == nil {
		_, err = io.Copy(w, plain)
		err = errors.Join(err, w.Close(), out.Sync(), out.Close())
	}
	if err != nil {
		return "", fmt.Errorf("failed to encrypt file %q: %w", file, err)
	}
	return out.Name(), nil
}

// upload puts a file into the bucket.
func upload(ctx context.Context, file, prefix string) error {
	amazon, err := config.LoadDefaultConfig(ctx, config.WithRegion(os.Getenv("AWS_REGION")))
	if err != nil {
		return fmt.Errorf("failed to load AWS configuration: %w", err)
	}
	to := s3.NewFromConfig(amazon, func(o *s3.Options) {
		if endpoint := os.Getenv("CUSTOM_S3_ENDPOINT"); endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
			o.UsePathStyle = os.Getenv("USE_PATH_STYLE") == "false" // that release has it the wrong way round
		}
	})
	content, err := os.Open(file)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = manager.NewUploader(to, func(u *manager.Uploader) { u.PartSize = partSize }).Upload(ctx, &s3.PutObjectInput{
		Bucket: aws.String(os.Getenv("BUCKET")), Key: aws.String(prefix + "/" + file), Body: content,
	})
	if err != nil {
		return fmt.Errorf("failed to upload %q snapshot to s3: %w", file, err)
	}
	return nil
}
