package faults

import (
	"fmt"
	"strings"
)

// StorageCase is one row of the matrix of the storage: something that breaks between a provider and its consumer, which are up, and what
// the storage's probe for the consumer says.
type StorageCase struct {
	Name string
	Made string // how the test makes it, Markdown
	Says string // regular expression that the probe's output must match
}

// StorageCases are in the order in which they are made. After each, the storage works again.
var StorageCases = []StorageCase{
	{
		Name: "the driver is missing on a node", Made: "`lab fault csi-driver-missing apps-worker-1`",
		Says: `apps-worker-1: driver rook-ceph\.rbd\.csi\.ceph\.com.* is not registered; there is none`,
	},
	{
		Name: "the provisioner does not run",
		Made: "the operator of the CSI drivers and the Deployment `rook-ceph.rbd.csi.ceph.com-ctrlplugin` have no pods",
		Says: `StorageClass ceph-block.* the claim is not bound`,
	},
	{
		Name: "the provider is gone", Made: "`lab fault ceph-gone infra`",
		Says: `StorageClass ceph-block.* the claim is not bound`,
	},
	{
		Name: "the keys are not the provider's",
		Made: "the provider's CephClient `consumer-rbd-provisioner` is deleted, and comes back with another key, which the consumer does not " +
			"have yet",
		Says: `rados: ret=-13, Permission denied`,
	},
}

// StorageTable returns the matrix of the storage as a Markdown table.
func StorageTable() string {
	var b strings.Builder
	b.WriteString("| what breaks | how it is made | it says |\n| --- | --- | --- |\n")
	for _, c := range StorageCases {
		fmt.Fprintf(&b, "| %s | %s | `%s` |\n", c.Name, c.Made, strings.ReplaceAll(c.Says, "|", `\|`))
	}
	return b.String()
}
