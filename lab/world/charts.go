package world

import (
	"maps"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/slipway-platform/slipway/lab/registry"
	"github.com/slipway-platform/slipway/lab/registry/charts"
	"github.com/slipway-platform/slipway/lab/registry/manifests"
	"github.com/slipway-platform/slipway/lab/tools"
)

// Hosts of charts, and the repositories on the one that is an OCI registry.
const (
	coreDNSHost     = "coredns.github.io"
	certManagerHost = "charts.jetstack.io"
	ociHost         = "ghcr.io"
	operatorOCI     = "controlplaneio-fluxcd/charts/flux-operator"
	spegelOCI       = "spegel-org/helm-charts/spegel"

	connectHost         = "1password.github.io" // below /connect-helm-charts
	externalSecretsHost = "charts.external-secrets.io"
	sealedSecretsHost   = "bitnami.github.io" // below /sealed-secrets

	// The host of the charts of Kubernetes' own projects, each below /PROJECT.
	sigsHost          = "kubernetes-sigs.github.io"
	rookHost          = "charts.rook.io" // below /release
	victoriaMetrics   = "victoriametrics/helm-charts/victoria-metrics-k8s-stack"
	cloudNativePGRepo = "cloudnative-pg/charts/cloudnative-pg"
)

// coreHosts serve the charts of the core services and of Flux, and the release manifests of all CRDs.
func (w *World) coreHosts() ([]host, error) {
	coreDNS, err := charts.CoreDNS(w.Home.Dir)
	if err != nil {
		return nil, err
	}
	coreDNSRepository, err := registry.HelmRepository(coreDNS)
	if err != nil {
		return nil, err
	}
	certManager, err := w.certManagerRepository()
	if err != nil {
		return nil, err
	}
	oci, err := w.ociRegistry()
	if err != nil {
		return nil, err
	}
	releases, err := w.releaseManifests()
	if err != nil {
		return nil, err
	}
	hosts := []host{
		{name: coreDNSHost, port: "443", what: "CoreDNS chart repository", handler: http.StripPrefix("/helm", coreDNSRepository)},
		{name: certManagerHost, port: "443", what: "cert-manager chart repository", handler: certManager},
		{name: ociHost, port: "443", what: "OCI registry", handler: oci},
	}
	secrets, err := w.secretsHosts()
	if err != nil {
		return nil, err
	}
	hosts = append(hosts, secrets...)
	sigs, err := w.sigsRepositories()
	if err != nil {
		return nil, err
	}
	hosts = append(hosts, host{name: sigsHost, port: "443", what: "chart repositories of descheduler and external-dns", handler: sigs})
	handlers := releases.Handlers()
	for _, name := range slices.Sorted(maps.Keys(handlers)) {
		hosts = append(hosts, host{name: name, port: "443", what: "release manifests", handler: handlers[name]})
	}
	return hosts, nil
}

// secretsHosts serve the charts of what provides secrets, and of Rook.
func (w *World) secretsHosts() ([]host, error) {
	version, err := toolVersion("external-secrets")
	if err != nil {
		return nil, err
	}
	chart := func(tool string) string { return filepath.Join(w.Tools.Data[tool], "chart") }
	var hosts []host
	for _, one := range []struct {
		host, path, what string
		pack             func() (string, error)
	}{
		{connectHost, "/connect-helm-charts", "1Password Connect chart repository", func() (string, error) { return charts.Connect(w.Home.Dir) }},
		{externalSecretsHost, "", "external-secrets chart repository", func() (string, error) {
			return charts.ExternalSecrets(w.Home.Dir, chart("external-secrets"), version)
		}},
		{rookHost, "/release", "Rook chart repository", func() (string, error) {
			rook, err := toolVersion("rook")
			if err != nil {
				return "", err
			}
			return charts.Rook(w.Home.Dir, w.Tools.Data["rook"], "v"+rook)
		}},
		{sealedSecretsHost, "/sealed-secrets", "sealed-secrets chart repository", func() (string, error) {
			return charts.Own(w.Home.Dir, chart("sealed-secrets-controller"))
		}},
	} {
		archive, err := one.pack()
		if err != nil {
			return nil, err
		}
		repository, err := registry.HelmRepository(archive)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, host{name: one.host, port: "443", what: one.what, handler: http.StripPrefix(one.path, repository)})
	}
	return hosts, nil
}

func (w *World) certManagerRepository() (http.Handler, error) {
	version, err := toolVersion("cert-manager-controller")
	if err != nil {
		return nil, err
	}
	archive, err := charts.CertManager(w.Home.Dir, filepath.Join(w.Tools.Data["cert-manager-controller"], "chart"), "v"+version)
	if err != nil {
		return nil, err
	}
	return registry.HelmRepository(archive)
}

func (w *World) ociRegistry() (http.Handler, error) {
	operator, err := charts.FluxOperator(w.Home.Dir, filepath.Join(w.Tools.Data["flux-operator"], "crds"))
	if err != nil {
		return nil, err
	}
	spegel, err := charts.Spegel(w.Home.Dir)
	if err != nil {
		return nil, err
	}
	stack, err := charts.VictoriaMetrics(w.Home.Dir)
	if err != nil {
		return nil, err
	}
	databases, err := charts.CloudNativePG(w.Home.Dir)
	if err != nil {
		return nil, err
	}
	return registry.OCI(map[string]string{operatorOCI: operator, spegelOCI: spegel, victoriaMetrics: stack, cloudNativePGRepo: databases})
}

// sigsRepositories serves the charts of Kubernetes' own projects that the tree uses.
func (w *World) sigsRepositories() (http.Handler, error) {
	mux := http.NewServeMux()
	for _, project := range []string{"descheduler", "external-dns"} {
		archive, err := charts.Own(w.Home.Dir, w.Tools.Data[project+"-chart"])
		if err != nil {
			return nil, err
		}
		repository, err := registry.HelmRepository(archive)
		if err != nil {
			return nil, err
		}
		mux.Handle("/"+project+"/", http.StripPrefix("/"+project, repository))
	}
	return mux, nil
}

func (w *World) releaseManifests() (manifests.Files, error) {
	var sources manifests.Sources
	for _, project := range []struct {
		tool   string
		folder string // in the tool's data
		into   *manifests.Release
	}{
		{"gateway-api-crds", "", &sources.GatewayAPI},
		{"cert-manager-controller", "crds", &sources.CertManager},
		{"external-secrets-crds", "", &sources.ExternalSecrets},
		{"prometheus-operator-crds", "", &sources.PrometheusOperator},
		{"victoriametrics-operator-crds", "", &sources.VictoriaMetrics},
		{"cloudnative-pg-crds", "", &sources.CloudNativePG},
		{"rook", "", &sources.Rook},
	} {
		version, err := toolVersion(project.tool)
		if err != nil {
			return nil, err
		}
		*project.into = manifests.Release{Version: version, Dir: filepath.Join(w.Tools.Data[project.tool], project.folder)}
	}
	return manifests.New(sources)
}

func toolVersion(name string) (string, error) {
	tool, err := tools.Find(name)
	return tool.Version, err
}
