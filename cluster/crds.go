package cluster

import (
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster/releases"
)

// CRDs are the CustomResourceDefinitions that are installed before any chart. The charts are installed without their own. Each set
// is one manifest, by default the project's official one.
type CRDs struct {
	// Gateway API, the standard channel. Its release must fit `cilium.version`.
	GatewayAPI CRDSource `json:"gatewayAPI"`
	// cert-manager. The release follows `certManager.version`.
	CertManager CRDSource `json:"certManager"`
	// External Secrets Operator. The release follows `secrets.onepassword.operator.version`.
	ExternalSecrets CRDSource `json:"externalSecrets"`
	// VictoriaMetrics operator.
	VictoriaMetrics CRDSource `json:"victoriaMetrics"`
	// Prometheus operator.
	PrometheusOperator CRDSource `json:"prometheusOperator"`
	// CloudNativePG.
	CloudNativePG CRDSource `json:"cloudnativePG"`
	// Rook, the operator of Ceph.
	Rook CRDSource `json:"rook"`
	// Operator of Ceph's CSI drivers. The release is the one that Rook's chart contains.
	CephCSI CRDSource `json:"cephCSI"`
}

// CRDSource is the source of a set of CustomResourceDefinitions.
type CRDSource struct {
	// Release, in the form of the project's tags.
	Version string `json:"version" form:"release" example:"v1.2.3"`
	// URL of the manifest. The default is the project's own manifest of the release.
	URL string `json:"url" form:"manifest-url" example:"https://mirror.example.com/crds.yaml"`
	// Checksum that the manifest must have.
	SHA256 string `json:"sha256" form:"sha256" example:"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"`
	// Do not install this set.
	Skip bool `json:"skip" example:"true"`
}

// CRDSet is the CRDs of one project.
type CRDSet struct {
	Key    string     // key in the stack file, below crds, such as "gatewayAPI"
	Name   string     // name in reports, such as "Gateway API"
	Source *CRDSource // declared source

	// Bundle means that the project's manifest contains more than CRDs. Only these are applied.
	Bundle bool

	version  string // pinned release; "" if it follows another key
	manifest string // template of the manifest's URL, with {tag}, {version} (without v) and {minor} (such as 1.30)
}

// Sets returns all sets, in the order of the file, including skipped ones.
func (c *CRDs) Sets() []CRDSet {
	return []CRDSet{
		{
			Source: &c.GatewayAPI, Key: "gatewayAPI", Name: "Gateway API",
			// Since 1.5 the manifest has a ValidatingAdmissionPolicy, too, which refuses older CRDs and those of the experimental channel.
			// Slipway leaves it out: what goes with Cilium is checked before anything is applied, and the way back must stay open.
			Bundle: true,
			// The release must be the one that Cilium implements: cluster/releases/table.go.
			//
			// renovate: datasource=github-releases depName=kubernetes-sigs/gateway-api
			version:  "v1.6.3",
			manifest: "https://github.com/kubernetes-sigs/gateway-api/releases/download/{tag}/standard-install.yaml",
		},
		{
			Source: &c.CertManager, Key: "certManager", Name: "cert-manager",
			manifest: "https://github.com/cert-manager/cert-manager/releases/download/{tag}/cert-manager.crds.yaml",
		},
		{
			Source: &c.ExternalSecrets, Key: "externalSecrets", Name: "external-secrets",
			// The CRDs are a file in the repository; the project documents no release file.
			manifest: "https://raw.githubusercontent.com/external-secrets/external-secrets/{tag}/deploy/crds/bundle.yaml",
		},
		{
			Source: &c.VictoriaMetrics, Key: "victoriaMetrics", Name: "VictoriaMetrics operator",
			// renovate: datasource=github-releases depName=VictoriaMetrics/operator
			version: "v0.72.0",
			// This manifest has no descriptions, which would triple its size, like the CRDs in the project's own chart.
			manifest: "https://raw.githubusercontent.com/VictoriaMetrics/operator/{tag}/config/crd/overlay/crd.descriptionless.yaml",
		},
		{
			Source: &c.PrometheusOperator, Key: "prometheusOperator", Name: "Prometheus operator",
			// renovate: datasource=github-releases depName=prometheus-operator/prometheus-operator
			version: "v0.85.0",
			// This manifest has no descriptions, which would double its size.
			manifest: "https://github.com/prometheus-operator/prometheus-operator/releases/download/{tag}/stripped-down-crds.yaml",
		},
		{
			Source: &c.CloudNativePG, Key: "cloudnativePG", Name: "CloudNativePG",
			Bundle: true, // the project publishes its whole operator in one manifest
			// renovate: datasource=github-releases depName=cloudnative-pg/cloudnative-pg
			version:  "v1.30.0",
			manifest: "https://raw.githubusercontent.com/cloudnative-pg/cloudnative-pg/release-{minor}/releases/cnpg-{version}.yaml",
		},
		{
			Source: &c.Rook, Key: "rook", Name: "Rook",
			// renovate: datasource=github-releases depName=rook/rook
			version:  "v1.20.6",
			manifest: "https://raw.githubusercontent.com/rook/rook/{tag}/deploy/examples/crds.yaml",
		},
		{
			Source: &c.CephCSI, Key: "cephCSI", Name: "Ceph CSI operator",
			// Rook's csi-operator.yaml has the same CRDs together with the operator. The chart has the CRDs as templates, which the tree
			// leaves out: Helm would remove them with the chart's release.
			//
			// renovate: datasource=github-releases depName=ceph/ceph-csi-operator
			version:  "v1.0.4",
			manifest: "https://raw.githubusercontent.com/ceph/ceph-csi-operator/{tag}/deploy/multifile/crd.yaml",
		},
	}
}

// gatewayAPI returns the set of the Gateway API, which is the first.
func (c *CRDs) gatewayAPI() CRDSet { return c.Sets()[0] }

// Installed returns the sets that are not skipped, in the order of the file.
func (c *CRDs) Installed() []CRDSet {
	return slices.DeleteFunc(c.Sets(), func(set CRDSet) bool { return set.Source.Skip })
}

// derive sets the default release and manifest of each set. The releases of cert-manager and of External Secrets Operator follow their
// charts.
func (c *CRDs) derive(certManager CertManager, providers SecretProviders) {
	fill(&c.CertManager.Version, certManager.Version)
	fill(&c.ExternalSecrets.Version, "v"+providers.operator().Version)
	for _, set := range c.Sets() {
		fill(&set.Source.Version, set.version)
		fill(&set.Source.URL, set.official())
	}
}

// StandardGatewayAPI reports whether the CRDs of the Gateway API are those of the project's standard channel.
func (c *CRDs) StandardGatewayAPI() bool {
	set := c.gatewayAPI()
	return !set.Source.Skip && set.Source.URL == set.official()
}

// official returns the URL of the project's own manifest of the declared release.
func (s CRDSet) official() string {
	bare := strings.TrimPrefix(s.Source.Version, "v")
	return strings.NewReplacer("{tag}", "v"+bare, "{version}", bare, "{minor}", releases.MinorOf(bare)).Replace(s.manifest)
}

func (c clusterCheck) crds() {
	if c.CertManager.Enabled && c.CRDs.CertManager.Skip {
		c.Found("crds.certManager.skip", "remove it, or set certManager.enabled: false",
			"true leaves out what cert-manager needs before it starts")
	}
	if c.Providers.OnePassword != nil && c.CRDs.ExternalSecrets.Skip {
		c.Found("crds.externalSecrets.skip", "remove it, or remove secrets.onepassword",
			"true leaves out what External Secrets Operator needs before it starts")
	}
}
