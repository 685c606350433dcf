package gate

import (
	"fmt"
	"time"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
)

// Backup means that snapshots of etcd are taken by a schedule.
type Backup struct {
	Bucket *cluster.S3Bucket `json:"bucket,omitempty"` // into which they go; its keys are secret; nil: only the CronJob is looked at
}

// BackupName is the name of the CronJob in the namespace cluster.BackupNamespace.
const BackupName = "etcd-backup"

// CronJob is the CronJob that takes snapshots.
type CronJob struct {
	Read      time.Time // when it was read
	Created   time.Time
	Suspended bool
	Running   int       // Jobs of it that run
	Scheduled time.Time // when it last made a Job; zero: never
	Succeeded time.Time // when a Job of it last succeeded; zero: never
}

// BackupObject is the newest snapshot of the CronJob in the bucket.
type BackupObject struct {
	Read    time.Time // when the bucket was read; zero: not yet
	Key     string    // of the object
	Changed time.Time // zero: there is none
	Err     *health.Broken
}

// backupAge is the age of a snapshot from which the gate warns.
const backupAge = 24 * time.Hour

// An old snapshot closes no gate: a change may repair the snapshots, and `up` takes its own before it changes etcd.
var etcdBackup = check{
	Name: "the newest scheduled snapshot of etcd is younger than a day",
	Looks: "with `lifecycle.snapshots.scheduled`: the newest object of the CronJob `etcd-backup` in the bucket, or without keys that may " +
		"list it, the last success of the CronJob; an older snapshot is listed, and the gate opens all the same",
	ByHand: "kubectl -n " + cluster.BackupNamespace + " get cronjobs,jobs,pods",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		switch {
		case spec.Backup == nil:
			return nil
		case !seen.CronJobs.Synced && seen.CronJobs.Err == nil:
			return []health.Result{health.NotSeen("", "the CronJob of the snapshots")}
		case spec.Backup.Bucket != nil && seen.Backup.Read.IsZero():
			return []health.Result{health.NotSeen("", "the bucket of the snapshots")}
		}
		return []health.Result{seen.backup(spec.Backup.Bucket)}
	},
}

// backup judges the newest snapshot, from the bucket or by the CronJob.
func (seen *Cluster) backup(in *cluster.S3Bucket) health.Result {
	var job CronJob
	if len(seen.CronJobs.Items) > 0 {
		job = seen.CronJobs.Items[0]
	}
	read, newest, what := job.Read, job.Succeeded, "the last success of the CronJob"
	if listed := in != nil && seen.Backup.Err == nil; listed {
		read, newest, what = seen.Backup.Read, seen.Backup.Changed, "the newest snapshot in the bucket, "+seen.Backup.Key+","
	}
	fresh := func(since time.Time) bool { return !since.IsZero() && read.Sub(since) <= backupAge }
	switch {
	case fresh(newest):
		return health.Pass("")
	case newest.IsZero() && job.Created.IsZero() && seen.CronJobs.Err == nil:
		return health.Skip("", "the CronJob "+BackupName+" does not exist yet")
	case newest.IsZero() && fresh(job.Created):
		result := health.Pass("")
		result.Reason = "there is none yet: the CronJob is new"
		return result
	}
	text := "there is no snapshot"
	if !newest.IsZero() {
		text = fmt.Sprintf("%s is of %s, more than a day ago", what, newest.UTC().Format(time.RFC3339))
	}
	remark := health.Skip(BackupName, text+"; "+job.state(seen.CronJobs.Err)+"; see docs/gitops.md, \"Snapshots of etcd\"").
		WithCommand("kubectl -n " + cluster.BackupNamespace + " get cronjobs,jobs,pods; kubectl -n " + cluster.BackupNamespace +
			" logs --prefix -l app.kubernetes.io/name=" + BackupName)
	if in != nil && seen.Backup.Err != nil {
		return remark.WithEvidence("the bucket cannot be listed: " + seen.Backup.Err.Reason)
	}
	return remark
}

// state says in a few words what the CronJob does.
func (c CronJob) state(err *health.Broken) string {
	at := func(what string, when time.Time) string {
		if when.IsZero() {
			return what + " never"
		}
		return what + " at " + when.UTC().Format(time.RFC3339)
	}
	switch {
	case err != nil:
		return "the CronJob cannot be read: " + err.Reason
	case c.Created.IsZero():
		return "the CronJob does not exist"
	case c.Suspended:
		return "the CronJob is suspended, and " + at("succeeded last", c.Succeeded)
	}
	return fmt.Sprintf("the CronJob %s, and %s; %d of its Jobs run", at("ran last", c.Scheduled), at("succeeded last", c.Succeeded), c.Running)
}
