package rook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/lab/csi"
	"github.com/slipway-platform/slipway/lab/workload"
)

// startCSIPlugin runs the CSI driver in the pod of a node, or in that of the provisioner.
func (r *Rook) startCSIPlugin(ctx context.Context, c workload.Container) (*workload.Instance, error) {
	i, ctx := workload.NewInstance(ctx)
	i.After(c.Cluster.PodStart, func() {
		if err := r.csiDriver(c).Serve(ctx, csi.Socket(string(c.Pod.UID))); err != nil {
			fmt.Fprintln(c.Log, err)
			i.Exit(1)
			return
		}
		i.SetReady(true)
	})
	return i, nil
}

// csiDriver is the driver of a container.
func (r *Rook) csiDriver(c workload.Container) *csi.Driver {
	return &csi.Driver{
		Name: flagOf(c, "drivername"), Version: tagOf(c.Spec.Image), Cluster: c.Cluster.Name, Node: c.Node,
		Controller: flagOf(c, "controllerserver") == "true",
		Ceph:       r.Ceph,
		Config:     func(ctx context.Context, id string) ([]string, string, error) { return csiConfigOf(ctx, c, id) },
	}
}

// csiConfigOf reads the monitors and the RADOS namespace of a cluster id from the driver's configuration.
func csiConfigOf(ctx context.Context, c workload.Container, clusterID string) (monitors []string, namespace string, err error) {
	config, err := c.Cluster.Client.CoreV1().ConfigMaps(c.Pod.Namespace).Get(ctx, csiConfig, metav1.GetOptions{})
	if err != nil {
		return nil, "", err
	}
	var entries []csiClusterConfig
	if err := json.Unmarshal([]byte(config.Data[csiConfigKey]), &entries); err != nil {
		return nil, "", fmt.Errorf("unmarshal failed (%w), raw buffer response: %s", err, config.Data[csiConfigKey])
	}
	at := slices.IndexFunc(entries, func(e csiClusterConfig) bool { return e.ClusterID == clusterID })
	if at < 0 {
		return nil, "", fmt.Errorf("missing configuration for cluster ID %q", clusterID)
	}
	if len(entries[at].Monitors) == 0 {
		return nil, "", fmt.Errorf("empty monitor list for cluster ID (%s) in config", clusterID)
	}
	return entries[at].Monitors, entries[at].RBD.RadosNamespace, nil
}

// driverName asks a driver for its name.
func driverName(ctx context.Context, socket string) (string, error) {
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	info, err := csipb.NewIdentityClient(conn).GetPluginInfo(ctx, &csipb.GetPluginInfoRequest{})
	return info.GetName(), err
}

// startRegistrar runs the sidecar that registers the driver of its pod with the kubelet of its node, once the driver answers.
func (r *Rook) startRegistrar(ctx context.Context, c workload.Container) (*workload.Instance, error) {
	return sidecar(ctx, c, func(ctx context.Context, i *workload.Instance, name string) { r.register(ctx, c, i, name) })
}

// sidecar runs act once the driver of its pod answers with its name.
func sidecar(ctx context.Context, c workload.Container, act func(ctx context.Context, i *workload.Instance, driver string)) (*workload.Instance, error) {
	i, ctx := workload.NewInstance(ctx)
	i.SetReady(true)
	i.After(c.Cluster.PodStart, func() {
		name := ""
		workload.RetryUntilOK(ctx, c, func() (err error) { name, err = driverName(ctx, csi.Socket(string(c.Pod.UID))); return err },
			func() { act(ctx, i, name) })
	})
	return i, nil
}

func (r *Rook) register(ctx context.Context, c workload.Container, i *workload.Instance, name string) {
	socket := csi.Socket(string(c.Pod.UID))
	down := (&csi.Driver{Cluster: c.Cluster.Name, Node: c.Node, Ceph: r.Ceph}).NodeDown
	for {
		changed := c.Cluster.Faults.Changed()
		if driverMissing(c) {
			fmt.Fprintln(c.Log, "Registration process failed with error: RegisterPlugin error -- plugin registration failed, "+
				"restarting registration container.")
			i.Exit(1)
			return
		}
		unregister := c.Cluster.CSI.Register(c.Node, name, socket, down)
		select {
		case <-ctx.Done():
			unregister()
			return
		case <-changed:
			if driverMissing(c) {
				unregister()
			}
		}
	}
}

// startAttacher runs the sidecar that attaches volumes. The driver has nothing to do for that, so the sidecar says at once that a volume is
// attached, as the real one does for such a driver. Its election of a leader is not modelled.
func (r *Rook) startAttacher(ctx context.Context, c workload.Container) (*workload.Instance, error) {
	return sidecar(ctx, c, func(ctx context.Context, _ *workload.Instance, name string) {
		workload.Repeat(ctx, c, workload.CheckInterval, func() error { return attachAll(ctx, c, name) })
	})
}

// attachAll marks a driver's volumes as attached.
func attachAll(ctx context.Context, c workload.Container, name string) error {
	api := c.Cluster.Client.StorageV1().VolumeAttachments()
	list, err := api.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	var errs []error
	for _, attachment := range list.Items {
		if attachment.Spec.Attacher != name || attachment.Status.Attached || attachment.DeletionTimestamp != nil {
			continue
		}
		attachment.Status = storagev1.VolumeAttachmentStatus{Attached: true}
		if _, err := api.UpdateStatus(ctx, &attachment, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) &&
			!apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// provisioner runs the real csi-provisioner with the socket of its pod's driver.
func provisioner(path string, env []string) workload.Behaviour {
	p := workload.Program{Path: path, Hostname: true, Args: func(c workload.Container) []string {
		return []string{"--kubeconfig=" + c.Dir + "/kubeconfig", "--csi-address=" + csi.Socket(string(c.Pod.UID))}
	}}
	return func(ctx context.Context, c workload.Container) (*workload.Instance, error) {
		return p.Start(ctx, "csi-provisioner", env, c)
	}
}
