package core

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/internal/health/workloads"
)

// containerdHosts is where Talos's containerd looks for mirrors of registries.
const containerdHosts = "/etc/cri/conf.d/hosts"

// spegelChart mirrors the part of Spegel's values that Slipway sets.
type spegelChart struct {
	Spegel struct {
		ContainerdRegistryConfigPath string `json:"containerdRegistryConfigPath"`
	} `json:"spegel"`
}

func spegelValues() spegelChart {
	var values spegelChart
	values.Spegel.ContainerdRegistryConfigPath = containerdHosts
	return values
}

// certManagerChart mirrors the part of cert-manager's values that Slipway sets.
type certManagerChart struct {
	CRDs struct {
		Enabled bool `json:"enabled"`
	} `json:"crds"`
	StartupAPICheck struct {
		Enabled bool `json:"enabled"`
	} `json:"startupapicheck"`
}

// certManagerValues leave the definitions to the phase before. The check that the API answers is the probe's: the chart's own
// is a hook, which Helm waits for whatever it is told, and which fails without saying which pod is missing.
func certManagerValues() certManagerChart { return certManagerChart{} }

// anyCertificate is what an API with a working cert-manager takes: its webhook is reached, and trusted.
func anyCertificate() workloads.Sample {
	return workloads.Sample{Resource: "certificates", Object: json.RawMessage(`{
  "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"namespace": "` + CertManagerNamespace + `", "name": "slipway-probe"},
  "spec": {"dnsNames": ["slipway-probe.invalid"], "secretName": "slipway-probe", "issuerRef": {"name": "slipway-probe"}}}`)}
}

// checksum tells values apart.
func checksum(values any) (string, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// toMap turns typed values into inputs.
func toMap(values any) (pulumi.Map, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	inputs := pulumi.Map{}
	for key, value := range tree {
		inputs[key] = pulumi.Any(value)
	}
	return inputs, nil
}
