package gate

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// backedUp returns a healthy cluster that takes snapshots by a schedule, into a bucket that can be listed.
func backedUp(change func(*Cluster)) func() (*Spec, *Cluster) {
	return func() (*Spec, *Cluster) {
		spec := declared()
		spec.Backup = &Backup{Bucket: &cluster.S3Bucket{Name: "etcd"}}
		seen := healthy(spec)
		seen.CronJobs = health.Seen[CronJob]{Synced: true, Items: []CronJob{{
			Read: noon, Created: noon.AddDate(0, -1, 0), Scheduled: noon.Add(-time.Hour), Succeeded: noon.Add(-time.Hour),
		}}}
		seen.Backup = BackupObject{
			Read: noon, Key: "infra/infra-2026-11-26T11:00:00Z.snap.age", Changed: noon.Add(-time.Hour),
		}
		change(seen)
		return spec, seen
	}
}

func oldBackup(seen *Cluster) {
	old := noon.Add(-30 * time.Hour)
	seen.CronJobs.Items[0].Succeeded = old
	seen.Backup.Key, seen.Backup.Changed = "infra/infra-2026-11-25T06:00:00Z.snap.age", old
}

var (
	_ = scenario("backup-of-today", true, backedUp(func(*Cluster) {}))
	_ = scenario("backup-of-yesterday", true, backedUp(oldBackup))
	_ = scenario("backup-suspended", true, backedUp(func(seen *Cluster) {
		oldBackup(seen)
		seen.CronJobs.Items[0].Suspended = true
	}))
	_ = scenario("backup-lost-in-the-bucket", true, backedUp(func(seen *Cluster) { seen.Backup = BackupObject{Read: noon} }))
	_ = scenario("backup-in-a-bucket-that-cannot-be-listed", true, backedUp(func(seen *Cluster) {
		oldBackup(seen)
		seen.Backup = BackupObject{Read: noon, Err: &health.Broken{Reason: "bucket etcd at https://s3.home.arpa: AccessDenied: Access Denied"}}
	}))
	_ = scenario("backup-before-its-cronjob", true, backedUp(func(seen *Cluster) {
		seen.CronJobs.Items, seen.Backup = nil, BackupObject{Read: noon}
	}))
	_ = scenario("backup-of-a-new-cronjob", true, backedUp(func(seen *Cluster) {
		seen.Backup = BackupObject{Read: noon}
		seen.CronJobs.Items[0] = CronJob{Read: noon, Created: noon.Add(-time.Hour)}
	}))
	_ = scenario("backup-with-an-unreadable-cronjob", true, backedUp(func(seen *Cluster) {
		oldBackup(seen)
		seen.CronJobs = health.Seen[CronJob]{Err: &health.Broken{Reason: "forbidden"}}
	}))
)

func TestGate_WithoutKeysOfTheBucketTheCronJobTellsTheAgeOfTheSnapshot(t *testing.T) {
	for name, warns := range map[string]bool{"backup-of-today": false, "backup-of-yesterday": true} {
		spec, seen := scenarios[name].make()
		spec.Backup.Bucket, seen.Backup = nil, BackupObject{}
		results := Evaluate(spec, seen)
		require.True(t, health.Hold(results), name)
		last := results[len(results)-1]
		assert.Equal(t, etcdBackup.Name, last.Check)
		assert.Equal(t, warns, strings.Contains(last.Reason, "the last success of the CronJob is of 2026-11-25T06:00:00Z"), name)
	}
}

func TestGate_WaitsUntilItHasSeenTheSnapshots(t *testing.T) {
	for name, change := range map[string]func(*Cluster){
		"bucket": func(seen *Cluster) { seen.Backup = BackupObject{} }, "CronJob": func(seen *Cluster) { seen.CronJobs = health.Seen[CronJob]{} },
	} {
		assert.False(t, health.Hold(Evaluate(backedUp(change)())), name)
	}
}

func TestSpec_PublicHoldsNoKeysOfTheBucket(t *testing.T) {
	spec := declared()
	spec.Backup = &Backup{Bucket: &cluster.S3Bucket{Name: "etcd", AccessKey: "ACCESS", SecretKey: "SECRET"}}
	text, err := health.Public(spec)
	require.NoError(t, err)
	assert.Contains(t, text, `"backup":{}`)
	assert.NotContains(t, text, "SECRET")
	assert.NotNil(t, spec.Backup.Bucket, "the spec itself keeps them")
}
