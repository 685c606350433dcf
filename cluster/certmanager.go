package cluster

import "encoding/json"

// CertManager issues certificates. Its issuers are declared in Git.
type CertManager struct {
	Owned

	// Install cert-manager, which issues certificates.
	Enabled bool `json:"enabled" default:"true" example:"false"`
	// Version of the chart and of the CRDs.
	//
	// renovate: datasource=helm depName=cert-manager registryUrl=https://charts.jetstack.io
	Version string `json:"version" form:"chart-release" default:"v1.21.2"`
	// Chart repository.
	Repository string `json:"repository" form:"https-url" default:"https://charts.jetstack.io" example:"https://charts.example.com/jetstack"`
	// Values of one's own for the chart, under its own keys. They are merged last, and must not set what Slipway sets. They must
	// contain no secrets. For the minor release of the default, keys that the chart does not know, and values of another kind, are refused.
	Values ChartValues `json:"values" example:"{replicaCount: 2}"`
}

// noCertWebhook says what happens without the webhook's pods, or without the CA that the cainjector gives to the API.
const noCertWebhook = "leaves the API without the webhook, so that it accepts no Certificate"

func (m CertManager) service() Service {
	return Service{
		Key: "certManager", Name: "cert-manager", Namespace: "cert-manager", Chart: "cert-manager",
		Version: m.Version, Repository: m.Repository, UserValues: m.Values, off: !m.Enabled, MakeNamespace: true, Owner: m.Owner,
		// The CRDs are installed in their own phase. The probe checks that the API answers. The chart's own check is off: it is a hook,
		// which Helm always waits for, and its error does not name the pod that is missing.
		Values: mapping{"crds": mapping{"enabled": false}, "startupapicheck": mapping{"enabled": false}},
		Needed: []Needed{
			{"replicaCount", 1, "leaves nobody who issues certificates"}, {"webhook.replicaCount", 1, noCertWebhook},
			{"cainjector.enabled", true, noCertWebhook}, {"cainjector.replicaCount", 1, noCertWebhook},
			{"global.rbac.create", true, "leaves its accounts without rights"}, {"namespace", "", elsewhere},
			{"installCRDs", false, "installs CRDs that Slipway has installed"},
		},
		// The API accepts a Certificate only if it reaches the webhook and trusts it.
		Accepts: &Sample{Resource: "certificates", Object: json.RawMessage(`{
  "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"namespace": "cert-manager", "name": "slipway-probe"},
  "spec": {"dnsNames": ["slipway-probe.invalid"], "secretName": "slipway-probe", "issuerRef": {"name": "slipway-probe"}}}`)},
	}
}
