package core

import (
	"encoding/json"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
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
}

// certManagerValues leave the definitions to the phase before.
func certManagerValues() certManagerChart { return certManagerChart{} }

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
