package world

import "github.com/slipway-platform/slipway/lab/workload"

// programs are the images that real programs stand behind, by the last part of their names; the tools have them.
var programs = []string{"flux-operator", "source-controller", "kustomize-controller", "helm-controller", "cert-manager-controller"}

// workloads says what the containers of a cluster run.
func (w *World) workloads() workload.Registry {
	r := workload.Registry{
		Programs: map[string]workload.Program{}, CRDs: w.Tools.CiliumCRDs, Env: []string{"SSL_CERT_FILE=" + w.Home.CA()},
		Behaviours: map[string]workload.Behaviour{
			"coredns":                 workload.StartCoreDNS,
			"cert-manager-webhook":    workload.StartCertManagerWebhook,
			"cert-manager-cainjector": workload.StartCertManagerCAInjector,
		},
		Listens: []string{"cert-manager-webhook"},
	}
	for _, name := range programs {
		p := workload.Program{Path: w.Tools.Programs[name]}
		if name == "flux-operator" {
			p.Data = w.Tools.FluxOperator
		}
		if name == "cert-manager-controller" {
			p.Args = func(workload.Container) []string { return nil } // it listens on nothing and elects nobody
		}
		r.Programs[name] = p
	}
	return r
}
