package kubelet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/workload"
)

// Service is the kubelet of a machine, under whichever name it registers. It starts the kubelet again where a fault gives
// the node another name or takes that away, and where a node has registered with a pod range that is wrong.
type Service struct {
	c      *Cluster
	o      NodeOptions
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	k     *Kubelet
	wrong netip.Prefix // the pod range that the node has registered with under the fault pod-cidr; zero: none
}

// Run starts a machine's kubelet, as Start does, and follows the faults that change what it registers.
func (c *Cluster) Run(ctx context.Context, o NodeOptions) (*Service, error) {
	s := &Service{c: c, o: o, done: make(chan struct{})}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	ctx, s.cancel = context.WithCancel(c.life)
	go func() {
		defer close(s.done)
		s.follow(ctx)
	}()
	return s, nil
}

// Stop ends the kubelet as a crash would; see Kubelet.Stop.
func (s *Service) Stop() { s.end((*Kubelet).Stop) }

// Kill ends the kubelet and every container; see Kubelet.Kill.
func (s *Service) Kill() { s.end((*Kubelet).Kill) }

func (s *Service) end(how func(*Kubelet)) {
	s.cancel()
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.k != nil {
		how(s.k)
		s.k = nil
	}
}

// start starts the kubelet under the name that it would have now.
func (s *Service) start(ctx context.Context) error {
	o := s.o
	o.declared, o.Name = s.o.Name, nodeName(s.o.Name, s.c.o.Faults)
	if o.Name != s.o.Name {
		s.o.say("Starting kubelet", "nodeName", o.Name)
	}
	k, err := s.c.Start(ctx, o)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.k = k
	if wrong, on := workload.WrongPodCIDR(s.o.Name, s.o.Addresses[0].String(), s.c.o.Faults); on && err == nil {
		s.wrong = wrong
	}
	return err
}

func (s *Service) follow(ctx context.Context) {
	for {
		changed := s.c.faultsChanged()
		if err := s.adjust(ctx); err != nil && ctx.Err() == nil {
			s.c.log.Warn("kubelet not started again", "node", s.o.Name, "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// adjust starts the kubelet again where its name or its node's range is not what it should be now. Pods that the node
// had under the other name end with it, and those with addresses out of the wrong range get others.
func (s *Service) adjust(ctx context.Context) error {
	s.mu.Lock()
	k, wrong := s.k, s.wrong
	s.mu.Unlock()
	_, biting := workload.WrongPodCIDR(s.o.Name, s.o.Addresses[0].String(), s.c.o.Faults)
	again := k == nil || k.o.Name != nodeName(s.o.Name, s.c.o.Faults)
	if wrong.IsValid() && !biting {
		forgotten, err := s.forget(ctx, wrong)
		if err != nil {
			return err
		}
		again = again || forgotten
	}
	if !again {
		return nil
	}
	if k != nil {
		k.Kill()
	}
	return s.start(ctx)
}

// forget deletes the Node if it has the wrong range, which no update can change; the node then registers anew, as after
// `kubectl delete node` and a restart of its kubelet.
func (s *Service) forget(ctx context.Context, wrong netip.Prefix) (deleted bool, err error) {
	nodes := s.c.client.CoreV1().Nodes()
	n, err := nodes.Get(ctx, s.o.Name, metav1.GetOptions{})
	if err == nil && slices.Contains(n.Spec.PodCIDRs, wrong.String()) {
		err = nodes.Delete(ctx, n.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &n.UID}})
		deleted = err == nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("node %s: %w", s.o.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = netip.Prefix{}
	return deleted, nil
}

// nodeName is the name under which a machine registers: its own, unless the fault node-name gives it another. Without
// a detail that is one as Talos makes for a machine without a name.
func nodeName(declared string, faults *fault.Set) string {
	f, on := faults.Active(fault.NodeName, declared)
	switch {
	case !on:
		return declared
	case len(validation.IsDNS1123Subdomain(f.Detail)) == 0:
		return f.Detail
	}
	sum := sha256.Sum256([]byte(declared))
	return "talos-" + hex.EncodeToString(sum[:3])
}
