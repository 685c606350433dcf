// Package kubernetes holds the manifests of this folder that `slipway new` and `slipway manifests` write into a user's repository.
package kubernetes

import "embed"

// Files are the areas, their Applications of Argo CD, what all of them use, and the example podinfo with its Kustomization of Flux.
//
//go:embed apps/podinfo argocd clusters/apps/workloads/podinfo.yaml components infrastructure slipway-settings.yaml
var Files embed.FS
