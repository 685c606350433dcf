// Package chart computes what Slipway sets in Cilium's chart, and checks the user's own values for it. It imports no Pulumi: commands and
// tests use it alone.
package chart

import "github.com/slipway-platform/slipway/cluster"

// Name and namespace of the Helm release, which Flux can adopt.
const (
	ReleaseName      = "cilium"
	ReleaseNamespace = "kube-system"
)

// Values are one cluster's choices that determine the chart's values. They contain no certificates, which are known later.
type Values struct{ *cluster.Cluster }
