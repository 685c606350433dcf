package pins

import "strings"

// Set is one project's CustomResourceDefinitions and the release they are taken from.
type Set struct {
	Key     string // in the stack files below crds, e.g. "gatewayAPI"
	Name    string // for people, e.g. "Gateway API"
	Version string // pinned release, as the project tags it, e.g. "v1.3.0"

	// Bundle is true where the project publishes no manifest of its definitions alone: they are taken out of the whole
	// installation, and the rest of it is left out.
	Bundle bool

	manifest string // URL of a release's manifest, with {tag}, {version} (without v) and {minor} (such as 1.27) in it
}

// URL is the project's official manifest of a release; "" means the pinned one. A leading v may be left out.
func (s Set) URL(version string) string {
	if version == "" {
		version = s.Version
	}
	bare := strings.TrimPrefix(version, "v")
	minor := bare
	if parts := strings.SplitN(bare, ".", 3); len(parts) > 1 {
		minor = parts[0] + "." + parts[1]
	}
	return strings.NewReplacer("{tag}", "v"+bare, "{version}", bare, "{minor}", minor).Replace(s.manifest)
}

// The sets that a cluster gets before its charts, which are installed without theirs.
var (
	// GatewayAPI is the standard channel.
	GatewayAPI = Set{
		Key: "gatewayAPI", Name: "Gateway API", Version: gatewayAPIVersion,
		manifest: "https://github.com/kubernetes-sigs/gateway-api/releases/download/{tag}/standard-install.yaml",
	}
	// CertManager is of the release that the chart is of.
	CertManager = Set{
		Key: "certManager", Name: "cert-manager", Version: CertManagerVersion,
		manifest: "https://github.com/cert-manager/cert-manager/releases/download/{tag}/cert-manager.crds.yaml",
	}
	// ExternalSecrets are kept in the repository; the project documents no release file.
	ExternalSecrets = Set{
		Key: "externalSecrets", Name: "external-secrets", Version: externalSecretsVersion,
		manifest: "https://raw.githubusercontent.com/external-secrets/external-secrets/{tag}/deploy/crds/bundle.yaml",
	}
	// VictoriaMetrics are those of its operator.
	VictoriaMetrics = Set{
		Key: "victoriaMetrics", Name: "VictoriaMetrics operator", Version: victoriaMetricsVersion,
		manifest: "https://github.com/VictoriaMetrics/operator/releases/download/{tag}/crd.yaml",
	}
	// PrometheusOperator comes without descriptions: with them the manifest is twice as large.
	PrometheusOperator = Set{
		Key: "prometheusOperator", Name: "Prometheus operator", Version: prometheusOperatorVersion,
		manifest: "https://github.com/prometheus-operator/prometheus-operator/releases/download/{tag}/stripped-down-crds.yaml",
	}
	// CloudNativePG publishes its whole operator in one manifest.
	CloudNativePG = Set{
		Key: "cloudnativePG", Name: "CloudNativePG", Version: cloudNativePGVersion, Bundle: true,
		manifest: "https://raw.githubusercontent.com/cloudnative-pg/cloudnative-pg/release-{minor}/releases/cnpg-{version}.yaml",
	}
)
