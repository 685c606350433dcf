package machineconfig

import (
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime/extensions"

	"github.com/slipway-platform/slipway/cluster"
)

// extensionServices returns the configurations of the extensions' services. Of the known extensions only lldpd needs one: without it, the
// machine never gets ready. It is rendered if and only if the extension is declared: Talos reboots the machine if one is there without
// the other.
func (c model) extensionServices() []config.Document {
	if !slices.Contains(c.Talos.Extensions, cluster.LLDPDExtension) {
		return nil
	}
	return []config.Document{&extensions.ServiceConfigV1Alpha1{
		Meta:        meta.Meta{MetaAPIVersion: "v1alpha1", MetaKind: extensions.ServiceConfigKind},
		ServiceName: "lldpd",
		ServiceConfigFiles: extensions.ConfigFileList{
			{ConfigFileContent: string(c.Talos.LLDPD.Config), ConfigFileMountPath: "/usr/local/etc/lldpd/lldpd.conf"},
		},
	}}
}
