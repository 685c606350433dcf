package cluster

import (
	"cmp"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// The settings of the stack file with the bucket for snapshots of etcd. The CronJob of the tree uses them, and `up` does with the keys
// snapshotAccessKey and snapshotSecretKey.
const (
	SnapshotEndpoint = "ETCD_BACKUP_ENDPOINT" // https URL of the server
	SnapshotBucket   = "ETCD_BACKUP_BUCKET"   // name of the bucket
	SnapshotRegion   = "ETCD_BACKUP_REGION"   // its region; "" means us-east-1
)

const (
	snapshotAccessKey = "snapshotAccessKey"
	snapshotSecretKey = "snapshotSecretKey"
)

// S3Bucket is a bucket of a server that speaks S3, with keys that may use it.
type S3Bucket struct {
	Endpoint  string `json:"endpoint"`  // https URL of the server
	Name      string `json:"name"`      // of the bucket
	Region    string `json:"region"`    // of the bucket
	AccessKey string `json:"accessKey"` // secret
	SecretKey string `json:"secretKey"` // secret
}

// String returns the server and the name, without the keys.
func (b *S3Bucket) String() string { return "bucket " + b.Name + " at " + b.Endpoint }

// BucketOfSnapshots returns the bucket for snapshots of etcd; nil if `up` has no keys for it.
func (c *Cluster) BucketOfSnapshots() *S3Bucket {
	if !c.SnapshotAccessKey.IsSet() {
		return nil
	}
	of := c.GitOps.Settings
	return &S3Bucket{
		Endpoint: of[SnapshotEndpoint], Name: of[SnapshotBucket], Region: cmp.Or(of[SnapshotRegion], "us-east-1"),
		AccessKey: c.SnapshotAccessKey.Reveal(), SecretKey: c.SnapshotSecretKey.Reveal(),
	}
}

func (c clusterCheck) snapshotBucket() {
	if !c.SnapshotAccessKey.IsSet() && !c.SnapshotSecretKey.IsSet() {
		if from := c.Lifecycle.Snapshots; from.Object() != "" {
			c.Found("lifecycle.snapshots.recoverFrom", "set "+snapshotAccessKey+" and "+snapshotSecretKey+", or put the file where up runs",
				"%s is in a bucket that up has no keys for", from.RecoverFrom)
		}
		return
	}
	for _, one := range []NamedSecret{{snapshotAccessKey, c.SnapshotAccessKey}, {snapshotSecretKey, c.SnapshotSecretKey}} {
		if !one.Secret.IsSet() {
			c.Found(one.Key, "set it with: pulumi config set --secret slipway:"+one.Key,
				"is missing beside the other key of the bucket for snapshots")
		}
	}
	const remedy = "declare the bucket, or run: pulumi config rm slipway:" + snapshotAccessKey + ", and slipway:" + snapshotSecretKey
	for _, setting := range []string{SnapshotEndpoint, SnapshotBucket} {
		if c.GitOps.Settings[setting] == "" {
			c.Found(KeyPath("gitops.settings", setting), remedy, "is missing, and %s is set", snapshotAccessKey)
		}
	}
	if endpoint := c.GitOps.Settings[SnapshotEndpoint]; endpoint != "" {
		form, _ := syntax.Lookup("https-host-url")
		if fault := form.Check(endpoint); fault != nil {
			c.Found(KeyPath("gitops.settings", SnapshotEndpoint), "write the https URL of the S3 server", "%s", fault.Problem)
		}
	}
	if len(c.Lifecycle.Snapshots.Recipients) == 0 {
		c.Found("lifecycle.snapshots.recipients", "write an age public key into it", "is empty, and what is in a bucket is encrypted")
	}
}

// adviseSnapshotBucket says that the snapshots before a change stay on the computer that runs `up`, although there is a bucket.
func (c clusterCheck) adviseSnapshotBucket() {
	if c.Lifecycle.Snapshots.Scheduled && !c.SnapshotAccessKey.IsSet() {
		c.Found(snapshotAccessKey, "set it, and "+snapshotSecretKey,
			"is missing: the snapshots before a change stay where up runs, and are not copied to the bucket of lifecycle.snapshots.scheduled")
	}
}
