package kubelet

import (
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// caller sends requests to a kubelet.
type caller struct{ name, group, token string }

func (w *world) get(t *testing.T, who caller, path string) (int, string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: w.plane.client(t, who.name, who.group)}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+netip.AddrPortFrom(w.ip, port).String()+path, nil)
	require.NoError(t, err)
	if who.token != "" {
		req.Header.Set("Authorization", "Bearer "+who.token)
	}
	res, err := (&http.Client{Transport: transport}).Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(body)
}

// TestServer_AsksTheAPIServerWhoMayDoWhat checks the form of a kubelet's answers: a client is told which permission it
// lacks.
func TestServer_AsksTheAPIServerWhoMayDoWhat(t *testing.T) {
	w := newWorld(t)
	w.allowed = map[string]bool{metricsUser + " get metrics": true, "reader get pods": true}
	w.node(t)
	w.run(t, agentPod())
	w.eventually(t, func() bool { s := w.pod(t, "cilium-x").Status; return podReady(&s) })
	const logs = "/containerLogs/kube-system/cilium-x/cilium-agent?tailLines=1"
	metrics := caller{token: metricsToken}
	for _, tc := range []struct {
		who    caller
		path   string
		status int
		says   string
	}{
		{caller{}, logs, http.StatusUnauthorized, "Unauthorized"},
		{caller{token: "made up"}, logs, http.StatusUnauthorized, "Unauthorized"},
		{caller{}, "/healthz", http.StatusUnauthorized, "Unauthorized"},
		{caller{name: "system:node:infra-worker-2", group: "system:nodes"}, logs, http.StatusForbidden,
			"Forbidden (user=system:node:infra-worker-2, verb=get, resource=nodes, subresource(s)=[proxy])"},
		{caller{name: "apiserver-kubelet-client", group: "system:masters"}, logs, http.StatusOK, "Initializing daemon completed"},
		{caller{name: "admin", group: "system:masters"}, "/healthz", http.StatusOK, "ok"},
		{metrics, "/metrics/resource", http.StatusOK, "node_cpu_usage_seconds_total"},
		{metrics, "/stats/summary", http.StatusForbidden, "Forbidden (user=" + metricsUser + ", verb=get, resource=nodes, subresource(s)=[stats])"},
		{metrics, "/metrics", http.StatusNotImplemented, "do not model /metrics"},
		{caller{name: "reader"}, "/pods", http.StatusOK, "cilium-x"},
		{caller{name: "reader"}, "/healthz", http.StatusForbidden, "subresource(s)=[healthz proxy]"},
	} {
		status, body := w.get(t, tc.who, tc.path)
		require.Equal(t, tc.status, status, "%v %s: %s", tc.who, tc.path, body)
		require.Contains(t, body, tc.says)
	}
	before := w.asked
	status, _ := w.get(t, metrics, "/metrics/resource")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, before, w.asked, "a kubelet remembers the answer")
}

func TestServer_AnswersTheFiguresThatMetricsServerReads(t *testing.T) {
	w := newWorld(t)
	k := w.node(t)
	w.run(t, agentPod())
	p := plainPod("app")
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	w.run(t, p)
	w.eventually(t, func() bool { s := w.pod(t, "app").Status; return podReady(&s) })
	admin := caller{name: "admin", group: "system:masters"}
	_, text := w.get(t, admin, "/metrics/resource")
	value := func(series string) string {
		t.Helper()
		m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)( \d{13})?$`).FindStringSubmatch(text)
		require.NotNil(t, m, "%s in\n%s", series, text)
		require.NotEqual(t, "0", m[1], "metrics-server ignores what is zero")
		return m[1]
	}
	value("node_cpu_usage_seconds_total")
	value("node_memory_working_set_bytes")
	const labels = `{container="main",namespace="kube-system",pod="app"}`
	value("container_cpu_usage_seconds_total" + labels)
	value("container_start_time_seconds" + labels)
	require.Equal(t, "6.7108864e+07", value("container_memory_working_set_bytes"+labels))
	require.Contains(t, text, "# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container in core-seconds\n"+
		"# TYPE container_cpu_usage_seconds_total counter\n")
	require.Contains(t, text, "\nresource_scrape_error 0\n")

	_, body := w.get(t, admin, "/stats/summary")
	var s stats.Summary
	require.NoError(t, json.Unmarshal([]byte(body), &s))
	require.Equal(t, "infra-worker-1", s.Node.NodeName)
	require.Equal(t, uint64(18<<30), *s.Node.Fs.CapacityBytes)
	require.Len(t, s.Pods, 2)
	require.Equal(t, "app", s.Pods[0].PodRef.Name)
	require.NotNil(t, s.Pods[0].Network)
	require.Nil(t, s.Pods[1].Network, "the agent has the node's network")
	_, body = w.get(t, admin, "/stats/summary?only_cpu_and_memory=true")
	require.False(t, strings.Contains(body, `"fs"`), body)

	// CPU time grows, as metrics-server computes the use from two readings.
	now := time.Now()
	first, second := k.summary(now, false), k.summary(now.Add(15*time.Second), false)
	require.Greater(t, *second.Pods[0].Containers[0].CPU.UsageCoreNanoSeconds, *first.Pods[0].Containers[0].CPU.UsageCoreNanoSeconds)
	require.Greater(t, *second.Node.CPU.UsageCoreNanoSeconds, *first.Node.CPU.UsageCoreNanoSeconds)
}
