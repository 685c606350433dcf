package faults

import (
	"fmt"
	"strings"
)

// MeshCase is one row of the matrix of a mesh: something that breaks between two clusters that are up, and what the mesh's probe for infra
// says about its peer apps.
type MeshCase struct {
	Name  string
	Made  string // how the test makes it, Markdown
	Opens bool   // the mesh gate opens, and names what is not as declared; otherwise it stays closed
	Says  string // regular expression that the probe's output must match
}

// MeshCases are in the order in which they are made. After each, the mesh is whole again, except where the next one continues with it.
var MeshCases = []MeshCase{
	{
		Name: "the peer was never there", Made: "`up` of infra before apps exists",
		Opens: true, Says: `apps: is absent: .* does not answer .*nothing in this cluster is connected to it`,
	},
	{
		Name: "the peer is gone", Made: "`lab fault mesh-gone apps`; Cilium reports it as ready for two minutes more",
		Opens: true, Says: `apps: is absent: .*Cilium still reports a connection`,
	},
	{
		Name: "the peer has been gone for a while", Made: "the same fault, once kvstoremesh has lost the peer's heartbeat",
		Opens: true, Says: `apps: is absent: .*nothing in this cluster is connected to it`,
	},
	{
		Name: "the peer's certificate is of another CA", Made: "apps gets another CA, and a server certificate of it",
		Says: `apps: .*the certificate is not of the mesh's CA`,
	},
	{
		Name: "the peer's certificate is for another name", Made: "apps gets a server certificate for `edge.example.com`",
		Says: `apps: .*the certificate is for another name`,
	},
	{
		Name: "the peer's certificate has expired", Made: "apps gets a server certificate that ended yesterday",
		Says: `apps: .*the certificate has expired`,
	},
	{
		Name: "the peer has another id", Made: "infra's probe is told that apps has the id 7",
		Says: `apps: .*has the id 2 instead of the declared 7`,
	},
	{
		Name: "the peer has this cluster's id",
		Made: "`cluster-id` in apps's ConfigMap `cilium-config` becomes 1; its agents and its mesh API server start again",
		Says: `apps: .*has the id 1, which is this cluster's; id collision`,
	},
}

// MeshTable returns the matrix of a mesh as a Markdown table.
func MeshTable() string {
	var b strings.Builder
	b.WriteString("| what breaks | how it is made | the gate | it says |\n| --- | --- | --- | --- |\n")
	for _, c := range MeshCases {
		gate := "stays closed"
		if c.Opens {
			gate = "opens, with a remark"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | `%s` |\n", c.Name, c.Made, gate, strings.ReplaceAll(c.Says, "|", `\|`))
	}
	return b.String()
}
