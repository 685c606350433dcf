package kubelet

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/lab/wait"
)

const (
	// csiTimeout is the longest time of a call to a CSI driver, as in a kubelet.
	csiTimeout = 2 * time.Minute
	// Attempts to mount a volume begin with the first pause, which doubles up to the last one. A kubelet's last one is two minutes.
	firstMountPause, lastMountPause = 500 * time.Millisecond, 15 * time.Second
)

// unmounted is a kubelet's message about a volume that it cannot mount yet, or cannot even look up.
const unmounted = "Unable to attach or mount volumes: unmounted volumes=[%s], unattached volumes=[], failed to process volumes=[%s]: %w"

// claimed is a pod's volume that comes from a claim.
type claimed struct {
	name  string // of the pod's volume
	claim string
}

// claims are the volumes of a pod that come from claims.
func claims(pod *corev1.Pod) []claimed {
	var list []claimed
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			list = append(list, claimed{v.Name, v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil:
			list = append(list, claimed{v.Name, pod.Name + "-" + v.Name})
		}
	}
	return list
}

// mounts are the volumes of CSI drivers that are mounted on a node. They stay when its kubelet restarts, and end with the machine's boot.
type mounts struct {
	mu     sync.Mutex
	pods   map[types.UID]*podMounts
	staged map[string]*staged // by unique name
}

// podMounts are the mounts of a pod.
type podMounts struct {
	cancel context.CancelFunc // ends the attempt that runs
	done   chan struct{}      // closed when no attempt runs

	// The following belong to the attempt while it runs.
	ready   bool
	targets map[string]target // by the name of the pod's volume
	problem string            // why the last attempt failed
	next    time.Time         // when the next one may begin
	pause   time.Duration
}

// target is a mounted volume of a pod.
type target struct {
	volume *corev1.PersistentVolume
	path   string
}

// staged is a volume that a driver has staged on the node, for the pods that use it.
type staged struct {
	mu   sync.Mutex // held during a call to the driver
	path string     // "" while it is not staged
	pods map[types.UID]bool
}

// uniquePrefix is the first part of the unique name of a CSI driver's volume.
const uniquePrefix = "kubernetes.io/csi/"

// uniqueName is the name of a volume in a Node's status.
func uniqueName(volume *corev1.PersistentVolume) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(uniquePrefix + volume.Spec.CSI.Driver + "^" + volume.Spec.CSI.VolumeHandle)
}

// of returns the mounts of a pod, and makes them.
func (m *mounts) of(uid types.UID) *podMounts {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pods == nil {
		m.pods, m.staged = map[types.UID]*podMounts{}, map[string]*staged{}
	}
	if m.pods[uid] == nil {
		idle := make(chan struct{})
		close(idle)
		m.pods[uid] = &podMounts{cancel: func() {}, done: idle, targets: map[string]target{}, pause: firstMountPause}
	}
	return m.pods[uid]
}

// volume returns the staged volume of that name, which pods in use have in common.
func (m *mounts) volume(name string, pod types.UID) *staged {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.staged[name] == nil {
		m.staged[name] = &staged{pods: map[types.UID]bool{}}
	}
	m.staged[name].pods[pod] = true
	return m.staged[name]
}

// inUse are the unique names of all volumes that pods use.
func (m *mounts) inUse() []corev1.UniqueVolumeName {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []corev1.UniqueVolumeName
	for _, name := range slices.Sorted(maps.Keys(m.staged)) {
		names = append(names, corev1.UniqueVolumeName(name))
	}
	return names
}

// splitUniqueName returns the driver and the handle in a unique name.
func splitUniqueName(name string) (driver, handle string) {
	driver, handle, _ = strings.Cut(strings.TrimPrefix(name, uniquePrefix), "^")
	return driver, handle
}

// mountClaims tells whether the volumes of the pod's claims are mounted. Otherwise it mounts them in the background, because a call to a
// driver can take long, and returns when to check again; 0 means that the worker is woken.
func (w *podWorker) mountClaims(ctx context.Context, pod *corev1.Pod) (ready bool, next time.Duration) {
	list := claims(pod)
	if len(list) == 0 {
		return true, 0
	}
	m := w.k.runtime.mounts.of(pod.UID)
	select {
	case <-m.done:
	default:
		return false, 0
	}
	if m.ready {
		return true, 0
	}
	if m.problem != "" {
		w.warn(ctx, pod, "FailedMount", m.problem)
	}
	if left := time.Until(m.next); left > 0 {
		return false, left
	}
	m.done = make(chan struct{})
	var attempt context.Context
	attempt, m.cancel = context.WithCancel(ctx)
	done := m.done
	w.k.work.Go(func() {
		defer w.poke()
		defer close(done)
		err := w.mountAll(attempt, pod, list, m)
		m.ready, m.problem = err == nil, ""
		if err != nil {
			m.problem, m.next = err.Error(), time.Now().Add(m.pause)
			m.pause = min(2*m.pause, lastMountPause)
		}
	})
	return false, 0
}

func (w *podWorker) mountAll(ctx context.Context, pod *corev1.Pod, list []claimed, m *podMounts) error {
	for _, one := range list {
		if _, is := m.targets[one.name]; is {
			continue
		}
		volume, err := w.k.c.boundVolume(ctx, pod, one)
		if err != nil {
			return fmt.Errorf(unmounted, one.name, one.name, err)
		}
		path, err := w.mount(ctx, pod, one, volume)
		if err != nil {
			return err
		}
		m.targets[one.name] = target{volume, path}
	}
	return nil
}

// boundVolume returns the volume of a claim.
func (c *Cluster) boundVolume(ctx context.Context, pod *corev1.Pod, one claimed) (*corev1.PersistentVolume, error) {
	claim, err := c.client.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, one.claim, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("error processing PVC %s/%s: failed to fetch PVC from API server: %w", pod.Namespace, one.claim, err)
	}
	if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return nil, fmt.Errorf("error processing PVC %s/%s: PVC is not bound", pod.Namespace, one.claim)
	}
	volume, err := c.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("error processing PVC %s/%s: failed to fetch PV %s from API server: %w", pod.Namespace, one.claim,
			claim.Spec.VolumeName, err)
	}
	if volume.Spec.CSI == nil {
		return nil, fmt.Errorf("PersistentVolume %s: the lab models volumes of CSI drivers only", volume.Name)
	}
	return volume, nil
}

// mount stages a volume on the node and publishes it for the pod. Its errors are a kubelet's.
func (w *podWorker) mount(ctx context.Context, pod *corev1.Pod, one claimed, volume *corev1.PersistentVolume) (path string, err error) {
	source := volume.Spec.CSI
	s := w.k.runtime.mounts.volume(string(uniqueName(volume)), pod.UID)
	w.k.poke() // the node's status names the volumes in use
	attachment, err := w.attached(ctx, volume)
	if err != nil {
		return "", fmt.Errorf(unmounted, one.name, "", err)
	}
	device := func(err error) error {
		return fmt.Errorf("MountVolume.MountDevice failed for volume %q : %w", volume.Name, err)
	}
	socket := w.k.c.shared.CSI.Drivers(w.k.o.Name)[source.Driver]
	if socket == "" {
		return "", device(fmt.Errorf("kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: driver name %s not found in "+
			"the list of registered CSI drivers", source.Driver))
	}
	secrets, err := w.k.c.stageSecrets(ctx, source.NodeStageSecretRef)
	if err != nil {
		return "", device(err)
	}
	capability := mountCapability(volume)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.path == "" {
		staging := filepath.Join(w.k.c.o.Dir, "plugins", w.k.o.Name, fmt.Sprintf("%x", sha256.Sum256([]byte(source.VolumeHandle)))[:16],
			"globalmount")
		if err := os.MkdirAll(staging, 0o700); err != nil {
			return "", device(err)
		}
		if err := w.k.callDriver(ctx, socket, func(ctx context.Context, node csi.NodeClient) error {
			_, err := node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
				VolumeId: source.VolumeHandle, StagingTargetPath: staging, VolumeCapability: capability, Secrets: secrets,
				VolumeContext: source.VolumeAttributes, PublishContext: attachment,
			})
			return err
		}); err != nil {
			return "", device(err)
		}
		s.path = staging
	}
	path = filepath.Join(w.k.c.podDir(w.key, w.uid), "volumes", "kubernetes.io~csi", volume.Name, "mount")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	if err := w.k.callDriver(ctx, socket, func(ctx context.Context, node csi.NodeClient) error {
		_, err := node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
			VolumeId: source.VolumeHandle, StagingTargetPath: s.path, TargetPath: path, VolumeCapability: capability,
			VolumeContext: source.VolumeAttributes, PublishContext: attachment,
		})
		return err
	}); err != nil {
		return "", fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", volume.Name, err)
	}
	return path, nil
}

// attached waits until the volume is attached to the node, unless its driver needs no attachment. It returns what the attachment says.
func (w *podWorker) attached(ctx context.Context, volume *corev1.PersistentVolume) (map[string]string, error) {
	source := volume.Spec.CSI
	driver, err := w.k.c.client.StorageV1().CSIDrivers().Get(ctx, source.Driver, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err == nil && driver.Spec.AttachRequired != nil && !*driver.Spec.AttachRequired {
		return nil, nil
	}
	name := fmt.Sprintf("csi-%x", sha256.Sum256([]byte(source.VolumeHandle+source.Driver+w.k.o.Name)))
	ctx, cancel := context.WithTimeout(ctx, csiTimeout)
	defer cancel()
	for {
		attachment, err := w.k.c.client.StorageV1().VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
		if err == nil && attachment.Status.Attached {
			return attachment.Status.AttachmentMetadata, nil
		}
		if !wait.Pause(ctx, retry) {
			return nil, errors.New("timed out waiting for the condition")
		}
	}
}

// stageSecrets reads the Secret with which a volume is staged.
func (c *Cluster) stageSecrets(ctx context.Context, ref *corev1.SecretReference) (map[string]string, error) {
	if ref == nil {
		return nil, nil
	}
	secret, err := c.client.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("fetching NodeStageSecretRef %s/%s failed: kubernetes.io/csi: failed to find the secret %[2]s in the "+
			"namespace %[1]s with error: %[3]w", ref.Namespace, ref.Name, err)
	}
	data := map[string]string{}
	for key, value := range secret.Data {
		data[key] = string(value)
	}
	return data, nil
}

// mountCapability is the capability that a volume's driver must have.
func mountCapability(volume *corev1.PersistentVolume) *csi.VolumeCapability {
	capability := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}
	if slices.Contains(volume.Spec.AccessModes, corev1.ReadWriteMany) {
		capability.AccessMode.Mode = csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	}
	if mode := volume.Spec.VolumeMode; mode != nil && *mode == corev1.PersistentVolumeBlock {
		capability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		return capability
	}
	capability.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: volume.Spec.CSI.FSType}}
	return capability
}

// callDriver calls a driver on the node.
func (k *Kubelet) callDriver(ctx context.Context, socket string, call func(context.Context, csi.NodeClient) error) error {
	ctx, cancel := context.WithTimeout(ctx, csiTimeout)
	defer cancel()
	return dialDriver(socket, func(conn *grpc.ClientConn) error { return call(ctx, csi.NewNodeClient(conn)) })
}

// claimPaths are the folders with the mounted volumes of a pod's claims, by the name of the pod's volume.
func (w *podWorker) claimPaths(pod *corev1.Pod) map[string]string {
	if len(claims(pod)) == 0 {
		return nil
	}
	paths := map[string]string{}
	for name, target := range w.k.runtime.mounts.of(pod.UID).targets {
		paths[name] = target.path
	}
	return paths
}

// unmountClaims unmounts the volumes of the pod. It returns false if it must try a volume again, whose driver does not answer.
func (w *podWorker) unmountClaims(ctx context.Context) bool {
	all := &w.k.runtime.mounts
	all.mu.Lock()
	m := all.pods[w.uid]
	all.mu.Unlock()
	if m == nil {
		return true
	}
	m.cancel()
	<-m.done
	ok := true
	for name, target := range m.targets {
		err := w.unpublish(ctx, target)
		if err != nil {
			w.k.log.Debug("volume not unmounted", "pod", w.key, "volume", target.volume.Name, "err", err)
			ok = false
			continue
		}
		delete(m.targets, name)
	}
	if !ok || !w.unstage(ctx) {
		return false
	}
	all.mu.Lock()
	delete(all.pods, w.uid)
	all.mu.Unlock()
	removePodFiles(w.k.c.podDir(w.key, w.uid))
	w.k.poke()
	return true
}

func (w *podWorker) unpublish(ctx context.Context, t target) error {
	socket := w.k.c.shared.CSI.Drivers(w.k.o.Name)[t.volume.Spec.CSI.Driver]
	if socket == "" {
		return fmt.Errorf("driver name %s not found in the list of registered CSI drivers", t.volume.Spec.CSI.Driver)
	}
	return w.k.callDriver(ctx, socket, func(ctx context.Context, node csi.NodeClient) error {
		_, err := node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: t.volume.Spec.CSI.VolumeHandle, TargetPath: t.path})
		return err
	})
}

// unstage unstages the volumes that no pod but this one uses.
func (w *podWorker) unstage(ctx context.Context) bool {
	all, ok := &w.k.runtime.mounts, true
	all.mu.Lock()
	volumes := maps.Clone(all.staged)
	all.mu.Unlock()
	for name, s := range volumes {
		if !w.leave(all, s) {
			continue
		}
		if err := w.k.unstage(ctx, name, s); err != nil {
			w.k.log.Debug("volume not unstaged", "volume", name, "err", err)
			ok = false
			continue
		}
		all.mu.Lock()
		delete(s.pods, w.uid)
		if len(s.pods) == 0 {
			delete(all.staged, name)
		}
		all.mu.Unlock()
	}
	return ok
}

// leave tells whether the pod is the only one that uses a staged volume. If there are others, it does not use it any more.
func (w *podWorker) leave(all *mounts, s *staged) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	if !s.pods[w.uid] {
		return false
	}
	if len(s.pods) > 1 {
		delete(s.pods, w.uid)
		return false
	}
	return true
}

func (k *Kubelet) unstage(ctx context.Context, name string, s *staged) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.path == "" {
		return nil
	}
	driver, handle := splitUniqueName(name)
	socket := k.c.shared.CSI.Drivers(k.o.Name)[driver]
	if socket == "" {
		return fmt.Errorf("driver name %s not found in the list of registered CSI drivers", driver)
	}
	if err := k.callDriver(ctx, socket, func(ctx context.Context, node csi.NodeClient) error {
		_, err := node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: handle, StagingTargetPath: s.path})
		return err
	}); err != nil {
		return err
	}
	path := filepath.Dir(s.path)
	s.path = ""
	return os.RemoveAll(path)
}
