//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/nodes/snapshot"
)

// TestRestore_AScheduledSnapshotBringsALostClusterBack rehearses what docs/gitops.md says about snapshots of etcd in a bucket: Flux applies
// the CronJob, a Job of it puts an encrypted snapshot there with Talos's credentials for pods, and the cluster is restored from that object.
func TestRestore_AScheduledSnapshotBringsALostClusterBack(t *testing.T) {
	t.Parallel()
	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	l := labOfShape(t, "scheduled", func(s settings) {
		oneNode(s)
		s.set("lifecycle", map[string]any{"snapshots": map[string]any{
			"recipients": []string{identity.Recipient().String()}, "scheduled": true,
		}})
		gitops := s["slipway:gitops"].(map[string]any)["settings"].(map[string]any)
		gitops["ETCD_BACKUP_ENDPOINT"], gitops["ETCD_BACKUP_BUCKET"] = "https://s3.home.arpa", "snapshots"
	})
	l.setSecret("infra", "snapshotAccessKey", "LABACCESSKEYOFUP")
	l.setSecret("infra", "snapshotSecretKey", l.password())
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	uid := l.field("namespace/kube-system", "{.metadata.uid}")
	l.kubectl("create", "--namespace=default", "configmap", "before")
	var file string
	l.part("a snapshot in the bucket", func(l *lab) { file = jobTakesSnapshot(l, identity) })
	l.part("credentials of pods", podsDoNothingElse)
	l.part("wrong keys of the bucket", wrongBucketKeys)
	l.part("restored from it", func(l *lab) {
		l.kubectl("create", "--namespace=default", "configmap", "after")
		destroyVMs(l)
		l.pulumi("refresh", "--yes", "--skip-preview", "--target", "**-vm", "--target", "**-iso", "--stack", "infra")
		l.setSecret("infra", "snapshotIdentity", identity.String())
		editStackFile(l.t, l.stackFile("infra"), func(s settings) {
			s["slipway:lifecycle"].(map[string]any)["snapshots"].(map[string]any)["recoverFrom"] = "bucket:infra/" + filepath.Base(file)
		})
		out := l.pulumiSays(remindsOfRecovery, "up", "--yes", "--skip-preview", "--stack", "infra")
		require.Contains(l.t, out, "etcd was restored from bucket:infra/"+filepath.Base(file))
		require.Equal(l.t, uid, l.field("namespace/kube-system", "{.metadata.uid}"), "it is the same cluster")
		l.kubectl("get", "--namespace=default", "configmap/before")
		_, err := l.try("kubectl", "--context=admin@infra", "get", "--namespace=default", "configmap/after")
		require.Error(l.t, err, "it was written after the snapshot")
		fluxGoesOn(l)
	})
	unprotectAndDestroy(l)
}

// backup runs kubectl in the namespace of the CronJob.
func (l *lab) backup(args ...string) string {
	l.t.Helper()
	return l.kubectl(append([]string{"--namespace=etcd-backup"}, args...)...)
}

// jobTakesSnapshot makes a Job of the CronJob, and returns the file that it has put into the bucket.
func jobTakesSnapshot(l *lab, identity *age.X25519Identity) string {
	t := l.t
	l.backup("create", "job", "--from=cronjob/etcd-backup", "first")
	l.backup("wait", "--for=condition=Complete", "--timeout=3m", "job/first")
	require.Equal(t, "Succeeded", l.backup("get", "pods", "--selector=job-name=first", "--output=jsonpath={.items[*].status.phase}"))
	files, err := filepath.Glob(filepath.Join(l.home(), "buckets", "snapshots", "infra", "infra-*.snap.age"))
	require.NoError(t, err)
	require.Len(t, files, 1, "%s", l.backup("logs", "job/first"))
	opened, err := snapshot.Open(files[0], identity.String())
	require.NoError(t, err, "slipway reads it")
	require.Greater(t, opened.Bytes, int64(1<<20))
	require.NoError(t, opened.Close())
	_, err = snapshot.Open(files[0], "")
	require.ErrorIs(t, err, snapshot.ErrNoIdentity)
	return files[0]
}

// podsDoNothingElse uses the credentials of pods for something else, and asks for more of them.
func podsDoNothingElse(l *lab) {
	t := l.t
	file := filepath.Join(t.TempDir(), "talosconfig")
	text := l.secret("kubectl", "--context=admin@infra", "--namespace=etcd-backup", "get", "secret/talos",
		"--output=go-template={{.data.config | base64decode}}")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	talos := func(args ...string) (string, error) {
		return l.try(append([]string{"talosctl", "--talosconfig=" + file, "--endpoints=10.25.11.11", "--nodes=10.25.11.11"}, args...)...)
	}
	out, err := talos("etcd", "snapshot", filepath.Join(l.home(), "by-hand.db"))
	require.NoError(t, err, "%s", out)
	for _, denied := range [][]string{
		{"version"}, {"services"}, {"get", "machineconfig"}, {"reboot", "--wait=false"}, {"etcd", "forfeit-leadership"},
	} {
		out, err := talos(denied...)
		require.Error(t, err, "%v", denied)
		require.Contains(t, out, "PermissionDenied", "%v", denied)
	}
	for namespace, says := range map[string]string{
		"default": "Namespace is not allowed: default", "etcd-backup": "Roles not allowed: [os:admin]",
	} {
		l.apply("infra", map[string]any{"apiVersion": "talos.dev/v1alpha1", "kind": "ServiceAccount",
			"metadata": map[string]any{"name": "more", "namespace": namespace}, "spec": map[string]any{"roles": []string{"os:admin"}}})
		l.eventually("Talos refuses it", func() bool {
			return l.kubectl("get", "--namespace="+namespace, "serviceaccounts.talos.dev/more", "--output=jsonpath={.status.failureReason}") == says
		})
		require.Contains(t, l.kubectl("describe", "--namespace="+namespace, "serviceaccounts.talos.dev/more"), says)
		_, err := l.try("kubectl", "--context=admin@infra", "get", "--namespace="+namespace, "secret/more")
		require.Error(t, err)
	}
}

// wrongBucketKeys gives the Job other keys of the bucket than it has. The pod's log says so.
func wrongBucketKeys(l *lab) {
	t := l.t
	vaults := filepath.Join(l.onepassword(), "vaults.yaml")
	before, err := os.ReadFile(vaults)
	require.NoError(t, err)
	const right, wrong = "LABACCESSKEYOFSNAPSHOTS", "SOMEBODYELSESACCESSKEY"
	require.NoError(t, os.WriteFile(vaults, []byte(strings.ReplaceAll(string(before), right, wrong)), 0o600))
	keys := func(id string) {
		l.backup("annotate", "--overwrite", "externalsecret/bucket", "force-sync="+id)
		l.eventually("the keys are those of 1Password", func() bool {
			return l.backup("get", "secret/bucket", "--output=go-template={{.data.id | base64decode}}") == id
		})
	}
	keys(wrong)
	l.backup("create", "job", "--from=cronjob/etcd-backup", "refused")
	l.backup("wait", "--for=jsonpath={.status.failed}=1", "--timeout=3m", "job/refused")
	pod := l.backup("get", "pods", "--selector=job-name=refused", "--field-selector=status.phase=Failed",
		"--output=jsonpath={.items[0].metadata.name}")
	said := l.backup("logs", pod)
	require.Contains(t, said, "failed to push encrypted snapshot")
	require.Contains(t, said, "api error InvalidAccessKeyId")
	l.backup("delete", "job/refused")
	require.NoError(t, os.WriteFile(vaults, before, 0o600))
	keys(right)
}
