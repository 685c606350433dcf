// pulumi-resource-proxmoxve is the Proxmox VE plugin: the Pulumi bridge over bpg's Terraform provider.
//
// There is no generated schema and no bridge metadata. At start the plugin determines which of the two providers behind
// the multiplexer serves a resource.
//
// It is built with one of two releases of the provider, one older and one newer than that of the released plugin: go.mod has the newer one,
// older.mod the other.
//
// The defaults of the virtual machine's blocks stay as upstream declares them. With them, a program that omits `cdrom`
// or `disk.speed` sees a change at every `up`, which reboots the VM. The released plugin has the same schema, so a
// rehearsal must show that.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/bpg/terraform-provider-proxmox/fwprovider"
	"github.com/bpg/terraform-provider-proxmox/proxmoxtf/provider"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	pf "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/pf/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
	shim "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim"
	shimv2 "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim/sdk-v2"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/x/muxer"
	"github.com/pulumi/pulumi-terraform-bridge/v3/unstable/metadata"
)

// pluginName is the package name in type tokens.
const pluginName = "proxmoxve"

// version is the plugin's version. The linker sets it from the lab's table of tools.
var version = "0.0.0-dev"

func main() {
	ctx := context.Background()
	info, err := newProviderInfo(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "pulumi-resource-%s: %v\n", pluginName, err)
		os.Exit(1)
	}
	schema := fmt.Appendf(nil, `{"name":%q,"version":%q}`, pluginName, version)
	pf.MainWithMuxer(ctx, pluginName, info, schema)
}

// newProviderInfo joins upstream's two providers (one uses the plugin SDK, one the plugin framework) and gives their
// resources the SDK's names.
func newProviderInfo(ctx context.Context) (tfbridge.ProviderInfo, error) {
	classic := provider.ProxmoxVirtualEnvironment()
	switchOnCDDrives(classic)
	joined := pf.MuxShimWithPF(ctx, shimv2.NewProvider(classic), fwprovider.New(version)())
	info := tfbridge.ProviderInfo{
		P:            joined,
		Name:         "proxmox",
		Version:      version,
		GitHubOrg:    "bpg",
		MetadataInfo: tfbridge.NewProviderMetadata([]byte(`{}`)),
		Resources:    map[string]*tfbridge.ResourceInfo{},
		DataSources:  map[string]*tfbridge.DataSourceInfo{},
	}
	joined.ResourcesMap().Range(func(name string, _ shim.Resource) bool {
		module, member := resourceToken(name)
		info.Resources[name] = &tfbridge.ResourceInfo{Tok: tfbridge.MakeResource(pluginName, module, member)}
		return true
	})
	joined.DataSourcesMap().Range(func(name string, _ shim.Resource) bool {
		module, member := functionToken(name)
		info.DataSources[name] = &tfbridge.DataSourceInfo{Tok: tfbridge.MakeDataSource(pluginName, module, member)}
		return true
	})
	info.SetAutonaming(255, "-")

	resolver, ok := joined.(interface {
		ResolveDispatch(*tfbridge.ProviderInfo) (muxer.DispatchTable, error)
	})
	if !ok {
		return info, fmt.Errorf("the joined provider %T cannot say which of its parts serves a resource", joined)
	}
	table, err := resolver.ResolveDispatch(&info)
	if err != nil {
		return info, fmt.Errorf("dispatch table: %w", err)
	}
	if err := metadata.Set(info.GetMetadata(), "mux", table); err != nil {
		return info, fmt.Errorf("dispatch table: %w", err)
	}
	return info, nil
}

// terraformVM is the name of the virtual machine.
const terraformVM = terraformPrefix + "vm"

// switchOnCDDrives switches on the CD drives that a program declares. The older release does so only with the property enabled. In the
// released plugin the property is deprecated and means nothing.
func switchOnCDDrives(classic *schema.Provider) {
	drive, isBlock := classic.ResourcesMap[terraformVM].Schema["cdrom"].Elem.(*schema.Resource)
	if isBlock && drive.Schema["enabled"].Deprecated == "" {
		drive.Schema["enabled"].Default = true
	}
}
