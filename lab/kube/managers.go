package kube

import (
	"context"

	machinery "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"

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
			p, err := c.startManager(component, cluster)
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

func (c *ControlPlane) startManager(component string, cluster config.ClusterConfig) (*process.Supervisor, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, err := c.pkiOf(cluster)
	if err != nil {
		return nil, err
	}
	f := schedulerFlags(p.dir, c.o.Loopback)
	if component == controllerManager {
		f = controllerManagerFlags(cluster, p.dir, c.o.Loopback)
	}
	image, extra := managerOf(cluster, component)
	return c.start(component, c.logOf(component), f, extra, ProgramVersion(image))
}
