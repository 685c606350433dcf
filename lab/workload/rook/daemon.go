package rook

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/lab/ceph"
	"github.com/slipway-platform/slipway/lab/workload"
)

// flagOf returns the value of a flag of a container's arguments: --name=value.
func flagOf(c workload.Container, name string) string {
	for _, arg := range c.Spec.Args {
		if value, is := strings.CutPrefix(arg, "--"+name+"="); is {
			return value
		}
	}
	return ""
}

// startMonitor runs a monitor of Ceph at its machine's address.
func (r *Rook) startMonitor(ctx context.Context, c workload.Container) (*workload.Instance, error) {
	name, address := flagOf(c, "id"), net.JoinHostPort(flagOf(c, "public-addr"), strconv.Itoa(ceph.MonitorPort))
	return r.daemon(ctx, c, func(ctx context.Context, cluster *ceph.Cluster, _ *workload.Instance) {
		stop := func() {}
		defer func() { stop() }()
		serving := false
		for {
			changed := c.Cluster.Faults.Changed()
			if gone := cephGone(c); gone == serving {
				stop()
				stop, serving = func() {}, !gone
				if serving {
					stop = cluster.StartMonitor(name, address)
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	})
}

// startManager runs a manager of Ceph.
func (r *Rook) startManager(ctx context.Context, c workload.Container) (*workload.Instance, error) {
	return r.daemon(ctx, c, func(ctx context.Context, cluster *ceph.Cluster, _ *workload.Instance) {
		defer cluster.StartManager(flagOf(c, "id"))()
		<-ctx.Done()
	})
}

// startOSD runs an OSD, which needs its disk.
func (r *Rook) startOSD(ctx context.Context, c workload.Container) (*workload.Instance, error) {
	device := ""
	for _, e := range c.Spec.Env {
		if e.Name == "ROOK_BLOCK_PATH" {
			device = e.Value
		}
	}
	return r.daemon(ctx, c, func(ctx context.Context, cluster *ceph.Cluster, i *workload.Instance) {
		id, err := strconv.Atoi(flagOf(c, "id"))
		stop := func() {}
		if err == nil {
			stop, err = cluster.StartOSD(id, disk(c, device))
		}
		if err != nil {
			fmt.Fprintln(c.Log, err)
			i.Exit(1)
			return
		}
		defer stop()
		<-ctx.Done()
	})
}

// daemon runs a daemon of the Ceph cluster that its arguments name.
func (r *Rook) daemon(ctx context.Context, c workload.Container, run func(context.Context, *ceph.Cluster, *workload.Instance)) (*workload.Instance, error) {
	i, ctx := workload.NewInstance(ctx)
	i.After(c.Cluster.PodStart, func() {
		cluster := r.Ceph.Find(flagOf(c, "fsid"))
		if cluster == nil {
			fmt.Fprintf(c.Log, "no cluster with fsid %s\n", flagOf(c, "fsid"))
			i.Exit(1)
			return
		}
		i.SetReady(true)
		run(ctx, cluster, i)
	})
	return i, nil
}

// disk is the disk with that link of the container's machine; nil if it has none.
func disk(c workload.Container, link string) any {
	if c.Disk == nil {
		return nil
	}
	return c.Disk(link)
}

// startProvision runs the job that looks for the declared disks of a node, and reports the new OSDs on them.
func (r *Rook) startProvision(ctx context.Context, c workload.Container) (*workload.Instance, error) {
	i, ctx := workload.NewInstance(ctx)
	i.After(c.Cluster.PodStart/5, func() {
		if err := r.provision(ctx, c); err != nil {
			fmt.Fprintln(c.Log, err)
			i.Exit(1)
			return
		}
		i.Exit(0)
	})
	return i, nil
}

func (r *Rook) provision(ctx context.Context, c workload.Container) error {
	env, err := workload.Environment(ctx, c)
	if err != nil {
		return err
	}
	node, cluster := env["ROOK_NODE_NAME"], r.Ceph.Find(env["ROOK_FSID"])
	if cluster == nil {
		return fmt.Errorf("no cluster with fsid %s", env["ROOK_FSID"])
	}
	var devices []string
	if err := json.Unmarshal([]byte(env["ROOK_DATA_DEVICES"]), &devices); err != nil {
		return err
	}
	status := osdStatus{OSDs: []preparedOSD{}, Status: "completed"}
	for _, device := range devices {
		has := disk(c, device)
		if has == nil {
			fmt.Fprintf(c.Log, "cephosd: device %q is not on this node\n", device)
			continue
		}
		fmt.Fprintf(c.Log, "cephosd: %q found in the desired devices\n", device)
		status.OSDs = append(status.OSDs, preparedOSD{cluster.CreateOSD(c.Node, has), device})
	}
	if len(status.OSDs) == 0 {
		fmt.Fprintf(c.Log, "cephosd: skipping OSD configuration as no devices matched the storage settings for this node %q\n", node)
	}
	text, err := json.Marshal(status)
	if err != nil {
		return err
	}
	o := newApplier(c, "rook")
	return o.apply(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Pod.Namespace, Name: fmt.Sprintf("rook-ceph-osd-%s-status", node),
			Labels: map[string]string{"app": "rook-ceph-osd", "status": "provisioning", "node": node}},
		Data: map[string]string{"status": string(text)},
	})
}
