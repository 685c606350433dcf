package rotate

import (
	"context"
	"encoding/base64"
	"time"

	"github.com/siderolabs/gen/xslices"
	"github.com/siderolabs/talos/pkg/machinery/client"

	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/live"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// talosCA is a run that replaces the CA of the Talos APIs. No program starts again for it, so only the passes have to be made.
type talosCA struct {
	*job
	asker
}

func (talosCA) check(context.Context, []turn.Node) error            { return nil }
func (talosCA) beforePass(context.Context, Pass, []turn.Node) error { return nil }
func (talosCA) inOrder(_ Pass, nodes []turn.Node) []turn.Node       { return nodes }
func (talosCA) remedy() string                                      { return fixOrRemove }
func (talosCA) settles() time.Duration                              { return 0 }

// leftBehind implements ca. A node that answers gets the new CA, whatever its Node says.
func (j talosCA) leftBehind(one sight, joined map[string]turn.KubeNode) error {
	if object, member := joined[one.node.Name]; member && (object.Ready || named(j.Nodes, one.node.Name)) {
		return one.err
	}
	return nil
}

func (j talosCA) missing(ctx context.Context, pass Pass, node turn.Node, _ Trust) string {
	return j.proves(ctx, j.asker, pass, node)
}

// talosClients implements machines for Talos's CA.
type talosClients struct{ *clients }

func newTalosClients(spec *Spec) talosClients {
	c := talosClients{newClients(spec, listed(ofMachine))}
	for _, i := range spec.all() {
		c.ways = append(c.ways, c.credentials(i, spec.all()...).Config())
	}
	return c
}

// credentials are those of the client of one authority that accepts servers of some authorities.
func (c talosClients) credentials(client int, servers ...int) live.Credentials {
	accepted := xslices.Map(servers, func(server int) string { return c.certificates[server] })
	own := c.Authorities[client]
	return live.Credentials{
		CA: base64.StdEncoding.EncodeToString([]byte(Bundle(accepted))), Certificate: own.ClientCertificate, Key: own.ClientKey,
	}
}

// Ask implements asker.
func (c talosClients) Ask(ctx context.Context, node turn.Node, own int, servers ...int) error {
	return talosapi.Message(c.with(ctx, node, c.credentials(own, servers...).Config(), func(ctx context.Context, talos *client.Client) error {
		_, err := talos.Version(ctx)
		return err
	}))
}

const fixOrRemove = "fix them, or remove them from the stack file"
