package workload

import (
	"net/netip"
	"sync"

	"github.com/slipway-platform/slipway/lab/wait"
)

// ServiceAddresses are the addresses of a cluster's Services for containers that know them by name, in place of those that the API server
// has assigned: those may be the same in several clusters. Cilium's load balancers serve them. It is safe for concurrent use.
type ServiceAddresses struct {
	Range        netip.Prefix // of this cluster only; IPv4
	wait.Changes              // of the assigned addresses

	mu       sync.Mutex
	assigned map[string]netip.Addr // by NAMESPACE/NAME; a Service keeps its address
}

// Assign returns the address of a Service, and gives it one if it has none. The result is not valid if all are taken, or if a is nil.
func (a *ServiceAddresses) Assign(namespace, name string) netip.Addr {
	if a == nil {
		return netip.Addr{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := namespace + "/" + name
	if ip := a.assigned[key]; ip.IsValid() {
		return ip
	}
	ip := a.Range.Masked().Addr().Next()
	for range a.assigned {
		ip = ip.Next()
	}
	if !a.Range.Contains(ip.Next()) { // the last one is the broadcast address
		return netip.Addr{}
	}
	if a.assigned == nil {
		a.assigned = map[string]netip.Addr{}
	}
	a.assigned[key] = ip
	a.Notify()
	return ip
}

// Assigned returns the address that a Service has.
func (a *ServiceAddresses) Assigned(namespace, name string) (netip.Addr, bool) {
	if a == nil {
		return netip.Addr{}, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	ip, is := a.assigned[namespace+"/"+name]
	return ip, is
}
