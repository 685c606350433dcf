package rehearsal

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/control"
)

func TestWithoutOthers_KeepsTheClustersMachinesAndWhatBelongsToNone(t *testing.T) {
	status := control.Status{VMs: []control.VM{
		{ID: 1111, Name: "infra-cp-1", Cluster: "infra"}, {ID: 2111, Name: "apps-cp-1", Cluster: "apps"}, {ID: 3111, Name: "new"},
	}}
	const own = `{"what":"boot","of":"infra-cp-1","from":"2026-01-02T03:04:05Z","to":"2026-01-02T03:04:06Z"}
{"what":"boot","of":"new","from":"2026-01-02T03:04:05Z","to":"2026-01-02T03:04:06Z"}
{"what":"qmcreate","of":"1111","from":"2026-01-02T03:04:05Z","to":"2026-01-02T03:04:06Z"}
{"what":"download","of":"talos.iso","from":"2026-01-02T03:04:05Z","to":"2026-01-02T03:04:06Z"}
`
	const other = `{"what":"boot","of":"apps-cp-1","from":"2026-01-02T03:04:05Z","to":"2026-01-02T03:04:06Z"}
{"what":"qmcreate","of":"2111","from":"2026-01-02T03:04:05Z","to":"2026-01-02T03:04:06Z"}
`
	require.Equal(t, own, string(withoutOthers([]byte(other+own+other+`{"what":"bo`), status, "infra")))
}
