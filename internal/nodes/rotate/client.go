package rotate

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/live"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// clients are what connections for all CAs have in common. Each call makes a new connection: an open one stays when its client
// certificate is not accepted any more.
type clients struct {
	*Spec
	place
	certificates []string
	key          string                 // of the declared authority
	ways         []*clientconfig.Config // credentials for the Talos APIs, oldest first
	options      []grpc.DialOption      // for connections to Talos APIs

	mu       sync.Mutex
	accepted map[netip.Addr]int // index of the credentials that a node has accepted last, by the node's address
	members  *live.Cluster      // for the Kubernetes API; nil before
}

// place is where a machine configuration says which authority issues, and which ones are accepted.
type place interface {
	trust(in *v1alpha1.Config) Trust
	// set sets what a configuration trusts. key is that of the declared authority, for one that is to issue now.
	set(in *v1alpha1.Config, trust Trust, key string) error
}

// listed is a place with a list of its own for the other authorities that are accepted. Only control planes have the key.
type listed func(*v1alpha1.Config) (issuing **x509.PEMEncodedCertificateAndKey, accepted *[]*x509.PEMEncodedCertificate)

func (at listed) trust(in *v1alpha1.Config) (trust Trust) {
	ca, accepted := at(in)
	if *ca != nil {
		trust.Issuing = string((*ca).Crt)
	}
	for _, one := range *accepted {
		trust.Accepted = append(trust.Accepted, string(one.Crt))
	}
	return trust
}

func (at listed) set(in *v1alpha1.Config, trust Trust, key string) error {
	ca, accepted := at(in)
	if *ca == nil || string((*ca).Crt) != trust.Issuing {
		*ca = &x509.PEMEncodedCertificateAndKey{Crt: []byte(trust.Issuing)}
		if in.Machine().Type().IsControlPlane() {
			(*ca).Key = []byte(key)
		}
	}
	*accepted = nil
	for _, one := range trust.Accepted {
		*accepted = append(*accepted, &x509.PEMEncodedCertificate{Crt: []byte(one)})
	}
	return nil
}

func ofMachine(in *v1alpha1.Config) (**x509.PEMEncodedCertificateAndKey, *[]*x509.PEMEncodedCertificate) {
	return &in.MachineConfig.MachineCA, &in.MachineConfig.MachineAcceptedCAs
}

func ofCluster(in *v1alpha1.Config) (**x509.PEMEncodedCertificateAndKey, *[]*x509.PEMEncodedCertificate) {
	return &in.ClusterConfig.ClusterCA, &in.ClusterConfig.ClusterAcceptedCAs
}

// dial returns the machines of a valid spec. It sends no request.
func dial(ctx context.Context, spec *Spec) (interface {
	machines
	close()
}, error) {
	switch spec.Of {
	case Kubernetes:
		return newKubernetesClients(spec)
	case Etcd:
		return newEtcdClients(ctx, spec)
	}
	return newTalosClients(spec), nil
}

func newClients(spec *Spec, at place) *clients {
	return &clients{
		Spec: spec, place: at, certificates: spec.Certificates(), key: spec.IssuingKey(), accepted: map[netip.Addr]int{},
	}
}

func (c *clients) close() {
	if c.members != nil {
		c.members.Close()
	}
}

// with calls a node with some credentials.
func (c *clients) with(
	ctx context.Context, node turn.Node, credentials *clientconfig.Config, call func(context.Context, *client.Client) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, talosapi.CallTimeout)
	defer cancel()
	talos, err := talosapi.Dial(ctx, credentials, []netip.Addr{node.Address}, c.options...)
	if err != nil {
		return err
	}
	defer talos.Close()
	return call(ctx, talos[node.Address])
}

// call calls a node with the newest credentials that it accepts.
func (c *clients) call(ctx context.Context, node turn.Node, call func(context.Context, *client.Client) error) error {
	var problems []string
	for i, way := range slices.Backward(c.ways) {
		err := c.with(ctx, node, way, call)
		if err == nil {
			c.mu.Lock()
			c.accepted[node.Address] = i
			c.mu.Unlock()
			return nil
		}
		if !refusesClient(err) {
			return talosapi.Message(err)
		}
		if text := talosapi.Message(err).Error(); !slices.Contains(problems, text) {
			problems = append(problems, text)
		}
	}
	return errors.New(strings.Join(problems, ", "))
}

// refusesClient reports whether a call may have failed because the node does not accept the client's certificate: it then closes the
// connection during the handshake.
func refusesClient(err error) bool { return status.Code(err) == codes.Unavailable }

// Look implements machines.
func (c *clients) Look(ctx context.Context, node turn.Node) (Trust, cluster.Role, error) {
	var trust Trust
	role := cluster.Worker
	err := c.call(ctx, node, func(ctx context.Context, talos *client.Client) error {
		current, err := safe.StateGetByID[*config.MachineConfig](ctx, talos.COSI, config.ActiveID)
		if err != nil {
			return err
		}
		trust = c.trust(current.Provider().RawV1Alpha1())
		if current.Config().Machine().Type().IsControlPlane() {
			role = cluster.ControlPlane
		}
		return nil
	})
	return trust, role, err
}

// Apply implements machines.
func (c *clients) Apply(ctx context.Context, node turn.Node, trust Trust) error {
	return c.change(ctx, node, trust, machine.ApplyConfigurationRequest_NO_REBOOT)
}

func (c *clients) change(ctx context.Context, node turn.Node, trust Trust, mode machine.ApplyConfigurationRequest_Mode) error {
	return c.call(ctx, node, func(ctx context.Context, talos *client.Client) error {
		return live.ChangeConfiguration(ctx, talos, mode, func(in *v1alpha1.Config) error { return c.set(in, trust) })
	})
}

// StepAside implements machines.
func (c *clients) StepAside(ctx context.Context, node turn.Node) (netip.Addr, error) {
	return ofNode(ctx, c, node, live.StepAside)
}

// Holds implements machines.
func (c *clients) Holds(ctx context.Context, node turn.Node, address netip.Addr) (bool, error) {
	return ofNode(ctx, c, node, func(ctx context.Context, talos *client.Client) (bool, error) { return live.Holds(ctx, talos, address) })
}

// ofNode asks a node as call does, and returns its answer.
func ofNode[T any](
	ctx context.Context, c *clients, node turn.Node, ask func(context.Context, *client.Client) (T, error),
) (answer T, err error) {
	err = c.call(ctx, node, func(ctx context.Context, talos *client.Client) error {
		answer, err = ask(ctx, talos)
		return err
	})
	return answer, err
}

// trust returns what a configuration says about the authority.
func (c *clients) trust(in *v1alpha1.Config) Trust {
	if in == nil || in.MachineConfig == nil || in.ClusterConfig == nil {
		return Trust{}
	}
	return c.place.trust(in)
}

// set sets what a configuration trusts.
func (c *clients) set(in *v1alpha1.Config, trust Trust) error {
	if in.MachineConfig == nil || in.ClusterConfig == nil {
		return errors.New("no machine or cluster configuration")
	}
	return c.place.set(in, trust, c.key)
}

// Joined implements machines.
func (c *clients) Joined(ctx context.Context) (map[string]turn.KubeNode, error) {
	return ofMembers(ctx, c, func(members *live.Cluster) (map[string]turn.KubeNode, error) { return members.Nodes(ctx) })
}

// Unmet implements machines.
func (c *clients) Unmet(ctx context.Context, checks []cluster.Check) (string, error) {
	return ofMembers(ctx, c, func(members *live.Cluster) (string, error) { return members.Unmet(ctx, checks) })
}

// EtcdSnapshot implements machines.
func (c *clients) EtcdSnapshot(ctx context.Context, node turn.Node) (io.ReadCloser, error) {
	return ofMembers(ctx, c, func(members *live.Cluster) (io.ReadCloser, error) { return members.EtcdSnapshot(ctx, node) })
}

// ofMembers asks the cluster as ask does, and returns its answer.
func ofMembers[T any](ctx context.Context, c *clients, ask func(*live.Cluster) (T, error)) (answer T, err error) {
	err = c.ask(ctx, func(members *live.Cluster) error {
		answer, err = ask(members)
		return err
	})
	return answer, err
}

// ask asks the Kubernetes API. A control plane hands out the kubeconfig, with the credentials that one of them has accepted. After an
// error, the next call takes a new one: perhaps other certificates are accepted by now.
func (c *clients) ask(ctx context.Context, call func(*live.Cluster) error) error {
	if c.members == nil {
		accepted := len(c.ways) - 1
		c.mu.Lock()
		for _, node := range turn.ControlPlanes(c.Nodes) {
			if index, known := c.accepted[node.Address]; known {
				accepted = min(accepted, index)
			}
		}
		c.mu.Unlock()
		members, err := live.Dial(ctx, c.ways[accepted], c.Nodes, c.options...)
		if err != nil {
			return err
		}
		c.members = members
	}
	err := call(c.members)
	if err != nil {
		c.close()
		c.members = nil
	}
	return err
}
