package component

import "github.com/pulumi/pulumi/sdk/v3/go/pulumi"

// Without a version, Pulumi runs the newest plugin that is installed, and a machine without any downloads the newest that exists.
// Most SDKs name their version. The other versions stand here; a test compares them with go.mod, here or in tests/plugins.
const (
	// renovate: datasource=go depName=github.com/muhlba91/pulumi-proxmoxve/sdk/v7 extractVersion=^v(?<version>.*)$
	proxmoxVersion = "7.13.0"
	// renovate: datasource=go depName=github.com/pulumi/pulumi-kubernetes/sdk/v4 extractVersion=^v(?<version>.*)$
	kubernetesVersion = "4.25.0"
)

// ProxmoxPlugin pins the plugin of the Proxmox provider and of its resources. The SDK names only the place to download it from. The plugin
// is a newer one than the SDK: it has the same types, which the tests in tests/plugins compare. Its next major version has no virtual
// machine of this type any more.
func ProxmoxPlugin() pulumi.ResourceOption { return pulumi.Version(proxmoxVersion) }

// KubernetesPlugin pins the plugin of a custom resource of Kubernetes. The SDK's own resources name it themselves.
func KubernetesPlugin() pulumi.ResourceOption { return pulumi.Version(kubernetesVersion) }
