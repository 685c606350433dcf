package talos

import (
	"context"
	"errors"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"golang.org/x/mod/semver"

	"github.com/slipway-platform/slipway/lab/talos/image"
	"github.com/slipway-platform/slipway/lab/talos/kubernetes"
	"github.com/slipway-platform/slipway/lab/talos/service"
)

// kubeletService is the kubelet. Its process starts early, but it is healthy only once it has reached the API server.
func (b *boot) kubeletService() service.Spec {
	return service.Spec{
		ID: "kubelet", Depends: []string{"cri"}, CanStart: true, CanRestart: true,
		Prepare: func(ctx context.Context, report service.Report) error {
			if err := b.awaitTime(ctx, report); err != nil {
				return err
			}
			b.site.mu.Lock()
			image := b.config.Machine().Kubelet().Image()
			b.site.mu.Unlock()
			return b.pull(ctx, common.ContainerdNamespace_NS_SYSTEM, image)
		},
		Unhealthy: func() string {
			return "Get \"http://127.0.0.1:10248/healthz\": dial tcp 127.0.0.1:10248: connect: connection refused"
		},
		Broken: b.kubeletError,
		Healthy: func(ctx context.Context) error {
			k, err := b.startKubelet(ctx)
			if err != nil {
				return err
			}
			b.site.mu.Lock()
			defer b.site.mu.Unlock()
			b.kubelet, b.kubeletUp, b.inst.joined = k, true, true
			b.ranKubelet = semver.MajorMinor(image.Tag(b.config.Machine().Kubelet().Image()))
			b.site.change.Notify()
			return nil
		},
		Stopped: func() {
			b.site.mu.Lock()
			k := b.kubelet
			b.kubelet, b.kubeletUp = nil, false
			b.site.mu.Unlock()
			switch {
			case k == nil:
			case b.ctx.Err() != nil: // the machine stops
				k.Kill()
			default:
				k.Stop()
			}
		},
	}
}

// startKubelet waits until the cluster's API answers and starts the kubelet.
func (b *boot) startKubelet(ctx context.Context) (Kubelet, error) {
	var kc KubeletConfig
	var problem error
	space := b.devices.Space(b.config)
	err := b.site.waitUntil(ctx, func() bool {
		e := b.cluster.etcd
		if e == nil || e.controlPlane == nil || !e.ready {
			return false
		}
		ips, err := nodeIPs(b.config, addrsOf(b.addresses))
		if problem = err; err == nil && len(ips) == 0 {
			problem = errors.New("no suitable node IP found, please make sure .machine.kubelet.nodeIP filters and pod/service subnets are set up correctly")
		}
		labels, annotations, taints := kubernetes.NodeMetadata(b.config, b.extensions, b.schematic)
		kc = KubeletConfig{
			ClusterID: e.id, ClusterName: b.cluster.name, ControlPlane: e.controlPlane, Node: b.hostname, Addresses: ips,
			Cores: b.m.hw.Cores, MemoryMiB: b.m.hw.MemoryMiB, EphemeralBytes: space,
			MaxPods: kubernetes.MaxPods(b.config), ExtraArgs: kubernetes.KubeletArgs(b.config),
			IsControlPlane: b.config.Machine().Type().IsControlPlane(), Labels: labels, Annotations: annotations, Taints: taints,
			RegisterTaints: kubernetes.RegisterTaints(b.config), Disk: b.m.disks.Linked,
			Config: b.config, TalosVersion: b.version, KubernetesVersion: image.Tag(b.config.Machine().Kubelet().Image()),
			BootID: b.id, MachineID: b.inst.machineID, Images: b.inst.images, StaticPods: b.staticPods,
			Log: func(line string) { b.Write("kubelet", line) }, NodeStatus: b.publishNodeStatus,
			TalosLog: func(line string) {
				b.Write("controller-runtime", line)
				b.Printk("[talos] %s", line)
			},
		}
		return true
	})
	if err = errors.Join(err, problem); err != nil {
		return nil, err
	}
	b.publishNodeIPs(kc.Addresses)
	k, err := b.site.cfg.Kubernetes.StartKubelet(b.ctx, kc)
	if err == nil && ctx.Err() != nil {
		k.Kill() // the service was stopped meanwhile
		return nil, errors.Join(errOff, ctx.Err())
	}
	return k, err
}
