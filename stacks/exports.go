package stacks

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/stacks/contract"
)

// outputs returns the stack's outputs, which are its contract.
func (c *chain) outputs() pulumi.Map {
	outputs := pulumi.Map{
		contract.KubernetesEndpoint: c.talos.APIEndpoint,
		contract.Kubeconfig:         pulumi.ToSecret(c.talos.Kubeconfig),
		contract.Talosconfig:        pulumi.ToSecret(c.talos.Talosconfig),
		contract.GateSpec:           c.gate.Spec,
		contract.GateReport:         c.gate.Report,
	}
	for name, value := range contract.Declared(c.Cluster) {
		if number, is := value.(int); is {
			outputs[name] = pulumi.Int(number)
		} else {
			outputs[name] = pulumi.String(value.(string))
		}
	}
	if c.handover != nil {
		outputs[contract.HandoverReport], outputs[contract.GitRevision] = c.handover.Report, c.handover.Revision
	}
	if c.mesh != nil {
		outputs[contract.MeshSpec], outputs[contract.MeshReport] = c.mesh.Spec, c.mesh.Report
	}
	if c.storage != nil {
		outputs[contract.StorageSpec], outputs[contract.StorageReport] = c.storage.Spec, c.storage.Report
	}
	if c.checks != nil {
		outputs[contract.ChecksSpec], outputs[contract.ChecksReport] = c.checks.Spec, c.checks.Report
	}
	if certificate := c.foundation.SealedSecretsCert; certificate != nil {
		outputs[contract.SealedSecretsCert] = certificate
	}
	return outputs
}
