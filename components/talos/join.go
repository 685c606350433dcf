package talos

import (
	"errors"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// Join makes the workers that the arguments hold back as Joining, once all of after is there, such as the gate that the
// control plane has to pass. They are the very resources that they would be as Nodes: a stack can change between the two,
// and no machine notices. It returns what completes them, which Leaves has from then on, too. Call it once.
func (c *TalosCluster) Join(ctx *pulumi.Context, after []pulumi.Resource) ([]pulumi.Resource, error) {
	if c.builder == nil {
		return nil, errors.New("join: the workers of this cluster have joined already, or it was not made by NewTalosCluster")
	}
	b := *c.builder
	b.ctx, c.builder = ctx, nil
	joined, err := b.machines(b.args.Joining, after)
	if err != nil {
		return nil, fmt.Errorf("TalosCluster %q: join: %w", b.name, err)
	}
	c.leaves = append(c.leaves, joined...)
	return joined, nil
}
