// Package graph tests what the program registers with Pulumi, on mocks. It says which changes of the states that releases have left are
// meant.
package graph

// Intended are changes of what exists that a release makes on purpose, in place: the type and name of a resource, and a part of it; or only
// a part of any resource.
var Intended = []string{
	"kubernetes:core/v1:ConfigMap gitops-settings: data.STORAGE_MONITORS: was 1, is 3",
	"kubernetes:external-secrets.io/v1:ClusterSecretStore secrets-onepassword-store: spec.conditions: was <nil>, is ",
	"kubernetes:helm.sh/v3:Release gitops-operator: values.web: was <nil>, is map[enabled:false]",
	"kubernetes:helm.sh/v3:Release secrets-sealed-secrets: values.image: was <nil>, is map[tag:0.40.0]",
	"kubernetes:core/v1:Secret cilium-mesh-local: metadata.annotations.helm.sh/resource-policy: was <nil>, is keep",
	"kubernetes:helm.sh/v3:Release cilium-release: values.clustermesh.apiserver.tls.",
	"kubernetes:helm.sh/v3:Release cilium-release: values.envoy.securityContext: was map[capabilities:map[envoy:[NET_ADMIN SYS_ADMIN] " +
		"keepCapNetBindService:false]], is not given any more", // the chart has the same, so no pod changes
	"machine.network.interfaces[0].routes[0].metric = 512",
	"pulumi.com/patchForce",                                                 // written by whoever comes after a killed run
	"command:local:Command talos-retire: environment.SLIPWAY_RECORD: was {", // a run of the probe; it records VM ids and IPv6 addresses now
}

// OfPlugins are inputs that another release of a plugin changes, in place. The first run with Proxmox VE's plugin 7 updates each VM, which
// goes on running: it stores new settings of the plugin, and what is in the CD drive once more.
var OfPlugins = []string{
	"pulumi:providers:proxmoxve proxmox: version: was 6.18.1, is 7.13.0",
	"cdrom.enabled",
}

// Created are resources that a release adds on purpose: Slipway itself makes all Secrets of the mesh, and tells Helm not to delete those of
// an earlier release. The vault of the storage has a store and a token of its own.
var Created = []string{
	"kubernetes:core/v1:Secret secrets-onepassword-storage-token",
	"kubernetes:external-secrets.io/v1:ClusterSecretStore secrets-onepassword-storage-store",
	"kubernetes:core/v1:Secret cilium-mesh-admin", "kubernetes:core/v1:Secret cilium-mesh-remote",
	"kubernetes:core/v1:Secret cilium-mesh-server",
}

// Protected are resources that earlier releases did not protect.
var Protected = []string{"pulumi:index:Stash talos-turns"}
