package tools

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// KubernetesVersion is the version of the lab's Kubernetes, without a leading v.
const KubernetesVersion = "1.36.4"

// The versions of Kubernetes that the lab has on demand, so that a cluster can be upgraded from one minor version to another.
const (
	// renovate: datasource=github-releases depName=kubernetes/kubernetes extractVersion=^v(?<version>1\.35\..+)$
	kubernetesBefore = "1.35.8"
	// renovate: datasource=github-releases depName=kubernetes/kubernetes extractVersion=^v(?<version>1\.37\..+)$
	kubernetesAfter = "1.37.2"
)

// Table is the list of the tools that the lab needs, in the order in which they are built. The first is small and compiles
// what nearly all of them share.
var Table = []Tool{
	{
		Name: "command", Plugin: "command", Binary: "pulumi-resource-command", Version: "1.2.1",
		Folder: "standins", Package: "./command",
		Module: "github.com/pulumi/pulumi-go-provider", ModuleVersion: "v1.3.0",
		LDFlags: []string{"-s", "-w", "-X", "main.version=1.2.1"},
		CPU:     75 * time.Second,
	},
	{
		Name: "tls", Plugin: "tls", Binary: "pulumi-resource-tls", Version: "5.2.0",
		Folder: "standins", Package: "./tls",
		Module: "github.com/pulumi/pulumi-go-provider", ModuleVersion: "v1.3.0",
		LDFlags: []string{"-s", "-w", "-X", "main.version=5.2.0"},
		CPU:     5 * time.Second,
	},
	kubernetesProgram("kube", KubernetesVersion, "kubectl"),
	{
		Name: "pulumi", Version: "3.250.0", Package: "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
		Module: "github.com/pulumi/pulumi/pkg/v3", ModuleVersion: "v3.250.0",
		// Without this, the Automation API and refresh refuse it.
		LDFlags:   []string{"-s", "-w", "-X", "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.250.0"},
		Installed: &Installed{Args: []string{"version"}, Prefix: "v"},
		CPU:       8 * time.Minute,
	},
	{
		// This is the last release with the language host in the sdk module. It also serves newer engines, but for the options of the
		// runtime: they pass them in their requests, and this release takes them as flags.
		Name: "pulumi-language-go", Version: "3.65.0", Package: "github.com/pulumi/pulumi/sdk/v3/go/pulumi-language-go",
		Module: "github.com/pulumi/pulumi/sdk/v3", ModuleVersion: "v3.65.0",
		LDFlags:   []string{"-s", "-w", "-X", "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.65.0"},
		Installed: &Installed{Beside: "pulumi"},
		Start: `option() { sed -n "s/^ *$1: *\\([^ ]*\\).*/-$1=\\1/p" "$SLIPWAY_LAB/project/Pulumi.yaml"; }
exec "$PROGRAM" $(option buildTarget) $(option binary) "$@"`,
		CPU: 45 * time.Second,
	},
	proxmoxPlugin(OlderProxmox()),
	{
		Name: "talos", Plugin: "talos", Binary: "pulumi-resource-talos", Version: "0.7.1",
		Folder: "bridged", Package: "./talos",
		Module: "github.com/siderolabs/terraform-provider-talos", ModuleVersion: "v0.7.1",
		LDFlags: []string{"-s", "-w", "-X", "main.version=0.7.1"},
		CPU:     3 * time.Minute,
	},
	{
		Name: "kubernetes", Plugin: "kubernetes", Binary: "pulumi-resource-kubernetes", Version: "4.25.0", Package: ".",
		Module: kubernetesPlugin, ModuleVersion: "v4.0.0-20260115033456-f47bc2d6f199", // the commit tagged v4.25.0
		LDFlags: []string{"-s", "-w", "-X", "main.version=4.25.0"},
		// One file of the SDK names every kind that Kubernetes has, for components that the program does not use.
		Overlays: []Overlay{{
			Module: "github.com/pulumi/pulumi-kubernetes/sdk/v4", Version: "v4.24.0",
			Sum: "h1:dlDJvsugKow8tCaD0yJngc7PXdv8WT2YwPEUmj48tF4=", To: "sdk",
			Replace: map[string]string{"go/kubernetes/yaml/v2/kinds.go": "untyped/kinds.go"},
		}},
		Embed: []Copy{
			{Module: kubernetesPlugin, From: "cmd/pulumi-resource-kubernetes/schema.json", To: "schema.json"},
			{Module: kubernetesPlugin, From: "cmd/pulumi-resource-kubernetes/terraform-mapping.json", To: "terraform-mapping.json"},
		},
		CPU: 6 * time.Minute,
	},
	fluxController("source-controller", "1.9.5", 8*time.Minute),
	fluxController("kustomize-controller", "1.9.5", 100*time.Second),
	{
		Name: "flux-operator", Version: fluxOperatorVersion, Folder: "flux", Package: fluxOperator + "/cmd/operator",
		LDFlags:  []string{"-s", "-w", "-X", "main.VERSION=v" + fluxOperatorVersion},
		Overlays: fluxOverlays,
		Data: []Copy{
			{Module: fluxOperator, From: "config/data", To: "."},
			{Module: fluxOperator, From: "config/crd/bases", To: "crds"},
		},
		CPU: 40 * time.Second,
	},
	fluxController("helm-controller", "1.6.4", 30*time.Second),
	{
		// Its Kubernetes is that of kube, so that both compile it once.
		Name: "talosctl", Version: "1.13.0", Folder: "kube", Package: "github.com/siderolabs/talos/cmd/talosctl",
		Module: "github.com/siderolabs/talos", ModuleVersion: "v1.13.0",
		// The machinery module contains its version, so it need not be set.
		LDFlags:   []string{"-s", "-w"},
		Installed: &Installed{Args: []string{"version", "--client", "--short"}, Prefix: "Talos v"},
		CPU:       2*time.Minute + 30*time.Second,
	},
	{
		Name: "cilium-crds", Version: ciliumSources, Folder: "cilium",
		Module: cilium, ModuleVersion: "v" + ciliumSources,
		Data: []Copy{{Module: cilium, From: "pkg/k8s/apis/cilium.io/client/crds", To: "."}},
		CPU:  5 * time.Second,
	},
	{
		Name: "cilium-charts", Version: "1.18.7", Folder: "cilium",
		Module: ciliumCharts, ModuleVersion: "v0.0.0-20260213195402-3d62b3c13114",
		Data: []Copy{
			{Module: ciliumCharts, From: "cilium-1.18.6.tgz", To: "cilium-1.18.6.tgz"},
			{Module: ciliumCharts, From: "cilium-1.18.7.tgz", To: "cilium-1.18.7.tgz"},
			{Module: ciliumCharts, From: "cilium-1.19.0.tgz", To: "cilium-1.19.0.tgz"},
			{Module: cilium, From: "install/kubernetes/cilium", To: "sources"},
		},
		CPU: 5 * time.Second,
	},
	{
		// The chart is newer, but the module of its version is not served everywhere.
		Name: "clustermesh-apiserver", Version: "1.18.6", Folder: "clustermesh", Package: cilium + "/clustermesh-apiserver",
		Module: cilium, ModuleVersion: "v1.18.6",
		LDFlags: []string{"-s", "-w", "-X", "'" + cilium + "/pkg/version.ciliumVersion=1.18.6 lab 2026-01-01T00:00:00Z'"},
		Data:    []Copy{{Module: cilium, From: "clustermesh-apiserver/etcd-config.yaml", To: "etcd-config.yaml"}},
		CPU:     5 * time.Minute,
	},
	{
		// The image of clustermesh-apiserver has a newer patch release; its module requires this one.
		Name: "etcd", Version: "3.6.5", Folder: "clustermesh", Package: "./etcd",
		Module: "go.etcd.io/etcd/server/v3", ModuleVersion: "v3.6.5",
		LDFlags: []string{"-s", "-w"},
		CPU:     20 * time.Second,
	},
	{
		// The module of the released command is not served everywhere, so the lab's own main starts its controllers.
		Name: "cert-manager-controller", Version: "1.21.2", Folder: "flux", Package: "./cert-manager",
		Module: certManager, ModuleVersion: "v1.21.2",
		LDFlags: []string{"-s", "-w"}, Overlays: fluxOverlays,
		Data: []Copy{
			{Module: certManager, From: "deploy/crds", To: "crds"},
			{Module: certManager, From: "deploy/charts/cert-manager", To: "chart"},
		},
		CPU: 75 * time.Second,
	},
	{
		// Newer releases cannot be built: their modules require modules of their own that are not served.
		Name: "external-secrets", Version: "0.20.4", Folder: "flux", Package: externalSecrets,
		Module: externalSecrets, ModuleVersion: "v0.20.4",
		LDFlags: []string{"-s", "-w"}, Overlays: fluxOverlays,
		Data: []Copy{
			{Module: externalSecrets, From: "deploy/crds", To: "crds"},
			{Module: externalSecrets, From: "deploy/charts/external-secrets", To: "chart"},
		},
		// renovate: datasource=helm depName=external-secrets registryUrl=https://charts.external-secrets.io
		Pinned: "2.9.0",
		CPU:    30 * time.Second,
	},
	{
		Name: "sealed-secrets-controller", Version: "0.40.0", Folder: "flux", Package: sealedSecrets + "/cmd/controller",
		Module: sealedSecrets, ModuleVersion: "v0.40.0",
		LDFlags: []string{"-s", "-w", "-X", "main.VERSION=0.40.0"}, Overlays: fluxOverlays,
		Data: []Copy{{Module: sealedSecrets, From: "helm/sealed-secrets", To: "chart"}},
		CPU:  10 * time.Second,
	},
	{
		Name: "csi-provisioner", Version: "5.3.0", Folder: "flux", Package: csiProvisioner + "/cmd/csi-provisioner",
		Module: csiProvisioner, ModuleVersion: "v5.3.0",
		LDFlags: []string{"-s", "-w", "-X", "main.version=v5.3.0"}, Overlays: fluxOverlays,
		CPU: 20 * time.Second,
	},
	{
		// The module of siderolabs/talos-backup is not served everywhere, so this is a stand-in, with nearly the same client of Amazon.
		Name: "talos-backup", Version: "0.1.0-beta.3", Package: ".",
		Module: "github.com/aws/aws-sdk-go-v2/feature/s3/manager", ModuleVersion: "v1.17.62",
		LDFlags: []string{"-s", "-w"},
		CPU:     40 * time.Second,
	},
	chart("descheduler", "0.36.0", "sigs.k8s.io/descheduler"),
	chart("external-dns", "0.22.0", "sigs.k8s.io/external-dns"),
	crds("gateway-api", "1.6.3", "sigs.k8s.io/gateway-api", "config/crd/standard"),
	crds("prometheus-operator", "0.85.0", "github.com/prometheus-operator/prometheus-operator", "example/prometheus-operator-crd"),
	crds("victoriametrics-operator", "0.72.0", "github.com/VictoriaMetrics/operator", "config/crd/overlay/crd.descriptionless.yaml"),
	crds("cloudnative-pg", "1.30.0", "github.com/cloudnative-pg/cloudnative-pg", "releases/cnpg-1.30.0.yaml"),
	{
		Name: "rook", Version: "1.20.6", Folder: "rook-crds", Module: rook, ModuleVersion: "v1.20.6",
		Data: []Copy{
			{Module: rook, From: "deploy/examples/crds.yaml", To: "crds.yaml"},
			{Module: rook, From: "deploy/charts/rook-ceph", To: "chart"},
			{Module: rook, From: "deploy/charts/library", To: "library"},
			{Module: cephCSI, From: "deploy/charts/ceph-csi-operator", To: "csi-operator"},
		},
		CPU: time.Second,
	},
	{
		Name: "ceph-csi", Version: "1.0.4", Folder: "rook-crds", Module: cephCSI, ModuleVersion: "v1.0.4",
		Data: []Copy{
			{Module: cephCSI, From: "deploy/multifile/crd.yaml", To: "crd.yaml"},
			{Module: cephCSI, From: "deploy/charts/ceph-csi-drivers", To: "chart"},
		},
		CPU: time.Second,
	},
}

// OnDemand is the list of the tools that are built when somebody names them. A lab uses those that are built.
var OnDemand = append([]Tool{
	minor(kubernetesBefore), minor(kubernetesAfter),
	talosSystem(machined(talos112), kubernetesBefore),
	talosSystem(machined(talos113), kubernetesBefore),
	talosSystem(machined(talos114), kubernetesBefore),
	talosSystem(rebuilt(machined(talos114), "next", "1.14.2"), KubernetesVersion),
	talosSystem(rebuilt(machined(talos114), "broken", "1.14.3", "patches/does-not-boot.patch"), kubernetesBefore),
}, argoCDTools...)

const (
	kubernetesPlugin = "github.com/pulumi/pulumi-kubernetes/provider/v4"
	cilium           = "github.com/cilium/cilium"
	ciliumCharts     = "github.com/cilium/charts"
	fluxOperator     = "github.com/controlplaneio-fluxcd/flux-operator"
	certManager      = "github.com/cert-manager/cert-manager"
	externalSecrets  = "github.com/external-secrets/external-secrets"
	sealedSecrets    = "github.com/bitnami/sealed-secrets"
	csiProvisioner   = "github.com/kubernetes-csi/external-provisioner/v5"
	rook             = "github.com/rook/rook"
	cephCSI          = "github.com/ceph/ceph-csi-operator"

	fluxOperatorVersion = "0.59.0"
	ciliumSources       = "1.20.2" // of the newest chart and of the CRDs
)

// kubernetesProgram declares the program with etcd and all that Kubernetes consists of, in a version of Kubernetes.
func kubernetesProgram(name, version string, links ...string) Tool {
	return Tool{
		Name: name, Version: version, Folder: "kube", Package: ".", Links: links, ModFile: kubernetesModFile(version),
		Module: "k8s.io/kubernetes", ModuleVersion: "v" + version,
		LDFlags: kubernetesFlags(version),
		CPU:     11 * time.Minute,
	}
}

// kubernetesFlags sets the version in a program of Kubernetes. Without it, the version is v0.0.0-master, and Helm refuses charts that
// require a range of versions.
func kubernetesFlags(version string) []string {
	_, minor, _ := strings.Cut(minorOf(version), ".")
	const set = "k8s.io/component-base/version."
	return []string{
		"-s", "-w",
		"-X", set + "gitVersion=v" + version,
		"-X", set + "gitMajor=1",
		"-X", set + "gitMinor=" + minor,
		"-X", set + "gitTreeState=clean",
		"-X", set + "gitCommit=lab",
		"-X", set + "buildDate=2026-01-01T00:00:00Z",
	}
}

// kubernetesModFile is the go.mod of a version of Kubernetes in the folder kube; "" is that of the lab's own.
func kubernetesModFile(version string) string {
	if version == KubernetesVersion {
		return ""
	}
	return minorOf(version) + ".mod"
}

// minor declares the Kubernetes of another minor version than the lab's own, e.g. kube-1.35.
func minor(version string) Tool {
	return kubernetesProgram("kube-"+minorOf(version), version)
}

// minorOf is major and minor of a version, e.g. 1.36.
func minorOf(version string) string { return strings.TrimPrefix(semver.MajorMinor("v"+version), "v") }

// ProxmoxVariable is the environment variable that selects the provider in the Proxmox plugin. The released plugin's own is between the
// two that can be had: with "older", the lab runs the one before it; otherwise, the one after it, which is nearer.
const ProxmoxVariable = "SLIPWAY_LAB_PROXMOX"

// OlderProxmox tells whether the older provider is selected.
func OlderProxmox() bool { return os.Getenv(ProxmoxVariable) == "older" }

func proxmoxPlugin(older bool) Tool {
	tool := Tool{
		Name: "proxmoxve", Plugin: "proxmoxve", Binary: "pulumi-resource-proxmoxve", Version: "7.13.0", Package: ".",
		Module: "github.com/bpg/terraform-provider-proxmox", ModuleVersion: "v0.111.1",
		LDFlags: []string{"-s", "-w", "-X", "main.version=7.13.0"},
		CPU:     2 * time.Minute,
	}
	if older {
		tool.ModFile, tool.ModuleVersion, tool.CPU = "older.mod", "v0.66.0", 3*time.Minute
	}
	return tool
}

// fluxOverlays are the overlays of the folder flux. flux-operator embeds a web page that is built with another
// toolchain. It and sealed-secrets require a newer Go than they use. external-secrets has the clients of all providers,
// of which the lab needs one, and registers its webhooks as an older controller-runtime wants it.
var fluxOverlays = []Overlay{
	{
		Module: fluxOperator, Version: "v" + fluxOperatorVersion, Sum: "h1:jByuiWYtjSJxucGHuz68tV0DeVFz5CYrKQYfxAwE7lE=",
		To: "flux-operator", Go: "1.26.0", Files: map[string]string{"web/dist/index.html": ""},
	},
	{
		Module: externalSecrets, Version: "v0.20.4", Sum: "h1:HhNAjWfFEshhItphr28SGsHzf2bUP7uDAOVLg76uNAg=",
		To: "external-secrets",
		Replace: map[string]string{
			"pkg/provider/register/register.go":                      "external-secrets-changes/providers/register.go",
			"pkg/generator/register/register.go":                     "external-secrets-changes/generators/register.go",
			"apis/externalsecrets/v1/secretstore_webhook.go":         "external-secrets-changes/v1/secretstore_webhook.go",
			"apis/externalsecrets/v1/externalsecret_webhook.go":      "external-secrets-changes/v1/externalsecret_webhook.go",
			"apis/externalsecrets/v1beta1/secretstore_webhook.go":    "external-secrets-changes/v1beta1/secretstore_webhook.go",
			"apis/externalsecrets/v1beta1/externalsecret_webhook.go": "external-secrets-changes/v1beta1/externalsecret_webhook.go",
		},
	},
	{
		Module: sealedSecrets, Version: "v0.40.0", Sum: "h1:FBK3OLCdEtZ5nlh41BKFQcUPu9kkkO0QYaGjHrpF7Tg=",
		To: "sealed-secrets", Go: "1.26.0",
	},
}

// chart declares the chart in the sources of a project, which is the one of its release or of the release before.
func chart(project, version, module string) Tool {
	return Tool{
		Name: project + "-chart", Version: version, Module: module, ModuleVersion: "v" + version,
		Data: []Copy{{Module: module, From: "charts/" + project, To: "."}},
		CPU:  time.Second,
	}
}

// crds declares a folder or file with the CRDs of a project: its release manifest, or the sources of the manifest.
func crds(project, version, module, from string) Tool {
	to := "."
	if path.Ext(from) != "" {
		to = path.Base(from)
	}
	return Tool{
		Name: project + "-crds", Version: version, Module: module, ModuleVersion: "v" + version,
		Data: []Copy{{Module: module, From: from, To: to}},
		CPU:  5 * time.Second,
	}
}

// fluxController declares one of Flux's controllers. Its CRDs are its data.
func fluxController(name, version string, cpu time.Duration) Tool {
	module := "github.com/fluxcd/" + name
	return Tool{
		Name: name, Version: version, Folder: "flux", Package: module,
		Module: module, ModuleVersion: "v" + version,
		LDFlags: []string{"-s", "-w"}, Overlays: fluxOverlays,
		Data: []Copy{{Module: module, From: "config/crd/bases", To: "crds"}},
		CPU:  cpu,
	}
}

// Find returns the tool with that name from Table or OnDemand.
func Find(name string) (Tool, error) {
	for _, t := range slices.Concat(Table, OnDemand) {
		if t.Name == name {
			return t, nil
		}
	}
	return Tool{}, fmt.Errorf("tools: %q is not in the table", name)
}
