package observe

import (
	"context"
	"strings"
	"time"

	"github.com/siderolabs/go-pointer"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/bucket"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/gate"
)

// watchBackup watches the CronJob that takes snapshots of etcd, and looks for the newest one in the bucket, once.
func (g *Gate) watchBackup(w *watches[gate.Cluster]) {
	keep(w, kind{GroupVersionResource: cronJobsKind, Namespace: cluster.BackupNamespace, Name: gate.BackupName}, plain(cronJob),
		func(c *gate.Cluster) *health.Seen[gate.CronJob] { return &c.CronJobs })
	if in := g.spec.Backup.Bucket; in != nil {
		w.Go(func() {
			found := newestBackup(w.ctx, in, g.spec.Cluster)
			g.update(func(c *gate.Cluster) { c.Backup = found })
		})
	}
}

// bucketTimeout is how long the gate waits for the bucket, which closes it in no case.
const bucketTimeout = 15 * time.Second

// newestBackup returns the newest snapshot in the bucket that the CronJob has put there. Those of `up` have other names.
func newestBackup(ctx context.Context, in *cluster.S3Bucket, of string) gate.BackupObject {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	objects, err := bucket.List(ctx, in, bucket.Prefix(of))
	seen := gate.BackupObject{Read: time.Now()}
	if err != nil {
		seen.Err = &health.Broken{Reason: err.Error()}
	}
	for _, object := range objects { // the oldest first
		if strings.HasSuffix(object.Key, ".snap.age") {
			seen.Key, seen.Changed = object.Key, object.Changed
		}
	}
	return seen
}

func cronJob(object *unstructured.Unstructured) (gate.CronJob, error) {
	job, err := kubeapi.Typed[batchv1.CronJob](object)
	return gate.CronJob{
		Read: time.Now(), Created: job.CreationTimestamp.Time, Suspended: pointer.SafeDeref(job.Spec.Suspend),
		Running: len(job.Status.Active), Scheduled: pointer.SafeDeref(job.Status.LastScheduleTime).Time,
		Succeeded: pointer.SafeDeref(job.Status.LastSuccessfulTime).Time,
	}, err
}
