package charts

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/cilium/chart"
)

const kubernetesVersion = "v1.35.8"

// charts is the folder with Cilium's charts, as the chart repository serves them.
var charts = sync.OnceValues(func() (string, error) {
	command := exec.Command("go", "mod", "download", "-json", "github.com/cilium/charts")
	command.Env = append(os.Environ(), "GOWORK=off")
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go mod download: %w: %s", err, out)
	}
	var module struct{ Dir string }
	err = json.Unmarshal(out, &module)
	return module.Dir, err
})

// archive is the chart that the product installs.
var archive = sync.OnceValues(func() ([]byte, error) { return archiveOf(cluster.New("").Cilium.Version) })

// archiveOf is the chart of a version.
func archiveOf(version string) ([]byte, error) {
	folder, err := charts()
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(folder, "cilium-"+version+".tgz"))
}

// theChart is the archive as Helm reads it.
var theChart = sync.OnceValues(func() (*helmchart.Chart, error) {
	raw, err := archive()
	if err != nil {
		return nil, err
	}
	return loader.LoadArchive(bytes.NewReader(raw))
})

// read is the chart that all tests are about.
func read(t *testing.T) *helmchart.Chart {
	t.Helper()
	chart, err := theChart()
	require.NoError(t, err)
	return chart
}

// variant is a cluster with one choice other than the default, or all that go together.
type variant struct {
	name string
	set  func(*chart.Values)
}

var variants = []variant{
	{"default", func(*chart.Values) {}},
	{"dual-stack", dualStack},
	{"native", func(v *chart.Values) { v.Cilium.Routing = cluster.RoutingNative }},
	{"bpf", func(v *chart.Values) { v.Cilium.Masquerade = cluster.MasqueradeBPF }},
	{"gateway", func(v *chart.Values) { v.Cilium.GatewayAPI = true }},
	{"no-hubble", func(v *chart.Values) { v.Cilium.Hubble = hubble(false, false, false) }},
	{"no-relay", func(v *chart.Values) { v.Cilium.Hubble = hubble(true, false, false) }},
	{"hubble-ui", func(v *chart.Values) { v.Cilium.Hubble = hubble(true, true, true) }},
	{"bgp", func(v *chart.Values) { v.Network.LoadBalancers.Announce = cluster.AnnounceBGP }},
	{"no-announcements", func(v *chart.Values) {
		v.Network.LoadBalancers.Announce = cluster.AnnounceNone
	}},
	{"wireguard", func(v *chart.Values) { v.Cilium.Encryption = cluster.EncryptionWireGuard }},
	{"edt", func(v *chart.Values) { v.Cilium.BandwidthManager = cluster.BandwidthEDT }},
	{"mesh", meshed},
	{"everything", func(v *chart.Values) {
		dualStack(v)
		v.Cilium.Routing, v.Cilium.Masquerade, v.Cilium.BandwidthManager = cluster.RoutingNative, cluster.MasqueradeBPF, cluster.BandwidthBBR
		v.Cilium.GatewayAPI = true
		meshed(v)
		v.Cilium.Hubble = hubble(true, true, true)
		v.Cilium.Encryption = cluster.EncryptionWireGuard
	}},
}

func meshed(v *chart.Values) {
	v.Mesh = cluster.Mesh{
		Peers:    []string{"apps"},
		Clusters: []cluster.Peer{{Stack: "apps", Name: "apps", ID: 2, Nodes: 3, Address: netip.MustParseAddr("10.25.12.100")}},
	}
}

func dualStack(v *chart.Values) {
	v.Network.IPv6 = &cluster.IPv6{PodCIDR: netip.MustParsePrefix("fd00:10:244::/56")}
}

func hubble(enabled, relay, ui bool) cluster.Hubble {
	return cluster.Hubble{Enabled: enabled, Relay: &relay, UI: ui}
}

func (v variant) values() chart.Values {
	c := cluster.New("infra")
	c.Identity = cluster.Identity{Name: "infra", ID: 1}
	c.Network.PodCIDR = netip.MustParsePrefix("10.244.0.0/16")
	c.Network.LoadBalancers = cluster.LoadBalancers{
		Start: netip.MustParseAddr("10.25.11.100"), Stop: netip.MustParseAddr("10.25.11.150"), Mesh: netip.MustParseAddr("10.25.11.100"),
		Announce: cluster.AnnounceL2,
	}
	c.Cilium.GatewayAPI, c.Cilium.Hubble = false, hubble(true, true, false)
	values := chart.Values{Cluster: c}
	v.set(&values)
	return values
}

// called is the variant of that name.
func called(t *testing.T, name string) variant {
	t.Helper()
	for _, v := range variants {
		if v.name == name {
			return v
		}
	}
	t.Fatalf("no variant %q", name)
	return variant{}
}

// documents stand for certificates and keys, each for itself, so that a mix-up shows. The chart has no values for those of mesh local.
var documents = map[string]string{
	chart.PathCA:                            "the CA",
	"hubble.tls.server.cert":                "server cert",
	"hubble.tls.server.key":                 "server key",
	"hubble.relay.tls.client.cert":          "relay cert",
	"hubble.relay.tls.client.key":           "relay key",
	"clustermesh.apiserver.tls.server.cert": "mesh server cert",
	"clustermesh.apiserver.tls.server.key":  "mesh server key",
	"clustermesh.apiserver.tls.admin.cert":  "mesh admin cert",
	"clustermesh.apiserver.tls.admin.key":   "mesh admin key",
	"clustermesh.apiserver.tls.remote.cert": "mesh remote cert",
	"clustermesh.apiserver.tls.remote.key":  "mesh remote key",
	"slipway.local.cert":                    "mesh local cert",
	"slipway.local.key":                     "mesh local key",
}

// complete returns the chart's values with documents.
func complete(values chart.Values) (map[string]any, error) {
	return values.Tree(values.Documents(func(path string) any { return base64.StdEncoding.EncodeToString([]byte(documents[path])) }))
}

// object is a Kubernetes object, by dotted path.
type object map[string]any

func (o object) at(path string) any {
	var at any = map[string]any(o)
	for key := range strings.SplitSeq(path, ".") {
		below, _ := at.(map[string]any)
		at = below[key]
	}
	return at
}

func (o object) text(path string) string { text, _ := o.at(path).(string); return text }

// id is what an object is found by: kind, namespace, name.
func (o object) id() string {
	return fmt.Sprintf("%s %s/%s", o.text("kind"), o.text("metadata.namespace"), o.text("metadata.name"))
}

// decode takes a YAML stream apart, in its order.
func decode(t *testing.T, stream string) (objects []object) {
	t.Helper()
	for document := range strings.SplitSeq("\n"+stream, "\n---\n") {
		var o object
		require.NoError(t, yaml.Unmarshal([]byte(document), &o))
		if len(o) != 0 {
			objects = append(objects, o)
		}
	}
	require.NotEmpty(t, objects)
	return objects
}

// rendered are the objects of inline mode.
func (v variant) rendered(t *testing.T) []object {
	t.Helper()
	return decode(t, v.manifests(t))
}

// manifests are the objects of inline mode as the machines get them.
func (v variant) manifests(t *testing.T) string {
	t.Helper()
	stream, _ := streams.LoadOrStore(v.name, sync.OnceValues(func() (string, error) { return v.render(t) }))
	text, err := stream.(func() (string, error))()
	require.NoError(t, err)
	return text
}

// render renders the objects of inline mode anew.
func (v variant) render(t *testing.T) (string, error) {
	t.Helper()
	blank, err := v.values().Blank()
	if err != nil {
		return "", err
	}
	release, err := install(blank)
	if err != nil {
		return "", err
	}
	manifests, err := v.values().Check(answered(t, release.Manifest))
	if err != nil {
		return "", err
	}
	return manifests.Fill(documents)
}

// streams are what the variants render, each once.
var streams sync.Map

// answered are the objects as the Kubernetes provider answers with them: nothing that is null, and the release's namespace for
// all kinds that it does not know to have none.
func answered(t *testing.T, manifest string) (objects []map[string]any) {
	t.Helper()
	known := map[string]bool{"Namespace": true, "ClusterRole": true, "ClusterRoleBinding": true}
	for _, o := range decode(t, manifest) {
		o := withoutNulls(map[string]any(o)).(map[string]any)
		metadata := o["metadata"].(map[string]any)
		if kind := o["kind"].(string); metadata["namespace"] == nil && !known[kind] {
			metadata["namespace"] = chart.ReleaseNamespace
		}
		objects = append(objects, o)
	}
	return objects
}

// withoutNulls is a copy of a tree without the entries of maps that are null.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		copied := map[string]any{}
		for key, below := range value {
			if below != nil {
				copied[key] = withoutNulls(below)
			}
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for i, element := range value {
			copied[i] = withoutNulls(element)
		}
		return copied
	}
	return value
}

// one is the object of that kind and name.
func one(t *testing.T, objects []object, kind, name string) object {
	t.Helper()
	for _, o := range objects {
		if o.text("kind") == kind && o.text("metadata.name") == name {
			return o
		}
	}
	t.Fatalf("no %s %s", kind, name)
	return nil
}
