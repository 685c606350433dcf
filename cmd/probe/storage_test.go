package probe

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/storage"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/fakes/fakecluster"
)

const (
	csiNodes       = "apis/storage.k8s.io/v1/csinodes"
	storageClasses = "apis/storage.k8s.io/v1/storageclasses"
	jobs           = "apis/batch/v1/jobs"
	claims         = "api/v1/persistentvolumeclaims"
	volumes        = "api/v1/persistentvolumes"
	volumePods     = "{metadata: {name: NAME-abc, namespace: kube-system, labels: {app.kubernetes.io/name: slipway-storage-probe, " +
		"app.kubernetes.io/instance: NAME}}, "
)

// storageRig is a cluster with one StorageClass, whose driver is on one node.
type storageRig struct {
	t    *testing.T
	kube *fakecluster.Kube
	spec storage.Spec
	jobs chan batchv1.Job // that were created

	stays bool   // the volume stays when its claim is deleted
	fails string // the container that fails
	hangs bool   // the claim is never bound
}

func newStorageRig(t *testing.T) *storageRig {
	r := &storageRig{t: t, kube: fakecluster.NewKube(t), jobs: make(chan batchv1.Job, 10)}
	r.spec = storage.Spec{
		Target: targetOf(r.kube, 20*time.Second),
		Nodes:  []string{"worker-1"}, Classes: []string{"ceph-block"},
	}
	r.kube.Serves(claims, volumes, fakecluster.Pods, fakecluster.Events)
	r.kube.Put(t, fakecluster.DaemonSets, `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: cilium, namespace: kube-system,
  labels: {k8s-app: cilium}},
  spec: {template: {spec: {containers: [{name: cilium-agent, image: "registry.example.com/cilium:v1.18.7"}]}}}}`)
	r.kube.Put(t, storageClasses, `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: ceph-block},
  provisioner: rbd.example.com}`)
	r.driver("rbd.example.com")
	r.kube.Accepts(jobs, r.created, r.deleted)
	return r
}

// driver registers a driver on the node.
func (r *storageRig) driver(name string) {
	r.kube.Put(r.t, csiNodes, `{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: worker-1},
  spec: {drivers: [{name: `+name+`, nodeID: worker-1}]}}`)
}

// created does what the Job's controller, the scheduler, the provisioner and the kubelet do.
func (r *storageRig) created(object *unstructured.Unstructured) {
	var job batchv1.Job
	require.NoError(r.t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &job))
	r.jobs <- job
	named := strings.ReplaceAll(volumePods, "NAME", job.Name)
	state := func(container string) string {
		if container == r.fails {
			return "{name: " + container + ", state: {terminated: {reason: Error, exitCode: 1}}}"
		}
		return "{name: " + container + ", state: {terminated: {reason: Completed, exitCode: 0}}}"
	}
	if r.hangs {
		r.kube.Put(r.t, fakecluster.Events, `{apiVersion: v1, kind: Event, metadata: {name: e, namespace: kube-system}, type: Warning,
  reason: ProvisioningFailed, message: no pool, lastTimestamp: "2026-01-01T00:00:00Z",
  involvedObject: {kind: PersistentVolumeClaim, name: `+job.Name+`-abc}}`)
		r.kube.Put(r.t, claims, "{apiVersion: v1, kind: PersistentVolumeClaim, "+strings.TrimPrefix(named, "{")+"spec: {}}")
		r.kube.Put(r.t, fakecluster.Pods, "{apiVersion: v1, kind: Pod, "+strings.TrimPrefix(named, "{")+
			`status: {conditions: [{type: PodScheduled, status: "False", message: no volume}]}}`)
		return
	}
	r.kube.Put(r.t, volumes, "{apiVersion: v1, kind: PersistentVolume, metadata: {name: pvc-1}}")
	r.kube.Put(r.t, claims, "{apiVersion: v1, kind: PersistentVolumeClaim, "+strings.TrimPrefix(named, "{")+"spec: {volumeName: pvc-1}}")
	r.kube.Put(r.t, fakecluster.Pods, "{apiVersion: v1, kind: Pod, "+strings.TrimPrefix(named, "{")+
		"spec: {nodeName: worker-1}, "+
		"status: {phase: Succeeded, initContainerStatuses: ["+state("write")+"], containerStatuses: ["+state("read")+"]}}")
	ends := "Complete"
	if r.fails != "" {
		ends = "Failed"
	}
	r.kube.Put(r.t, jobs, "{apiVersion: batch/v1, kind: Job, metadata: {name: "+job.Name+", namespace: kube-system, labels: "+
		"{app.kubernetes.io/name: slipway-storage-probe, app.kubernetes.io/instance: "+job.Name+"}}, status: {conditions: [{type: "+ends+
		`, status: "True", reason: BackoffLimitExceeded}]}}`)
}

// deleted does what the garbage collector and the provisioner do.
func (r *storageRig) deleted(namespace, name string) {
	r.kube.Delete(fakecluster.Pods, namespace, name+"-abc")
	r.kube.Delete(claims, namespace, name+"-abc")
	if !r.stays {
		r.kube.Delete(volumes, "", "pvc-1")
	}
}

func (r *storageRig) probe(stderr *until, args ...string) (int, health.Report, string) {
	r.t.Helper()
	text := encode(r.t, &r.spec)
	return executeUntil(r.t, stderr, text, append([]string{"storage"}, args...)...)
}

func TestStorage_OpensOnceAVolumeOfTheClassWasWrittenReadAndRemoved(t *testing.T) {
	t.Parallel()
	r := newStorageRig(t)
	code, report, progress := r.probe(new(until))
	assert.Equal(t, exitOpen, code, progress)
	assert.Empty(t, report.Problems)
	job := <-r.jobs
	assert.Empty(t, r.jobs, "one attempt was enough")
	assert.Equal(t, 1, r.kube.Requests()["DELETE "+jobs+"/"+job.Name])

	// A killed probe removes nothing: Kubernetes deletes the Job after its end, with it the pod, and with that the claim.
	assert.EqualValues(t, 60, *job.Spec.TTLSecondsAfterFinished)
	assert.EqualValues(t, 121, *job.Spec.ActiveDeadlineSeconds)
	assert.EqualValues(t, 0, *job.Spec.BackoffLimit)
	pod := job.Spec.Template.Spec
	claim := pod.Volumes[0].Ephemeral.VolumeClaimTemplate
	assert.Equal(t, "ceph-block", *claim.Spec.StorageClassName)
	assert.Equal(t, job.Labels, claim.Labels)
	assert.Equal(t, job.Labels, job.Spec.Template.Labels)
	for _, container := range append(pod.InitContainers, pod.Containers...) {
		assert.Equal(t, "registry.example.com/cilium:v1.18.7", container.Image)
		assert.Equal(t, "/probe", container.VolumeMounts[0].MountPath)
		assert.False(t, *container.SecurityContext.AllowPrivilegeEscalation)
	}
	assert.Equal(t, corev1.RestartPolicyNever, pod.RestartPolicy)
	word := strings.Fields(pod.InitContainers[0].Command[2])[1]
	assert.Equal(t, `test "$(cat /probe/slipway)" = `+word, pod.Containers[0].Command[2])
}

func TestStorage_WaitsForTheDriverBeforeItCreatesAnything(t *testing.T) {
	t.Parallel()
	r := newStorageRig(t)
	r.driver("other.example.com")
	registers := &until{text: "worker-1: driver rbd.example.com", then: func() {
		assert.Empty(t, r.jobs)
		r.driver("rbd.example.com")
	}}
	code, _, progress := r.probe(registers)
	assert.Equal(t, exitOpen, code, progress)
	assert.Len(t, r.jobs, 1)
}

func TestStorage_SaysWhatFailedAndRemovesIt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*storageRig)
		says   string
	}{
		"written": {func(r *storageRig) { r.fails = "write" }, "the pod could not write the volume on worker-1: Error: exit code 1"},
		"read":    {func(r *storageRig) { r.fails = "read" }, "the pod could not read the volume on worker-1: Error: exit code 1"},
		"bound":   {func(r *storageRig) { r.hangs = true }, "not within 1s: the claim is not bound: no volume"},
		"removed": {func(r *storageRig) { r.stays = true }, "not within 8s: was written and read, and volume pvc-1 is being removed"},
		"created": {func(r *storageRig) { r.kube.Delete(fakecluster.DaemonSets, "kube-system", "cilium") },
			"there is no DaemonSet of Cilium, whose image the pod would have; give one with --image"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newStorageRig(t)
			test.change(r)
			switch { // the others end by themselves
			case r.hangs:
				r.spec.Attempt = probe.Duration(time.Second)
			case r.stays: // after everything else, on a busy machine
				r.spec.Attempt = probe.Duration(8 * time.Second)
			}
			code, report, progress := r.probe(new(until), "--once")
			assert.Equal(t, exitUnhealthy, code, progress)
			require.Len(t, report.Problems, 1, progress)
			assert.Equal(t, test.says, report.Problems[0].Reason)
			assert.Equal(t, "StorageClass ceph-block", report.Problems[0].Subject)
			if r.hangs {
				assert.Contains(t, report.Problems[0].Evidence, "event ProvisioningFailed: no pool")
			}
			if len(r.jobs) > 0 {
				assert.Positive(t, r.kube.Requests()["DELETE "+jobs+"/"+(<-r.jobs).Name])
			}
		})
	}
}

// A probe that was killed has left its Job. The next one removes it, and does not take its result for its own.
func TestStorage_RemovesWhatAKilledProbeHasLeft(t *testing.T) {
	t.Parallel()
	r := newStorageRig(t)
	first := newStorageRig(t)
	_, _, _ = first.probe(new(until))
	name := (<-first.jobs).Name
	r.kube.Put(t, jobs, "{apiVersion: batch/v1, kind: Job, metadata: {name: "+name+", namespace: kube-system, labels: "+
		"{app.kubernetes.io/name: slipway-storage-probe, app.kubernetes.io/instance: "+name+"}}, "+
		`status: {conditions: [{type: Failed, status: "True"}]}}`)
	code, _, progress := r.probe(new(until))
	assert.Equal(t, exitOpen, code, progress)
	assert.Equal(t, 2, r.kube.Requests()["DELETE "+jobs+"/"+name])
	assert.Len(t, r.jobs, 1)
}

func TestStorage_TriesNoVolumeOfAProviderThatIsAbsentAndOpens(t *testing.T) {
	t.Parallel()
	r := newStorageRig(t)
	r.spec.Connection = &storage.Connection{Provider: "infra", Namespace: "flux-system", ExternalSecret: "storage-monitors"}
	r.kube.Serves(externalSecrets)
	secret := func(status string) {
		r.kube.Put(t, externalSecrets, `{apiVersion: external-secrets.io/v1, kind: ExternalSecret,
  metadata: {name: storage-monitors, namespace: flux-system, generation: 1}, status: {`+status+`}}`)
	}
	secret("")
	refused := &until{text: "has no Ready condition yet", then: func() {
		secret(`conditions: [{type: Ready, status: "False", reason: SecretSyncedError, message: could not get secret data from provider}]`)
		r.kube.Put(t, fakecluster.Events, `{apiVersion: v1, kind: Event, metadata: {name: e, namespace: flux-system}, type: Warning,
  reason: UpdateFailed, message: "error processing spec.data[0], err: key not found in 1Password Vaults: infra-storage in: map[storage:1]",
  lastTimestamp: "2026-01-01T00:00:00Z", involvedObject: {kind: ExternalSecret, name: storage-monitors}}`)
	}}
	code, report, progress := r.probe(refused)
	assert.Equal(t, exitOpen, code, progress)
	require.Len(t, report.Problems, 2, "both are remarks")
	assert.Contains(t, report.Problems[0].Reason, "is absent: 1Password has no item of it")
	assert.Empty(t, r.jobs)

	secret(`conditions: [{type: Ready, status: "True", reason: SecretSynced}], syncedResourceVersion: 1-abc`)
	code, _, progress = r.probe(new(until))
	assert.Equal(t, exitOpen, code, progress)
	assert.Len(t, r.jobs, 1, "the provider has appeared")
}

func TestStorage_DeletesItsJobWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	r := newStorageRig(t)
	r.hangs = true
	text := encode(t, &r.spec)
	ctx, interrupt := context.WithCancel(t.Context())
	stderr := &until{text: "the claim is not bound", then: interrupt}
	code := run(ctx, []string{"storage"}, strings.NewReader(text), new(bytes.Buffer), stderr)
	assert.Equal(t, exitUnhealthy, code)
	assert.Equal(t, 1, r.kube.Requests()["DELETE "+jobs+"/"+(<-r.jobs).Name], stderr.String())
}

func TestStorage_ByHandTakesClassesOrTheStacksOutput(t *testing.T) {
	t.Parallel()
	r := newStorageRig(t)
	file := saved(t, "kubeconfig", r.kube.Config)
	code, report, progress := execute(t, "", "storage", "--kubeconfig", file, "--class", "ceph-block", "--image", "busybox:1")
	assert.Equal(t, exitOpen, code, progress)
	assert.Len(t, report.Results, len(storage.Checks))
	assert.Equal(t, "busybox:1", (<-r.jobs).Spec.Template.Spec.Containers[0].Image)

	several := saved(t, "several.json", `{"cluster":"infra","nodes":["worker-1"],"classes":["ceph-block","fast"],"drivers":["x.example.com"]}`)
	code, report, _ = execute(t, "", "storage", "--kubeconfig", file, "--spec", several, "--once")
	assert.Equal(t, exitUnhealthy, code)
	require.Len(t, report.Problems, 2)
	assert.Equal(t, "StorageClass fast", report.Problems[0].Subject)
	assert.Equal(t, "kubectl --kubeconfig "+file+" get storageclasses", report.Problems[0].Command)

	spec := saved(t, "storage.json", `{"cluster":"infra","nodes":["worker-1"],"classes":["ceph-block"]}`)
	code, _, progress = execute(t, "", "storage", "--kubeconfig", file, "--spec", spec)
	assert.Equal(t, exitOpen, code, progress)
	code, _, _ = execute(t, "", "storage", "--kubeconfig", file, "--spec", spec, "--class", "x")
	assert.Equal(t, exitUsage, code)
	code, _, _ = execute(t, "", "storage", "--kubeconfig", file)
	assert.Equal(t, exitUsage, code)
}
