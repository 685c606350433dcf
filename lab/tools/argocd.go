package tools

import "time"

const (
	argoCD   = "github.com/argoproj/argo-cd/v3"
	argoHelm = "github.com/argoproj/argo-helm"

	argoCDVersion = "3.5.2"
)

// argoCDTools are Argo CD and what runs beside it. All but the chart have one folder, whose versions are those of the folder flux as far as
// Argo CD allows that, so that they share what is compiled.
var argoCDTools = []Tool{
	{
		// One program is all of Argo CD: its part depends on the name by which it is called. The sources of gitops-engine, a folder of the same
		// repository, are a module of their own, which can be had from 3.5.3 on.
		Name: "argo-cd", Version: argoCDVersion, Folder: "argocd", Package: argoCD + "/cmd",
		Module: argoCD, ModuleVersion: "v" + argoCDVersion,
		LDFlags: []string{
			"-s", "-w", "-X", argoCD + "/common.version=" + argoCDVersion, "-X", argoCD + "/common.buildDate=2026-01-01T00:00:00Z",
		},
		Data: []Copy{
			{Module: argoCD, From: "hack/git-verify-wrapper.sh", To: "git-verify-wrapper.sh", Executable: true},
			{Module: argoCD, From: "hack/gpg-wrapper.sh", To: "gpg-wrapper.sh", Executable: true},
		},
		CPU: 7*time.Minute + 30*time.Second,
	},
	{
		Name: "argo-cd-chart", Version: "10.8.0", Module: argoHelm, ModuleVersion: "v0.0.0-20260904222229-3bbb4305eea9",
		Data: []Copy{{Module: argoHelm, From: "charts/argo-cd", To: "chart"}},
		CPU:  time.Second,
	},
	{
		Name: "redis", Version: "2.38.0", Folder: "argocd", Package: "./redis", Links: []string{"redis-cli"},
		Module: "github.com/alicebob/miniredis/v2", ModuleVersion: "v2.38.0",
		LDFlags: []string{"-s", "-w"},
		CPU:     5 * time.Second,
	},
	{
		Name: "helm", Version: "4.2.1", Folder: "argocd", Package: "helm.sh/helm/v4/cmd/helm",
		Module: "helm.sh/helm/v4", ModuleVersion: "v4.2.1",
		LDFlags: []string{"-s", "-w", "-X", "helm.sh/helm/v4/internal/version.version=v4.2.1"},
		CPU:     20 * time.Second,
	},
	{
		Name: "kustomize", Version: "5.8.1", Folder: "argocd", Package: "sigs.k8s.io/kustomize/kustomize/v5",
		Module: "sigs.k8s.io/kustomize/kustomize/v5", ModuleVersion: "v5.8.1",
		LDFlags: []string{"-s", "-w", "-X", "sigs.k8s.io/kustomize/api/provenance.version=v5.8.1"},
		CPU:     10 * time.Second,
	},
}
