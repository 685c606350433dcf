package observe

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/secrecy"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/health/kube"
	"github.com/slipway-platform/slipway/internal/health/storage"
)

var (
	jobsKind    = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	claimsKind  = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	volumesKind = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
)

const (
	// betweenAttempts is the time between two attempts with a volume.
	betweenAttempts = 5 * time.Second
	// removeAtEnd is the longest time in which the Job is deleted after an interrupt. Pulumi kills what it interrupts after a few seconds.
	removeAtEnd = 3 * time.Second
)

// jobTemplate is the Job that tries a volume.
//
//go:embed storagevolume.yaml
var jobTemplate string

// attempt is an attempt with a volume of a class.
type attempt struct {
	*Storage
	class string
	name  string // of the Job
	label string // selector of everything of the attempt
	began time.Time
	state storage.Volume
}

// tryVolume tries a volume of a class again and again until one works, as soon as the class and its driver are there.
func (s *Storage) tryVolume(ctx context.Context, class string) {
	a := &attempt{Storage: s, class: class, name: volumeJob(class)}
	a.label = "app.kubernetes.io/name=" + storage.ProbeName + ",app.kubernetes.io/instance=" + a.name
	a.state.Job = a.name
	for ; ctx.Err() == nil && !a.state.Done; pause(ctx, pollEvery) {
		var may bool
		s.read(func(seen *storage.Cluster) { _, may = seen.May(s.spec, class) })
		if !may {
			continue
		}
		err := a.try(ctx)
		if err != nil {
			a.remove(ctx)
		}
		a.state.Doing, a.state.Done = "", err == nil
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			a.state.Failed = err.Error()
		}
		a.publish()
		if err != nil {
			pause(ctx, betweenAttempts)
		}
	}
}

// volumeJob is the name of a class's Job. It is the same each time, so an attempt finds the rest of a killed one.
func volumeJob(class string) string {
	return fmt.Sprintf("slipway-storage-%.8x", sha256.Sum256([]byte(class)))
}

func (a *attempt) publish() {
	state := a.state
	a.update(func(seen *storage.Cluster) { put(&seen.Volumes, a.class, state) })
}

// waits publishes what the attempt waits for.
func (a *attempt) waits(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != a.state.Doing {
		a.state.Doing = text
		a.publish()
	}
}

// final is an error after which an attempt has failed. After any other, the server is asked again.
type final struct{ error }

// until polls until done returns true or a final error, or the attempt has taken too long.
func (a *attempt) until(ctx context.Context, done func() (bool, error)) error {
	for ; ctx.Err() == nil; pause(ctx, pollEvery) {
		is, err := done()
		switch {
		case err == nil && is:
			return nil
		case errors.As(err, new(final)), apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return err
		case time.Since(a.began) > time.Duration(a.spec.Attempt):
			text := fmt.Sprintf("not within %s: %s", time.Duration(a.spec.Attempt), a.state.Doing)
			if err != nil {
				text += ": " + firstLine(err.Error())
			}
			return errors.New(text)
		}
	}
	return ctx.Err()
}

// try makes one attempt.
func (a *attempt) try(ctx context.Context) error {
	a.began, a.state.Pod, a.state.Claim = time.Now(), "", ""
	a.waits("an earlier attempt's volume is being removed")
	if err := a.until(ctx, func() (bool, error) { return a.gone(ctx) }); err != nil {
		return err
	}
	a.waits("the Job is being created")
	image, err := a.image(ctx)
	if err != nil {
		return err
	}
	job, err := a.job(image)
	if err != nil {
		return err
	}
	if err := a.until(ctx, func() (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		_, err := a.kube.Objects.Resource(jobsKind).Namespace(storage.Namespace).Create(ctx, job, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // an answer before was lost
			err = nil
		}
		return err == nil, err
	}); err != nil {
		return fmt.Errorf("the Job cannot be created: %w", err)
	}
	volume := ""
	if err := a.until(ctx, func() (bool, error) { return a.ended(ctx, &volume) }); err != nil {
		return err
	}
	a.waits("was written and read, and volume %s is being removed", volume)
	return a.until(ctx, func() (bool, error) {
		gone, err := a.gone(ctx)
		if err != nil || !gone || volume == "" {
			return gone, err
		}
		volumes, err := a.list(ctx, volumesKind, "", metav1.ListOptions{FieldSelector: "metadata.name=" + volume})
		return len(volumes) == 0, err
	})
}

// ended reports whether the Job has ended well. volume becomes the name of the bound volume.
func (a *attempt) ended(ctx context.Context, volume *string) (bool, error) {
	of := metav1.ListOptions{LabelSelector: a.label}
	jobs, err := a.list(ctx, jobsKind, storage.Namespace, of)
	if err != nil {
		return false, err
	}
	claims, err := a.list(ctx, claimsKind, storage.Namespace, of)
	if err != nil {
		return false, err
	}
	pods, err := a.list(ctx, kubeapi.Pods, storage.Namespace, of)
	if err != nil {
		return false, err
	}
	if len(jobs) == 0 {
		return false, final{errors.New("somebody has deleted the Job")}
	}
	for i := range claims {
		claim, err := kubeapi.Typed[corev1.PersistentVolumeClaim](&claims[i])
		if err != nil {
			return false, err
		}
		a.state.Claim, *volume = claim.Name, claim.Spec.VolumeName
	}
	var seen kube.Pod
	for i := range pods {
		if seen, err = kubePod(nil, &pods[i]); err != nil {
			return false, err
		}
		a.state.Pod = seen.Name
	}
	job, err := kubeapi.Typed[batchv1.Job](&jobs[0])
	if err != nil {
		return false, err
	}
	for _, condition := range job.Status.Conditions {
		switch {
		case condition.Status != corev1.ConditionTrue:
		case condition.Type == batchv1.JobComplete && *volume == "":
			return false, final{errors.New("the pod has ended without a bound claim")}
		case condition.Type == batchv1.JobComplete:
			return true, nil
		case condition.Type == batchv1.JobFailed:
			return false, final{errors.New(failure(seen, condition))}
		}
	}
	a.waits("%s", doing(seen, *volume))
	return false, nil
}

// doing says what the attempt waits for.
func doing(pod kube.Pod, volume string) string {
	text := ""
	switch {
	case pod.Name == "":
		return "the Job has no pod yet"
	case volume == "":
		text = "the claim is not bound"
	case pod.Node == "":
		text = "the claim is bound, and the pod is not scheduled"
	default:
		text = "the claim is bound, and the pod on " + pod.Node + " has not written and read it yet"
	}
	if pod.Node == "" && pod.Unscheduled != "" {
		text += ": " + pod.Unscheduled
	}
	for _, container := range pod.Containers {
		if why, waits := strings.CutPrefix(container.State, "waiting: "); waits && !strings.HasPrefix(why, "PodInitializing") {
			return text + ": container " + container.Name + " waits: " + secrecy.Line(firstLine(why))
		}
	}
	return text
}

// failure says why the Job has failed.
func failure(pod kube.Pod, condition batchv1.JobCondition) string {
	for _, container := range pod.Containers {
		if how, ended := strings.CutPrefix(container.State, "terminated: "); ended && !strings.HasPrefix(how, "Completed") {
			return fmt.Sprintf("the pod could not %s the volume on %s: %s", container.Name, pod.Node, secrecy.Line(firstLine(how)))
		}
	}
	return "the Job has failed: " + secrecy.Line(condition.Reason+": "+firstLine(condition.Message))
}

// gone deletes the Job, and reports whether nothing of it is left. Its pod goes with it, and the claim with the pod.
func (a *attempt) gone(ctx context.Context) (bool, error) {
	for _, resource := range []schema.GroupVersionResource{jobsKind, kubeapi.Pods, claimsKind} {
		left, err := a.list(ctx, resource, storage.Namespace, metav1.ListOptions{LabelSelector: a.label})
		if err != nil {
			return false, err
		}
		if len(left) == 0 {
			continue
		}
		if resource == jobsKind && left[0].GetDeletionTimestamp() == nil {
			err = a.delete(ctx)
		}
		return false, err
	}
	return true, nil
}

func (a *attempt) delete(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	options := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	err := a.kube.Objects.Resource(jobsKind).Namespace(storage.Namespace).Delete(ctx, a.name, options)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// remove deletes the Job of an attempt that has failed, also after ctx has ended.
func (a *attempt) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeAtEnd)
	defer cancel()
	_ = a.delete(ctx) // if that fails, the next attempt deletes it, or Kubernetes
}

// list returns objects.
func (a *attempt) list(
	ctx context.Context, of schema.GroupVersionResource, namespace string, options metav1.ListOptions,
) ([]unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	list, err := a.kube.Objects.Resource(of).Namespace(namespace).List(ctx, options)
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// image returns the image of the pod: the declared one, or else that of the Cilium agent, which every node has and which has a shell.
func (a *attempt) image(ctx context.Context) (image string, err error) {
	if a.spec.Image != "" {
		return a.spec.Image, nil
	}
	err = a.until(ctx, func() (bool, error) {
		sets, err := a.list(ctx, kubeapi.DaemonSets, "", metav1.ListOptions{LabelSelector: cluster.CiliumAgentSelector})
		for i := range sets {
			for _, container := range kubeapi.Entries(sets[i].Object, "spec", "template", "spec", "containers") {
				if container["name"] == cluster.CiliumAgentContainer {
					image, _ = container["image"].(string)
				}
			}
		}
		if err == nil && image == "" {
			return false, final{errors.New("there is no DaemonSet of Cilium, whose image the pod would have; give one with --image")}
		}
		return err == nil, err
	})
	return image, err
}

// job returns the Job with a new word.
func (a *attempt) job(image string) (*unstructured.Unstructured, error) {
	text := strings.NewReplacer(
		"$JOB", a.name, "$NAMESPACE", storage.Namespace, "$PROBE", storage.ProbeName, "$CLASS", strconv.Quote(a.class),
		"$IMAGE", strconv.Quote(image), "$WORD", rand.Text(), "$SECONDS", fmt.Sprint(int64(time.Duration(a.spec.Attempt)/time.Second)+1),
	).Replace(jobTemplate)
	job := new(unstructured.Unstructured)
	return job, yaml.Unmarshal([]byte(text), job)
}
