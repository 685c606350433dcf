package workload

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
)

// StartCSIPlugin runs the CSI driver in the pod of a node, or in that of the provisioner.
func (r *Rook) StartCSIPlugin(ctx context.Context, c Container) (*Instance, error) {
	i := NewInstance()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		untilEnd(ctx, i)
		cancel()
	}()
	i.after(c.Cluster.PodStart, func() {
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
func (r *Rook) csiDriver(c Container) *csi.Driver {
	return &csi.Driver{
		Name: flagOf(c, "drivername"), Version: "v3.16.2", Cluster: c.Cluster.Name, Node: c.Node,
		Controller: flagOf(c, "controllerserver") == "true",
		Ceph:       r.Ceph, Monitors: c.csiMonitors,
	}
}

// csiMonitors reads the monitors of a cluster id from the driver's configuration.
func (c Container) csiMonitors(ctx context.Context, clusterID string) ([]string, error) {
	config, err := c.Cluster.Client.CoreV1().ConfigMaps(c.Pod.Namespace).Get(ctx, csiConfig, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var entries []csiClusterConfig
	if err := json.Unmarshal([]byte(config.Data[csiConfigKey]), &entries); err != nil {
		return nil, fmt.Errorf("unmarshal failed (%w), raw buffer response: %s", err, config.Data[csiConfigKey])
	}
	at := slices.IndexFunc(entries, func(e csiClusterConfig) bool { return e.ClusterID == clusterID })
	if at < 0 {
		return nil, fmt.Errorf("missing configuration for cluster ID %q", clusterID)
	}
	if len(entries[at].Monitors) == 0 {
		return nil, fmt.Errorf("empty monitor list for cluster ID (%s) in config", clusterID)
	}
	return entries[at].Monitors, nil
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

// StartRegistrar runs the sidecar that registers the driver of its pod with the kubelet of its node, once the driver answers.
func (r *Rook) StartRegistrar(ctx context.Context, c Container) (*Instance, error) {
	i, socket := NewInstance(), csi.Socket(string(c.Pod.UID))
	i.SetReady(true)
	i.after(c.Cluster.PodStart, func() {
		retryUntilOK(ctx, i, c, func() error { _, err := driverName(ctx, socket); return err }, func() { r.register(ctx, c, i, socket) })
	})
	return i, nil
}

func (r *Rook) register(ctx context.Context, c Container, i *Instance, socket string) {
	name, err := driverName(ctx, socket)
	if err != nil {
		fmt.Fprintln(c.Log, "Error retreiving CSI driver name: ", err)
		i.Exit(1)
		return
	}
	down := (&csi.Driver{Cluster: c.Cluster.Name, Node: c.Node, Ceph: r.Ceph}).NodeDown
	for {
		changed := c.Cluster.Faults.Changed()
		if c.driverMissing() {
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
		case <-i.Done():
			unregister()
			return
		case <-changed:
			if c.driverMissing() {
				unregister()
			}
		}
	}
}

// StartAttacher runs the sidecar that attaches volumes. The driver has nothing to do for that, so the sidecar says at once that a volume is
// attached, as the real one does for such a driver. Its election of a leader is not modelled.
func (r *Rook) StartAttacher(ctx context.Context, c Container) (*Instance, error) {
	i, socket := NewInstance(), csi.Socket(string(c.Pod.UID))
	i.SetReady(true)
	i.after(c.Cluster.PodStart, func() {
		retryUntilOK(ctx, i, c, func() error { _, err := driverName(ctx, socket); return err }, func() {
			tick := time.NewTicker(checkInterval)
			defer tick.Stop()
			for {
				if err := attachAll(ctx, c, socket); err != nil && ctx.Err() == nil {
					fmt.Fprintln(c.Log, err)
				}
				select {
				case <-ctx.Done():
					return
				case <-i.Done():
					return
				case <-tick.C:
				}
			}
		})
	})
	return i, nil
}

// attachAll marks the driver's volumes as attached.
func attachAll(ctx context.Context, c Container, socket string) error {
	name, err := driverName(ctx, socket)
	if err != nil {
		return err
	}
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

// CSIProvisioner runs the real csi-provisioner with the socket of its pod's driver.
func CSIProvisioner(path string, env []string) Behaviour {
	p := Program{Path: path, Hostname: true, Args: func(c Container) []string {
		return []string{"--kubeconfig=" + c.Dir + "/kubeconfig", "--csi-address=" + csi.Socket(string(c.Pod.UID))}
	}}
	return func(ctx context.Context, c Container) (*Instance, error) {
		return p.start(ctx, "csi-provisioner", env, c)
	}
}
