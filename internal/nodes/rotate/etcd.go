package rotate

import (
	"cmp"
	"context"
	stdx509 "crypto/x509"
	"encoding/pem"
	"errors"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	etcdres "github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/secrets"

	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/live"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// ofEtcd is where a machine configuration has the CA of etcd. It has one text for all certificates: the first one issues.
type ofEtcd struct{}

func (ofEtcd) trust(in *v1alpha1.Config) Trust {
	if in.ClusterConfig.EtcdConfig == nil || in.ClusterConfig.EtcdConfig.RootCA == nil {
		return Trust{}
	}
	all := Split(string(in.ClusterConfig.EtcdConfig.RootCA.Crt))
	if len(all) == 0 {
		return Trust{}
	}
	return Trust{Issuing: all[0], Accepted: all[1:]}
}

func (o ofEtcd) set(in *v1alpha1.Config, trust Trust, key string) error {
	etcd := in.ClusterConfig.EtcdConfig
	if etcd == nil || etcd.RootCA == nil {
		return errors.New("no CA of etcd")
	}
	if !same(o.trust(in).Issuing, trust.Issuing) {
		etcd.RootCA.Key = []byte(key)
	}
	etcd.RootCA.Crt = []byte(Bundle(trust.All()))
	return nil
}

// etcdClients implements machines and etcd.
type etcdClients struct {
	*clients
	cluster *live.Cluster
}

func newEtcdClients(ctx context.Context, spec *Spec) (etcdClients, error) {
	config, err := talosapi.ParseConfig(spec.Talosconfig)
	if err != nil {
		return etcdClients{}, err
	}
	c := etcdClients{clients: newClients(spec, ofEtcd{})}
	c.ways = []*clientconfig.Config{config}
	c.cluster, err = live.Dial(ctx, config, spec.Nodes)
	return c, err
}

func (c etcdClients) close() {
	c.clients.close()
	c.cluster.Close()
}

// Turns implements etcd.
func (c etcdClients) Turns() turn.Cluster { return c.cluster }

// Reboot implements etcd.
func (c etcdClients) Reboot(ctx context.Context, node turn.Node) error {
	return c.cluster.Reboot(ctx, node)
}

// Stage implements etcd.
func (c etcdClients) Stage(ctx context.Context, node turn.Node, trust Trust) error {
	return c.change(ctx, node, trust, machine.ApplyConfigurationRequest_STAGED)
}

// Serves implements etcd. Talos writes new certificates into files, and asks its etcd with new connections.
func (c etcdClients) Serves(ctx context.Context, node turn.Node, trust Trust) string {
	missing, err := ofNode(ctx, c.clients, node, func(ctx context.Context, talos *client.Client) (string, error) {
		made, err := safe.StateGetByID[*secrets.Etcd](ctx, talos.COSI, secrets.EtcdID)
		if err != nil && !state.IsNotFoundError(err) {
			return "", err
		}
		written, unwritten := safe.StateGetByID[*etcdres.PKIStatus](ctx, talos.COSI, etcdres.PKIID)
		if unwritten != nil && !state.IsNotFoundError(unwritten) {
			return "", unwritten
		}
		if err != nil || unwritten != nil || !issued(made.TypedSpec(), trust.Issuing) ||
			written.TypedSpec().Version != made.Metadata().Version().String() {
			return "its etcd has no certificate of the CA that issues yet", nil
		}
		service, err := talosapi.Clients{node.Address: talos}.Service(ctx, node.Address, "etcd")
		if err != nil {
			return "", err
		}
		if service.State != talosapi.Running || service.Known && !service.Healthy {
			return "its etcd is " + cmp.Or(service.State, "not there") + ": " + service.Message, nil
		}
		if _, err = talos.EtcdMemberList(ctx, &machine.EtcdMemberListRequest{QueryLocal: true}); err != nil {
			return "its etcd does not answer: " + talosapi.Message(err).Error(), nil
		}
		return "", nil
	})
	if err != nil {
		return "its Talos API does not answer: " + err.Error()
	}
	return missing
}

// issued reports whether an authority has issued all certificates of a node's etcd, and of its clients on the node.
func issued(made *secrets.EtcdCertsSpec, authority string) bool {
	block, _ := pem.Decode([]byte(authority))
	if block == nil {
		return false
	}
	ca, err := stdx509.ParseCertificate(block.Bytes)
	if err != nil {
		return false
	}
	for _, pair := range []*x509.PEMEncodedCertificateAndKey{made.Etcd, made.EtcdPeer, made.EtcdAdmin, made.EtcdAPIServer} {
		if pair == nil {
			return false
		}
		if one, err := pair.GetCert(); err != nil || one.CheckSignatureFrom(ca) != nil {
			return false
		}
	}
	return true
}
