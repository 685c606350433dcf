package workload

import (
	"maps"
	"sync"

	"github.com/slipway-platform/slipway/lab/wait"
)

// CSI has the CSI drivers that run on the nodes of a cluster, as their registrars tell the kubelets. The zero value has none.
type CSI struct {
	mu           sync.Mutex
	drivers      map[string]map[string]string // sockets by node and driver
	down         map[string]map[string]func() // by node and driver, kept when a driver ends
	wait.Changes                              // of the registered drivers
}

// Register registers a driver, which listens on a socket, with the kubelet of a node. nodeDown is called when the node is switched off,
// also if the driver has ended by then. The returned function ends the registration.
func (c *CSI) Register(node, driver, socket string, nodeDown func()) (unregister func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drivers == nil {
		c.drivers, c.down = map[string]map[string]string{}, map[string]map[string]func(){}
	}
	if c.drivers[node] == nil {
		c.drivers[node] = map[string]string{}
	}
	if c.down[node] == nil { // also after NodeDown
		c.down[node] = map[string]func(){}
	}
	c.drivers[node][driver] = socket
	c.down[node][driver] = nodeDown
	c.Notify()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.drivers[node][driver] == socket {
			delete(c.drivers[node], driver)
			c.Notify()
		}
	}
}

// Drivers returns the sockets of a node's drivers, by driver.
func (c *CSI) Drivers(node string) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.drivers[node])
}

// NodeDown tells the drivers of a node that it is switched off.
func (c *CSI) NodeDown(node string) {
	c.mu.Lock()
	var calls []func()
	for _, call := range c.down[node] {
		calls = append(calls, call)
	}
	delete(c.down, node)
	c.mu.Unlock()
	for _, call := range calls {
		call()
	}
}
