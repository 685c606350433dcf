package observe

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseCiliumHealth_CountsOnlyCompleteProbesThatAreYoungerThanTheAgentOfTheNode(t *testing.T) {
	ready := time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC)
	agents := map[string]time.Time{"b": ready}
	probe := func(at time.Time) string {
		return fmt.Sprintf(`{"latency":1,"lastProbed":%q}`, at.Format(time.RFC3339))
	}
	for _, of := range []struct{ path, says string }{
		{`"icmp":` + probe(ready) + `,"http":` + probe(ready.Add(time.Minute)), ""},
		{`"icmp":` + probe(ready) + `,"http":` + probe(ready.Add(-time.Second)), "10.25.11.12 not probed since its agent became Ready"},
		{`"icmp":` + probe(ready), "10.25.11.12 not probed yet"},
		{`"http":` + probe(ready), "10.25.11.12 not probed yet"},
		{`"icmp":` + probe(ready) + `,"http":{"status":"refused"}`, "HTTP to 10.25.11.12: refused"},
	} {
		path := `{"primary-address":{"ip":"10.25.11.12",` + of.path + `}}`
		peers, err := parseCiliumHealth([]byte(`{"local":{"name":"infra/a"},"nodes":[
  {"name":"infra/b","host":`+path+`,"health-endpoint":`+path+`}]}`), agents)
		require.NoError(t, err)
		assert.Equal(t, of.says, peers["b"].Host, of.path)
		assert.Equal(t, of.says, peers["b"].Endpoint, of.path)
	}
}
