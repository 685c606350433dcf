// Package pins holds every version that the core of a cluster is made from, and which of them go together. It imports
// neither Pulumi nor Kubernetes, so that the configuration takes its defaults and checks from here.
package pins

// The charts of the core services, each with the repository its project documents.
const (
	// renovate: datasource=helm depName=coredns registryUrl=https://coredns.github.io/helm
	CoreDNSVersion    = "1.45.2"
	CoreDNSRepository = "https://coredns.github.io/helm"

	// renovate: datasource=docker depName=ghcr.io/spegel-org/helm-charts/spegel
	SpegelVersion = "0.5.1"
	SpegelChart   = "oci://ghcr.io/spegel-org/helm-charts/spegel"

	// renovate: datasource=helm depName=cert-manager registryUrl=https://charts.jetstack.io
	CertManagerVersion    = "v1.21.2"
	CertManagerRepository = "https://charts.jetstack.io"
)

// The releases that the CustomResourceDefinitions are taken from.
const (
	// Gateway API goes by what Cilium implements, see GatewayAPIFitsCilium.
	//
	// renovate: datasource=github-releases depName=kubernetes-sigs/gateway-api
	gatewayAPIVersion = "v1.3.0"

	// renovate: datasource=github-releases depName=external-secrets/external-secrets
	externalSecretsVersion = "v0.20.4"

	// renovate: datasource=github-releases depName=VictoriaMetrics/operator
	victoriaMetricsVersion = "v0.62.0"

	// renovate: datasource=github-releases depName=prometheus-operator/prometheus-operator
	prometheusOperatorVersion = "v0.85.0"

	// renovate: datasource=github-releases depName=cloudnative-pg/cloudnative-pg
	cloudNativePGVersion = "v1.27.0"
)
