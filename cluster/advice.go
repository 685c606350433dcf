package cluster

import (
	"slices"
	"time"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// Advice returns accepted values that should be changed, such as a version without support on a day. config-check and `up` show it as
// warnings.
func (c *Cluster) Advice(day time.Time) Problems {
	var findings Findings
	if c.Providers.SealedSecrets != nil {
		c.Providers.SealedSecrets.advise(&findings)
	}
	if c.Providers.OnePassword != nil {
		c.Providers.OnePassword.Operator.advise(&findings)
	}
	if c.GitOps.URL == ExampleRepository {
		findings.Found("gitops.url", "write the URL of yours", "%s is the repository of the examples", c.GitOps.URL)
	}
	c.adviseStorageVault(&findings)
	c.adviseStorageMachines(&findings)
	c.adviseSnapshotBucket(&findings)
	c.adviseMaintenance(&findings)
	if c.Proxmox.Datastores.ISOShared && c.Proxmox.Datastores.ISO == "local" && len(c.Proxmox.Nodes) > 1 {
		findings.Found("proxmox.datastores.isoShared", "remove it, or name the shared storage in proxmox.datastores.iso",
			"true, and the storage local is a folder of each Proxmox node, unless somebody has changed that")
	}
	for path, text := range map[string]string{"gitops.ca": string(c.GitOps.CA), MeshAuthorityKey: c.MeshAuthority().Certificate} {
		if ended := syntax.Expired(text, day); !ended.IsZero() {
			findings.Found(path, "replace it", "has a certificate that was valid until %s", ended.Format(time.DateOnly))
		}
	}
	return slices.Concat(c.versionAdvice(day), findings.All())
}
