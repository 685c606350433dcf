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
	"github.com/slipway-platform/slipway/lab/workload/argocd"
)

// Hosts of charts, and the repositories on the one that is an OCI registry.
const (
	coreDNSHost     = "coredns.github.io"
	certManagerHost = "charts.jetstack.io"
	ociHost         = "ghcr.io"
	operatorOCI     = "controlplaneio-fluxcd/charts/flux-operator"
	olderOperator   = "0.58.0" // the version of a second chart with the same flux-operator
	spegelOCI       = "spegel-org/helm-charts/spegel"

	connectHost         = "1password.github.io" // below /connect-helm-charts
	externalSecretsHost = "charts.external-secrets.io"
	sealedSecretsHost   = "bitnami.github.io"  // below /sealed-secrets
	argoHost            = "argoproj.github.io" // below /argo-helm

	// The host of the charts of Kubernetes' own projects, each below /PROJECT.
	sigsHost          = "kubernetes-sigs.github.io"
	rookHost          = "charts.rook.io" // below /release
	cephHost          = "ceph.github.io" // below /ceph-csi-operator
	victoriaMetrics   = "victoriametrics/helm-charts/victoria-metrics-k8s-stack"
	cloudNativePGRepo = "cloudnative-pg/charts/cloudnative-pg"
	podinfoRepo       = "stefanprodan/charts/podinfo" // of docs/first-app.md
)

// coreHosts serve the charts of the core services, of Flux and of Rook, and the release manifests of all CRDs.
func (w *World) coreHosts() ([]host, error) {
	hosts, err := w.chartHosts()
	if err != nil {
		return nil, err
	}
	oci, err := w.ociRegistry()
	if err != nil {
		return nil, err
	}
	sigs, err := w.sigsRepositories()
	if err != nil {
		return nil, err
	}
	argo, err := w.argoRepository()
	if err != nil {
		return nil, err
	}
	hosts = append(hosts, host{name: argoHost, port: "443", what: "Argo CD chart repository", handler: http.StripPrefix("/argo-helm", argo)},
		host{name: ociHost, port: "443", what: "OCI registry", handler: oci},
		host{name: sigsHost, port: "443", what: "chart repositories of descheduler and external-dns", handler: sigs})
	releases, err := w.releaseManifests()
	if err != nil {
		return nil, err
	}
	handlers := releases.Handlers()
	for _, name := range slices.Sorted(maps.Keys(handlers)) {
		hosts = append(hosts, host{name: name, port: "443", what: "release manifests", handler: handlers[name]})
	}
	return hosts, nil
}

// chartHosts are the hosts with one chart, in one version, and in another version that the lab does not really have.
func (w *World) chartHosts() ([]host, error) {
	home := w.Home.Dir
	var hosts []host
	for _, one := range []struct {
		name, path, what string
		tool             string // whose data the chart is made from; "": of none

		// pack returns the archive. version is that of the chart, and tool's own version is that of the program.
		pack func(data, version string, tool tools.Tool) (string, error)
	}{
		{coreDNSHost, "/helm", "CoreDNS", "", func(string, string, tools.Tool) (string, error) {
			return charts.Pack("coredns", home)
		}},
		{certManagerHost, "", "cert-manager", "cert-manager-controller", func(data, version string, _ tools.Tool) (string, error) {
			return charts.Own(home, filepath.Join(data, "chart"), "v"+version)
		}},
		{connectHost, "/connect-helm-charts", "1Password Connect", "", func(string, string, tools.Tool) (string, error) {
			return charts.Pack("connect", home)
		}},
		{externalSecretsHost, "", "external-secrets", "external-secrets", func(data, version string, tool tools.Tool) (string, error) {
			return charts.ExternalSecrets(home, filepath.Join(data, "chart"), version, tool.Version)
		}},
		{rookHost, "/release", "Rook", "rook", func(data, version string, _ tools.Tool) (string, error) {
			return charts.Rook(home, data, "v"+version)
		}},
		{cephHost, "/ceph-csi-operator", "Ceph CSI drivers", "ceph-csi", func(data, version string, _ tools.Tool) (string, error) {
			return charts.Own(home, filepath.Join(data, "chart"), version)
		}},
		{sealedSecretsHost, "/sealed-secrets", "sealed-secrets", "sealed-secrets-controller", func(data, _ string, _ tools.Tool) (string, error) {
			return charts.Own(home, filepath.Join(data, "chart"), "")
		}},
	} {
		var tool tools.Tool
		if one.tool != "" {
			var err error
			if tool, err = tools.Find(one.tool); err != nil {
				return nil, err
			}
		}
		var archives []string
		for _, version := range tool.Served() {
			archive, err := one.pack(w.Tools.Data[one.tool], version, tool)
			if err != nil {
				return nil, err
			}
			archives = append(archives, archive)
		}
		repository, err := registry.HelmRepository(archives...)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, host{
			name: one.name, port: "443", what: one.what + " chart repository", handler: http.StripPrefix(one.path, repository),
		})
	}
	return hosts, nil
}

func (w *World) ociRegistry() (http.Handler, error) {
	operator, err := charts.FluxOperator(w.Home.Dir, filepath.Join(w.Tools.Data["flux-operator"], "crds"))
	if err != nil {
		return nil, err
	}
	older, err := charts.As(olderOperator, operator, w.Home.Dir)
	if err != nil {
		return nil, err
	}
	archives := map[string][]string{operatorOCI: {operator, older}}
	for repository, chart := range map[string]string{
		spegelOCI: "spegel", victoriaMetrics: "victoria-metrics-k8s-stack", cloudNativePGRepo: "cloudnative-pg", podinfoRepo: "podinfo",
	} {
		archive, err := charts.Pack(chart, w.Home.Dir)
		if err != nil {
			return nil, err
		}
		archives[repository] = []string{archive}
	}
	return registry.OCI(archives)
}

// argoRepository serves the chart of Argo CD, or tells how to build it.
func (w *World) argoRepository() (http.Handler, error) {
	const name = "argo-cd-chart"
	tool, err := tools.Find(name)
	if err != nil {
		return nil, err
	}
	if w.Tools.Data[name] == "" {
		return registry.Unbuilt("argo-cd", tool.Version, argocd.Build)
	}
	archive, err := charts.ArgoCD(w.Home.Dir, filepath.Join(w.Tools.Data[name], "chart"))
	if err != nil {
		return nil, err
	}
	return registry.HelmRepository(archive)
}

// sigsRepositories serves the charts of Kubernetes' own projects that the tree uses.
func (w *World) sigsRepositories() (http.Handler, error) {
	descheduler, err := tools.Find("descheduler-chart")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for project, version := range map[string]string{
		"descheduler":  descheduler.Version, // its sources have the version before
		"external-dns": "",
	} {
		archive, err := charts.Own(w.Home.Dir, w.Tools.Data[project+"-chart"], version)
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
		{"external-secrets", "crds", &sources.ExternalSecrets},
		{"prometheus-operator-crds", "", &sources.PrometheusOperator},
		{"victoriametrics-operator-crds", "", &sources.VictoriaMetrics},
		{"cloudnative-pg-crds", "", &sources.CloudNativePG},
		{"rook", "", &sources.Rook},
		{"ceph-csi", "", &sources.CephCSI},
	} {
		tool, err := tools.Find(project.tool)
		if err != nil {
			return nil, err
		}
		*project.into = manifests.Release{
			Version: tool.Version, Served: tool.Served(), Dir: filepath.Join(w.Tools.Data[project.tool], project.folder),
		}
	}
	return manifests.New(sources)
}
