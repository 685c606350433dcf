package world

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/slipway-platform/slipway/lab/home"
)

// Tools holds the paths of the real programs and their data.
type Tools struct {
	Programs     map[string]string `json:"programs"`     // path by name in the table of tools
	CiliumCharts string            `json:"ciliumCharts"` // folder of chart archives
	CiliumCRDs   string            `json:"ciliumCRDs"`   // folder of Cilium's CRDs
	FluxOperator string            `json:"fluxOperator"` // folder of the operator's data, with its CRDs in crds/
	CertManager  string            `json:"certManager"`  // folder of cert-manager's chart/ and crds/

	// Folders with the CRDs of projects of which the lab uses nothing else.
	GatewayAPI         string `json:"gatewayAPI"`
	ExternalSecrets    string `json:"externalSecrets"`
	PrometheusOperator string `json:"prometheusOperator"`
}

// Save writes t to a lab's folder, for the world that runs in it.
func (t Tools) Save(h *home.Home) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return os.WriteFile(h.Tools(), data, 0o600)
}

// ReadTools reads what Save has written.
func ReadTools(h *home.Home) (Tools, error) {
	var t Tools
	data, err := os.ReadFile(h.Tools())
	if err != nil {
		return t, fmt.Errorf("lab folder: %w", err)
	}
	return t, json.Unmarshal(data, &t)
}
