package talos

import (
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/talos/turn"
	"github.com/slipway-platform/slipway/internal/machineconfig"
)

// turn has a control plane wait, right before its configuration is changed, until the others carry etcd: with the
// configurations applied one after the other, a change that reboots them takes no quorum away. It runs for updates only.
func (b *builder) turn(node Node) (pulumi.ResourceOption, error) {
	others := b.besides(node)
	if node.Role != machineconfig.ControlPlane || len(others) == 0 {
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

// besides are the addresses of the other control planes.
func (b *builder) besides(node Node) []string {
	var others []string
	for _, other := range b.args.controlPlanes() {
		if other.Name != node.Name {
			others = append(others, other.Address.String())
		}
	}
	return others
}

// credentials are those that a configuration is applied with.
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

// plain is a value without the sign that it is secret.
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
