package kubelet

import (
	"context"
	"time"

	coordv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Duration and renewal of the lease are a kubelet's defaults. The node lifecycle controller depends on them.
const (
	leaseSeconds = int32(40)
	leaseRenewal = 10 * time.Second
)

// keepLease renews the node's lease until ctx ends.
func (k *Kubelet) keepLease(ctx context.Context) {
	tick := time.NewTicker(leaseRenewal)
	defer tick.Stop()
	var lease *coordv1.Lease
	for {
		var err error
		if lease, err = k.renew(ctx, lease); err != nil && ctx.Err() == nil {
			k.log.Debug("lease not renewed", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// renew writes the lease and returns it. The next call updates it without reading it first.
func (k *Kubelet) renew(ctx context.Context, last *coordv1.Lease) (*coordv1.Lease, error) {
	leases := k.own.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	if last == nil {
		have, err := leases.Get(ctx, k.o.Name, metav1.GetOptions{})
		switch {
		case err == nil:
			last = have
		case apierrors.IsNotFound(err):
			l := &coordv1.Lease{}
			l.Name = k.o.Name
			l.OwnerReferences = []metav1.OwnerReference{k.node}
			k.hold(l)
			return leases.Create(ctx, l, metav1.CreateOptions{})
		default:
			return nil, err
		}
	}
	l := last.DeepCopy()
	k.hold(l)
	updated, err := leases.Update(ctx, l, metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return updated, nil
}

func (k *Kubelet) hold(l *coordv1.Lease) {
	seconds, now := leaseSeconds, metav1.NowMicro()
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = &k.o.Name, &seconds, &now
}
