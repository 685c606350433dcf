package world

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/slipway-platform/slipway/lab/home"
)

// Tools says where the real programs and their data lie.
type Tools struct {
	Programs     map[string]string `json:"programs"`     // path by name in the table of tools
	CiliumCharts string            `json:"ciliumCharts"` // folder of chart archives
	CiliumCRDs   string            `json:"ciliumCRDs"`   // folder of CustomResourceDefinitions
	FluxOperator string            `json:"fluxOperator"` // folder of the operator's data, its own CRDs in crds/
	CertManager  string            `json:"certManager"`  // folder of cert-manager's chart/ and crds/

	// Folders of the CustomResourceDefinitions of projects that nothing else is taken from.
	GatewayAPI         string `json:"gatewayAPI"`
	ExternalSecrets    string `json:"externalSecrets"`
	PrometheusOperator string `json:"prometheusOperator"`
}

// Save notes t in a lab's folder, for the world that runs in it.
func (t Tools) Save(h *home.Home) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return os.WriteFile(h.Tools(), data, 0o600)
}

// ReadTools reads what Save noted.
func ReadTools(h *home.Home) (Tools, error) {
	var t Tools
	data, err := os.ReadFile(h.Tools())
	if err != nil {
		return t, fmt.Errorf("lab folder: %w", err)
	}
	return t, json.Unmarshal(data, &t)
}
