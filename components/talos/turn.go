package talos

import (
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/talos/turn"
)

// turn makes a node wait, right before its configuration is changed. A control plane waits until the others keep etcd's quorum without it:
// because configurations are applied one after the other, a change that reboots them never costs the quorum. A worker whose change reboots
// it waits until no more than lifecycle.maxUnavailable workers reboot. It runs for updates only.
func (b *builder) turn(node cluster.Machine) (pulumi.ResourceOption, error) {
	wait := b.workerTurn(node)
	if node.Role == cluster.ControlPlane {
		wait = b.controlPlaneTurn(node)
	}
	if wait == nil {
		return pulumi.Composite(), nil
	}
	hook, err := b.ctx.RegisterResourceHook(b.name+"-"+node.Name+"-turn", wait, nil)
	if err != nil {
		return nil, err
	}
	return pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{hook}}), nil
}

// controlPlaneTurn returns the hook of a control plane; nil if it is the only one.
func (b *builder) controlPlaneTurn(node cluster.Machine) pulumi.ResourceHookFunction {
	others, ctx := b.otherControlPlanes(node), b.ctx.Context()
	if len(others) == 0 {
		return nil
	}
	return func(args *pulumi.ResourceHookArgs) error {
		return turn.Turn{Credentials: credentials(args.NewInputs), Node: node.Address.String(), Others: others}.Await(ctx)
	}
}

// workerTurn returns the hook of a worker; nil if it is the only one.
func (b *builder) workerTurn(node cluster.Machine) pulumi.ResourceHookFunction {
	if len(b.WorkerMachines()) == 1 {
		return nil
	}
	ctx := b.ctx.Context()
	return func(args *pulumi.ResourceHookArgs) error {
		change := turn.Change{Credentials: credentials(args.NewInputs), Node: node.Address.String(), Name: node.Name}
		if text := plain(args.NewInputs["machineConfigurationInput"]); text.IsString() {
			change.Configuration = text.StringValue()
		}
		return b.workers.Await(ctx, change)
	}
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
