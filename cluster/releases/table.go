package releases

// The projects, as of 2026-11-24. Dates that follow from a policy are the day of the release that ended the support.
var (
	// Talos is Talos Linux.
	Talos = Project{
		Name:   "Talos",
		Policy: "the newest minor release; a release ends with the next one",
		Source: "https://docs.siderolabs.com/talos/v1.14/getting-started/support-matrix",
		Minors: []Minor{
			{Minor: "1.12", Ended: "2026-04-27", With: []Fit{{"Kubernetes", "1.30", "1.35", true}}},
			{Minor: "1.13", Ended: "2026-09-03", With: []Fit{{"Kubernetes", "1.31", "1.36", true}}},
			// Its documents name Kubernetes 1.33 as the oldest, its own check 1.32.
			{
				Minor: "1.14", With: []Fit{{"Kubernetes", "1.32", "1.37", true}},
				Notes: []string{"ends with 1.15, planned for 2026-12-27"},
			},
		},
	}

	// Kubernetes is what Talos runs.
	Kubernetes = Project{
		Name:   "Kubernetes",
		Policy: "14 months",
		Source: "https://kubernetes.io/releases/patch-releases/",
		Minors: []Minor{
			{Minor: "1.30", Ended: "2025-06-28"},
			{Minor: "1.31", Ended: "2025-10-28"},
			{Minor: "1.32", Ended: "2026-02-28"},
			{Minor: "1.33", Ended: "2026-06-28"},
			{Minor: "1.34", Ended: "2026-10-27"},
			{Minor: "1.35", Ended: "2027-02-28"},
			{Minor: "1.36", Ended: "2027-06-28"},
			{Minor: "1.37", Ended: "2027-10-28"},
		},
	}

	// Cilium is the network. Its releases are tested with some releases of Kubernetes, and its operator needs the CRDs of the Gateway API that
	// it was made for: 1.19 fails with those of 1.5 and later, 1.20 without those of 1.6.1.
	Cilium = Project{
		Name:   "Cilium",
		Policy: "the three newest minor releases",
		Source: "https://docs.cilium.io/en/stable/network/kubernetes/compatibility/ and …/network/servicemesh/gateway-api/gateway-api/",
		Minors: []Minor{
			{Minor: "1.16", Ended: "2026-02-03", With: []Fit{{"Kubernetes", "1.27", "1.30", false}, {"Gateway API", "1.1", "1.1", true}}},
			{Minor: "1.17", Ended: "2026-07-29", With: []Fit{{"Kubernetes", "1.29", "1.32", false}, {"Gateway API", "1.2", "1.2", true}}},
			{
				Minor: "1.18", With: []Fit{{"Kubernetes", "1.30", "1.33", false}, {"Gateway API", "1.2", "1.3", true}},
				Notes: []string{"ends with 1.21"},
			},
			{
				Minor: "1.19", With: []Fit{{"Kubernetes", "1.31", "1.34", false}, {"Gateway API", "1.4", "1.4", true}},
				Notes: []string{"ends with 1.22"},
			},
			{
				Minor: "1.20", With: []Fit{{"Kubernetes", "1.33", "1.36", false}, {"Gateway API", "1.6.1", "1.6", true}},
				Notes: []string{"ends with 1.23"},
			},
		},
	}

	// GatewayAPI are the CRDs of gateways. Which release is right is Cilium's matter.
	GatewayAPI = Project{
		Name:   "Gateway API",
		Policy: "the newest minor release",
		Source: "https://gateway-api.sigs.k8s.io/concepts/versioning/", Rolling: true,
		Minors: []Minor{{Minor: "1.1"}, {Minor: "1.2"}, {Minor: "1.3"}, {Minor: "1.4"}, {Minor: "1.5"}, {Minor: "1.6"}, {Minor: "1.7"}},
	}

	// Flux is the engine of GitOps.
	Flux = Project{
		Name:   "Flux",
		Policy: "the three newest minor releases",
		Source: "https://fluxcd.io/flux/releases/",
		Minors: []Minor{
			{Minor: "2.8", With: []Fit{{"Kubernetes", "1.33", "1.35", false}}, Notes: []string{"ends with 2.11"}},
			{Minor: "2.9", With: []Fit{{"Kubernetes", "1.34", "1.36", false}}, Notes: []string{"ends with 2.12"}},
			{Minor: "2.10", With: []Fit{{"Kubernetes", "1.35", "1.37", false}}, Notes: []string{"ends with 2.13"}},
		},
	}

	// FluxOperator installs Flux, of the releases in its own config/data/flux: 0.59.0 has 2.2.3 to 2.9.5.
	FluxOperator = Project{
		Name:   "flux-operator",
		Policy: "the newest release",
		Source: "https://fluxoperator.dev/docs/guides/upgrade/", Rolling: true,
		Minors: []Minor{{Minor: "0.59", With: []Fit{{"Flux", "2.2", "2.9", true}}}},
	}

	// Rook operates Ceph.
	Rook = Project{
		Name:   "Rook",
		Policy: "the two newest minor releases",
		Source: "https://rook.io/docs/rook/latest-release/Getting-Started/Prerequisites/prerequisites/",
		Minors: []Minor{
			{Minor: "1.19", With: []Fit{{"Kubernetes", "1.30", "1.35", false}}, Notes: []string{"ends with 1.21"}},
			{Minor: "1.20", With: []Fit{{"Kubernetes", "1.31", "1.36", false}}, Notes: []string{"ends with 1.22"}},
		},
	}

	// CertManager issues certificates.
	CertManager = Project{
		Name:   "cert-manager",
		Policy: "the two newest minor releases",
		Source: "https://cert-manager.io/docs/releases/",
		Minors: []Minor{
			{Minor: "1.19", Ended: "2026-07-08", With: []Fit{{"Kubernetes", "1.31", "1.35", false}}},
			{Minor: "1.20", With: []Fit{{"Kubernetes", "1.32", "1.35", false}}, Notes: []string{"ends with 1.22"}},
			{Minor: "1.21", With: []Fit{{"Kubernetes", "1.33", "1.36", false}}, Notes: []string{"ends with 1.23"}},
		},
	}

	// ExternalSecrets reads secrets from providers. Its releases come every two to three weeks, so a release is out of support soon.
	ExternalSecrets = Project{
		Name:   "External Secrets",
		Policy: "the newest minor release",
		Source: "https://external-secrets.io/latest/introduction/stability-support/", Rolling: true,
		Minors: []Minor{
			{Minor: "0.20", Ended: "2025-11-07", Notes: []string{"its images are at a domain that the project has given up"}},
			{Minor: "2.9", Notes: []string{"upgraded minor release by minor release"}},
		},
	}

	// All are the projects in the order in which a cluster gets them.
	All = []Project{Talos, Kubernetes, Cilium, GatewayAPI, FluxOperator, Flux, Rook, CertManager, ExternalSecrets}
)
