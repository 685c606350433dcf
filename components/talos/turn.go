package talos

import (
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/talos/turn"
)

// turn makes a control plane wait, right before its configuration is changed, until the others keep etcd's quorum without it.
// Because configurations are applied one after the other, a change that reboots them never costs the quorum. It runs for
// updates only.
func (b *builder) turn(node cluster.Machine) (pulumi.ResourceOption, error) {
	others := b.otherControlPlanes(node)
	if node.Role != cluster.ControlPlane || len(others) == 0 {
		return pulumi.Composite(), nil
	}
	ctx := b.ctx.Context()
	hook, err := b.ctx.RegisterResourceHook(b.name+"-"+node.Name+"-turn", func(args *pulumi.ResourceHookArgs) error {
		return turn.Turn{Credentials: credentials(args.NewInputs), Node: node.Address.String(), Others: others}.Await(ctx)
	}, nil)
	if err != nil {
		return nil, err
	}
	return pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{hook}}), nil
}

// otherControlPlanes returns the addresses of the control planes except the node.
func (b *builder) otherControlPlanes(node cluster.Machine) []string {
	var others []string
	for _, other := range b.ControlPlanes() {
		if other.Name != node.Name {
			others = append(others, other.Address.String())
		}
	}
	return others
}

// credentials returns the client certificate that a configuration is applied with.
func credentials(inputs resource.PropertyMap) turn.Credentials {
	text := func(key resource.PropertyKey) string {
		client := plain(inputs["clientConfiguration"])
		if !client.IsObject() {
			return ""
		}
		if value := plain(client.ObjectValue()[key]); value.IsString() {
			return value.StringValue()
		}
		return ""
	}
	return turn.Credentials{CA: text("caCertificate"), Certificate: text("clientCertificate"), Key: text("clientKey")}
}

// plain returns the value inside secrets and outputs.
func plain(value resource.PropertyValue) resource.PropertyValue {
	for {
		switch {
		case value.IsSecret():
			value = value.SecretValue().Element
		case value.IsOutput():
			value = value.OutputValue().Element
		default:
			return value
		}
	}
}
