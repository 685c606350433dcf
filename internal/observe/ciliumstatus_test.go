package observe

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health/gate"
)

func TestAgentStatus_DistinguishesProblemsAndRemarks(t *testing.T) {
	status, err := parseAgentStatus([]byte(`{
  "cilium": {"state": "Ok", "msg": "1.18.7 (v1.18.7-abc)"}, "kubernetes": {"state": "Failure", "msg": "connection refused"},
  "kvstore": {"state": "Disabled"}, "container-runtime": {"state": "Warning", "msg": "slow"}, "cni-file": null,
  "controllers": [{"name": "sync-endpoints", "status": {"consecutive-failure-count": 7, "last-failure-msg": "timeout"}},
    {"name": "fine", "status": {"success-count": 3}}, {"name": "new"}],
  "ipam": {"status": "IPv4: 4/254 allocated from 10.244.1.0/24, IPv6: 4/18446744073709551614 allocated from fd00:10:244:1::/64"},
  "unknown": {"to": "us"}}`))
	require.NoError(t, err)
	assert.Equal(t, gate.CiliumStatus{
		Asked:    true,
		Problems: []string{"its Kubernetes client reports a failure: connection refused"},
		Remarks:  []string{"its container runtime warns: slow", "controller sync-endpoints has failed 7 times in a row: timeout"},
		Pools:    []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24"), netip.MustParsePrefix("fd00:10:244:1::/64")},
	}, status.judged())
}

func TestAgentStatus_HidesSecrets(t *testing.T) {
	status, err := parseAgentStatus([]byte(`{"cilium": {"state": "Failure", "msg": "token=SECRETsecret"},
  "kvstore": {"state": "Warning", "msg": "https://etcd:SECRETsecret@10.25.11.130: refused"},
  "controllers": [{"name": "watch", "status": {"consecutive-failure-count": 1, "last-failure-msg": "password: SECRETsecret"}}]}`))
	require.NoError(t, err)
	seen := status.judged()
	require.Len(t, append(seen.Problems, seen.Remarks...), 3)
	assert.NotContains(t, fmt.Sprint(seen), "SECRETsecret")
}

func TestAgentStatus_RefusesOtherOutput(t *testing.T) {
	for _, text := range []string{"", "KVStore: Disabled", "{}", "[]"} {
		_, err := parseAgentStatus([]byte(text))
		assert.Error(t, err, text)
	}
}

func TestParseCiliumHealth_LeavesOutTheNodesOfOtherClusters(t *testing.T) {
	peers, err := parseCiliumHealth([]byte(`{"local":{"name":"infra/a"},"nodes":[
  {"name":"infra/a","host":{"primary-address":{"ip":"10.25.11.11","icmp":{},"http":{}}},
    "health-endpoint":{"primary-address":{"ip":"10.244.0.9","icmp":{},"http":{}}}},
  {"name":"apps/a","host":{"primary-address":{"ip":"10.25.12.11","icmp":{"status":"no route"}}}}]}`), nil)
	require.NoError(t, err)
	assert.Equal(t, map[string]gate.CiliumPeer{"a": {}}, peers)
}
