package perform

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/rotate"
	"github.com/slipway-platform/slipway/internal/talosapi"
	"github.com/slipway-platform/slipway/internal/turn"
	"github.com/slipway-platform/slipway/internal/turn/live"
)

// clients implements machines. Each call makes a new connection: an open one stays when its client certificate is not accepted any more.
type clients struct {
	*rotate.Spec
	certificates []string
	key          string // of the declared authority

	mu       sync.Mutex
	accepted map[string]int // index of the authority whose client certificate a node has accepted last, by the node's address
	members  *live.Cluster  // for Joined; nil before
}

func newClients(spec *rotate.Spec) *clients {
	return &clients{Spec: spec, certificates: spec.Certificates(), key: spec.IssuingKey(), accepted: map[string]int{}}
}

func (c *clients) close() {
	if c.members != nil {
		c.members.Close()
	}
}

// credentials are those of the client of one authority that accepts servers of some authorities.
func (c *clients) credentials(client int, servers ...int) live.Credentials {
	var bundle strings.Builder
	for _, server := range servers {
		bundle.WriteString(strings.TrimSpace(c.certificates[server]) + "\n")
	}
	own := c.Authorities[client]
	return live.Credentials{
		CA: base64.StdEncoding.EncodeToString([]byte(bundle.String())), Certificate: own.ClientCertificate, Key: own.ClientKey,
	}
}

// all returns the indices of all authorities.
func (c *clients) all() []int {
	indices := make([]int, len(c.Authorities))
	for i := range indices {
		indices[i] = i
	}
	return indices
}

// with calls a node with the client certificate of one authority.
func (c *clients) with(
	ctx context.Context, node turn.Node, client int, servers []int, call func(context.Context, *client.Client) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, talosapi.CallTimeout)
	defer cancel()
	talos, err := talosapi.Dial(ctx, c.credentials(client, servers...).Config(), node.Address)
	if err != nil {
		return err
	}
	defer talos.Close()
	return call(ctx, talos[node.Address])
}

// call calls a node with the newest client certificate that it accepts.
func (c *clients) call(ctx context.Context, node turn.Node, call func(context.Context, *client.Client) error) error {
	var problems []string
	for i := len(c.Authorities) - 1; i >= 0; i-- {
		err := c.with(ctx, node, i, c.all(), call)
		if err == nil {
			c.mu.Lock()
			c.accepted[node.Address] = i
			c.mu.Unlock()
			return nil
		}
		if !refusesClient(err) {
			return message(err)
		}
		if text := message(err).Error(); !slices.Contains(problems, text) {
			problems = append(problems, text)
		}
	}
	return errors.New(strings.Join(problems, ", "))
}

// refusesClient reports whether a call may have failed because the node does not accept the client's certificate: it then closes the
// connection during the handshake.
func refusesClient(err error) bool { return status.Code(err) == codes.Unavailable }

// Look implements machines.
func (c *clients) Look(ctx context.Context, node turn.Node) (rotate.Trust, cluster.Role, error) {
	var trust rotate.Trust
	role := cluster.Worker
	err := c.call(ctx, node, func(ctx context.Context, talos *client.Client) error {
		current, err := safe.StateGetByID[*config.MachineConfig](ctx, talos.COSI, config.ActiveID)
		if err != nil {
			return err
		}
		security := current.Config().Machine().Security()
		if ca := security.IssuingCA(); ca != nil {
			trust.Issuing = string(ca.Crt)
		}
		trust.Accepted = nil
		for _, ca := range security.AcceptedCAs() {
			trust.Accepted = append(trust.Accepted, string(ca.Crt))
		}
		if current.Config().Machine().Type().IsControlPlane() {
			role = cluster.ControlPlane
		}
		return nil
	})
	return trust, role, err
}

// Apply implements machines.
func (c *clients) Apply(ctx context.Context, node turn.Node, trust rotate.Trust) error {
	return c.call(ctx, node, func(ctx context.Context, talos *client.Client) error {
		current, err := safe.StateGetByID[*config.MachineConfig](ctx, talos.COSI, config.ActiveID)
		if err != nil {
			return err
		}
		changed, err := current.Provider().PatchV1Alpha1(func(in *v1alpha1.Config) error { return c.set(in, trust) })
		if err != nil {
			return refusedError{errors.New("its machine configuration cannot be changed")} // the cause may quote the configuration
		}
		text, err := changed.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
		if err != nil {
			return refusedError{errors.New("its machine configuration cannot be written")}
		}
		_, err = talos.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{
			Data: text, Mode: machine.ApplyConfigurationRequest_NO_REBOOT,
		})
		if status.Code(err) == codes.InvalidArgument {
			return refusedError{message(err)}
		}
		return err
	})
}

// set sets what a configuration trusts. Only control planes have the key of the authority that issues.
func (c *clients) set(in *v1alpha1.Config, trust rotate.Trust) error {
	if in.MachineConfig == nil {
		return errors.New("no machine configuration")
	}
	if former := in.MachineConfig.MachineCA; former == nil || string(former.Crt) != trust.Issuing {
		issuing := &x509.PEMEncodedCertificateAndKey{Crt: []byte(trust.Issuing)}
		if in.Machine().Type().IsControlPlane() {
			issuing.Key = []byte(c.key)
		}
		in.MachineConfig.MachineCA = issuing
	}
	in.MachineConfig.MachineAcceptedCAs = nil
	for _, ca := range trust.Accepted {
		in.MachineConfig.MachineAcceptedCAs = append(in.MachineConfig.MachineAcceptedCAs, &x509.PEMEncodedCertificate{Crt: []byte(ca)})
	}
	return nil
}

// Ask implements machines.
func (c *clients) Ask(ctx context.Context, node turn.Node, with int, servers ...int) error {
	return message(c.with(ctx, node, with, servers, func(ctx context.Context, talos *client.Client) error {
		_, err := talos.Version(ctx)
		return err
	}))
}

// Joined implements machines. It asks the control planes with the client certificate that one of them has accepted.
func (c *clients) Joined(ctx context.Context) (map[string]turn.KubeNode, error) {
	if c.members == nil {
		accepted := len(c.Authorities) - 1
		c.mu.Lock()
		for _, node := range turn.ControlPlanes(c.Nodes) {
			if index, known := c.accepted[node.Address]; known {
				accepted = min(accepted, index)
			}
		}
		c.mu.Unlock()
		members, err := live.Dial(ctx, c.credentials(accepted, c.all()...).Config(), c.Nodes)
		if err != nil {
			return nil, err
		}
		c.members = members
	}
	nodes, err := c.members.Nodes(ctx)
	if err != nil { // perhaps another client certificate is accepted by now
		c.close()
		c.members = nil
	}
	return nodes, err
}

// message returns an error of gRPC without the text that gRPC adds.
func message(err error) error {
	switch code := status.Code(err); {
	case err == nil, errors.As(err, new(refusedError)):
		return err
	case errors.Is(err, context.DeadlineExceeded), code == codes.DeadlineExceeded:
		return errSilent
	case code != codes.Unknown:
		return errors.New(status.Convert(err).Message())
	}
	return err
}
