package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
)

// withSnapshotBucket declares a bucket for snapshots of etcd.
func withSnapshotBucket(c *cluster.Cluster) {
	c.GitOps.Settings = map[string]string{
		"DOMAIN": "infra.example.com", "ETCD_BACKUP_ENDPOINT": "https://s3.example.com:9000", "ETCD_BACKUP_BUCKET": "etcd",
	}
	c.SnapshotAccessKey, c.SnapshotSecretKey = cluster.NewSecret("ID"), cluster.EncryptedSecret()
	c.Lifecycle.Snapshots.Recipients = []string{"age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z"}
}

func TestSnapshotBucket_NeedsItsSettingsBothKeysAndARecipient(t *testing.T) {
	assert.Empty(t, problemsOf(t, withSnapshotBucket))
	const remedy = "; declare the bucket, or run: pulumi config rm slipway:snapshotAccessKey, and slipway:snapshotSecretKey"
	for _, one := range []struct {
		change func(*cluster.Cluster)
		want   []string
	}{
		{func(c *cluster.Cluster) { delete(c.GitOps.Settings, "ETCD_BACKUP_ENDPOINT") },
			[]string{"gitops.settings.ETCD_BACKUP_ENDPOINT: is missing, and snapshotAccessKey is set" + remedy}},
		{func(c *cluster.Cluster) { delete(c.GitOps.Settings, "ETCD_BACKUP_BUCKET") },
			[]string{"gitops.settings.ETCD_BACKUP_BUCKET: is missing, and snapshotAccessKey is set" + remedy}},
		{func(c *cluster.Cluster) { c.GitOps.Settings["ETCD_BACKUP_ENDPOINT"] = "s3.example.com" },
			[]string{"gitops.settings.ETCD_BACKUP_ENDPOINT: is not an https URL without a path; write the https URL of the S3 server"}},
		{func(c *cluster.Cluster) { c.SnapshotSecretKey = cluster.Secret{} },
			[]string{"snapshotSecretKey: is missing beside the other key of the bucket for snapshots; " +
				"set it with: pulumi config set --secret slipway:snapshotSecretKey"}},
		{func(c *cluster.Cluster) { c.Lifecycle.Snapshots.Recipients = nil },
			[]string{"lifecycle.snapshots.recipients: is empty, and what is in a bucket is encrypted; write an age public key into it"}},
		{func(c *cluster.Cluster) { c.SnapshotAccessKey = cluster.NewSecret("ID\n") },
			[]string{"snapshotAccessKey: has a space, a line break or another control character in it; " +
				"set it without, for instance with printf instead of echo"}},
	} {
		assert.Equal(t, one.want, problemsOf(t, func(c *cluster.Cluster) {
			withSnapshotBucket(c)
			one.change(c)
		}))
	}
}

func TestAdvice_NamesABucketThatUpHasNoKeysFor(t *testing.T) {
	c := clusters.Infra(t)
	withSnapshotBucket(c)
	c.Lifecycle.Snapshots.Scheduled = true
	day := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	before := c.Advice(day)
	c.SnapshotAccessKey, c.SnapshotSecretKey = cluster.Secret{}, cluster.Secret{}
	after := c.Advice(day)
	require.Len(t, after, len(before)+1)
	assert.Equal(t, "snapshotAccessKey: is missing: the snapshots before a change stay where up runs, and are not copied to the bucket of "+
		"lifecycle.snapshots.scheduled; set it, and snapshotSecretKey", after[len(after)-1].Error())
}

func TestBucketOfSnapshots_IsTheBucketOfTheSettingsWithTheKeysOfUp(t *testing.T) {
	c := &cluster.Cluster{}
	c.GitOps.Settings = map[string]string{"ETCD_BACKUP_ENDPOINT": "https://s3.example.com", "ETCD_BACKUP_BUCKET": "etcd"}
	assert.Nil(t, c.BucketOfSnapshots(), "without keys")
	c.SnapshotAccessKey, c.SnapshotSecretKey = cluster.NewSecret("ID"), cluster.NewSecret("KEY")
	want := &cluster.S3Bucket{Endpoint: "https://s3.example.com", Name: "etcd", Region: "us-east-1", AccessKey: "ID", SecretKey: "KEY"}
	assert.Equal(t, want, c.BucketOfSnapshots())
	c.GitOps.Settings["ETCD_BACKUP_REGION"] = "eu-central-1"
	assert.Equal(t, "eu-central-1", c.BucketOfSnapshots().Region)
}
