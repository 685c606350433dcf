package world

import (
	"maps"
	"path/filepath"

	"github.com/slipway-platform/slipway/lab/workload"
	"github.com/slipway-platform/slipway/lab/workload/argocd"
	"github.com/slipway-platform/slipway/lab/workload/services"
)

// programs are the images for which real programs run, by the last part of their names, which is also the name of the
// tool.
var programs = []string{"flux-operator", "source-controller", "kustomize-controller", "helm-controller", "cert-manager-controller"}

// workloads returns the programs for the containers of a cluster.
func (w *World) workloads() workload.Registry {
	env := []string{"SSL_CERT_FILE=" + w.Home.CA()}
	r := workload.Registry{
		Programs: map[string]workload.Program{}, CRDs: w.Tools.Data["cilium-crds"], Env: env,
		Behaviours: map[string]workload.Behaviour{
			"coredns":                   services.StartCoreDNS,
			"cert-manager-webhook":      services.StartCertManagerWebhook,
			"cert-manager-cainjector":   services.StartCertManagerCAInjector,
			"connect-api":               w.onePassword.StartAPI,
			"connect-sync":              w.onePassword.StartSync,
			"external-secrets":          services.ExternalSecrets(w.Tools.Programs["external-secrets"], env),
			"sealed-secrets-controller": services.SealedSecrets(w.Tools.Programs["sealed-secrets-controller"], env),
		},
		Images: map[string]workload.Image{
			"clustermesh-apiserver": {
				Files: map[string]string{
					"/usr/bin/clustermesh-apiserver":   w.Tools.Programs["clustermesh-apiserver"],
					"/usr/bin/etcd":                    w.Tools.Programs["etcd"],
					"/var/lib/cilium/etcd-config.yaml": filepath.Join(w.Tools.Data["clustermesh-apiserver"], "etcd-config.yaml"),
				},
				Unknown: []string{"--clustermesh-cache-ttl", "--clustermesh-default-global-namespace"},
			},
			"talos-backup": {Entrypoint: []string{"/talos-backup"}, Names: true, Files: map[string]string{
				"/talos-backup": w.Tools.Programs["talos-backup"], w.Home.CA(): w.Home.CA(),
			}},
		},
		Listens: []string{"cert-manager-webhook", "connect-api", "connect-sync", "external-secrets", "sealed-secrets-controller"},
	}
	maps.Copy(r.Images, argocd.Images(w.Tools.Programs, w.Tools.Data["argo-cd"], w.Home.CA()))
	maps.Copy(r.Behaviours, w.rook.Behaviours(w.Tools.Programs["csi-provisioner"], env))
	for _, name := range programs {
		p := workload.Program{Path: w.Tools.Programs[name]}
		if name == "flux-operator" {
			p.Data = w.Tools.Data[name]
		}
		if name == "cert-manager-controller" {
			p.Args = func(workload.Container) []string { return nil } // it does not listen and has no leader election
		}
		r.Programs[name] = p
	}
	return r
}
