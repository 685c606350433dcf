package kube

import (
	"context"
	"maps"
	"net"
	"net/netip"

	machinery "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/lab/kube/process"
)

// The components of which only the leader works. One process of each runs.
const (
	controllerManager = "kube-controller-manager"
	schedulerName     = "kube-scheduler"
)

// Manage makes kube-controller-manager or kube-scheduler run as in this configuration, the leading control plane's; with nil, none runs.
// The process starts anew if its version or its flags change.
func (c *ControlPlane) Manage(component string, cfg machinery.Provider) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.managers, component)
	if cfg != nil {
		c.managers[component] = cfg.Cluster()
		if component == controllerManager {
			c.signer = cfg.Cluster()
		}
	}
	select {
	case c.managed <- struct{}{}:
	default:
	}
}

// keepManagers runs the components that lead as Manage says, until ctx ends.
func (c *ControlPlane) keepManagers(ctx context.Context) {
	running, specs := map[string]*process.Supervisor{}, map[string]string{}
	for {
		for _, component := range []string{controllerManager, schedulerName} {
			c.mu.Lock()
			cluster := c.managers[component]
			c.mu.Unlock()
			spec := ""
			if cluster != nil {
				image, extra := managerOf(cluster, component)
				spec = specOf(cluster, image, extra)
			}
			if spec == specs[component] {
				continue
			}
			if p := running[component]; p != nil {
				c.end(p)
				delete(running, component)
			}
			specs[component] = ""
			if cluster == nil {
				continue
			}
			c.mu.Lock()
			p, err := c.startManager(component, cluster, c.logOf(component), nil)
			c.mu.Unlock()
			if err != nil {
				if ctx.Err() == nil {
					c.log.Error("component does not start", "component", component, "err", err)
				}
				continue
			}
			running[component], specs[component] = p, spec
		}
		select {
		case <-ctx.Done():
			return
		case <-c.managed:
		}
	}
}

func managerOf(cluster config.ClusterConfig, component string) (image string, extra map[string]string) {
	if component == schedulerName {
		return cluster.Scheduler().Image(), oneEach(cluster.Scheduler().ExtraArgs())
	}
	return cluster.ControllerManager().Image(), oneEach(cluster.ControllerManager().ExtraArgs())
}

// startManager starts kube-controller-manager or kube-scheduler with more flags. The caller holds the lock.
func (c *ControlPlane) startManager(component string, cluster config.ClusterConfig, log string, more flags) (*process.Supervisor, error) {
	p, err := c.pkiOf(cluster)
	if err != nil {
		return nil, err
	}
	f := schedulerFlags(p.dir, c.o.Loopback)
	if component == controllerManager {
		f = controllerManagerFlags(cluster, p.dir, c.o.Loopback)
	}
	maps.Copy(f, more)
	image, extra := managerOf(cluster, component)
	return c.start(component, log, f, extra, ProgramVersion(image))
}

// candidate is kube-controller-manager or kube-scheduler in a version and with flags, as control planes run it that do not lead. Guarded by
// ControlPlane.mu.
type candidate struct {
	process *process.Supervisor
	log     string             // path of its log
	users   int                // control planes that wait for it
	ready   chan struct{}      // closed once it has answered
	end     context.CancelFunc // ends it; it ends by itself once it has answered
}

func candidateKey(component string, cluster config.ClusterConfig) string {
	image, extra := managerOf(cluster, component)
	return component + " " + specOf(cluster, image, extra)
}

// prepareManager returns once kube-controller-manager or kube-scheduler has answered in a version and with flags: now or before.
func (c *ControlPlane) prepareManager(ctx context.Context, component string, cluster config.ClusterConfig, ended func()) error {
	key := candidateKey(component, cluster)
	c.mu.Lock()
	one, err := c.candidate(key, component, cluster)
	if err == nil {
		one.users++
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	err = awaitStart(ctx, one.process, one.ready, ended)
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.users--; err != nil && one.users == 0 {
		delete(c.candidates, key)
		one.end()
	}
	return err
}

// candidate returns the candidate of a key, and starts it if there is none. The caller holds the lock.
func (c *ControlPlane) candidate(key, component string, cluster config.ClusterConfig) (*candidate, error) {
	if one := c.candidates[key]; one != nil {
		return one, nil
	}
	free, err := net.Listen("tcp", netip.AddrPortFrom(c.o.Loopback, 0).String())
	if err != nil {
		return nil, err
	}
	address := free.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	one := &candidate{log: c.logOf(component + "-" + port), ready: make(chan struct{})}
	_ = free.Close()
	one.process, err = c.startManager(component, cluster, one.log, flags{
		"secure-port": port, "leader-elect": "true", "leader-elect-resource-name": "none", // a lease that its role does not let it read
	})
	if err != nil {
		return nil, err
	}
	var life context.Context
	life, one.end = context.WithCancel(c.life)
	c.candidates[key] = one
	c.work.Go(func() {
		direct := &rest.Config{Host: "https://" + address, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
		if waitReady(life, direct, "/healthz") == nil {
			close(one.ready)
		}
		c.end(one.process)
		one.end()
	})
	return one, nil
}
