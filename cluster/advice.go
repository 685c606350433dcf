package cluster

import (
	"slices"
	"time"
)

// Advice returns what is accepted and should be changed, such as a version that has no support on a day. config-check and `up` show it as
// warnings.
func (c *Cluster) Advice(day time.Time) Problems {
	var findings Findings
	if c.Providers.SealedSecrets != nil {
		c.Providers.SealedSecrets.advise(&findings)
	}
	if c.Providers.OnePassword != nil {
		c.Providers.OnePassword.Operator.advise(&findings)
	}
	c.adviseStorageVault(&findings)
	c.adviseSnapshotBucket(&findings)
	return slices.Concat(c.versionAdvice(day), findings.All())
}
