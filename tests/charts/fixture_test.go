package charts

import (
	"bytes"
	"cmp"
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
	"golang.org/x/mod/semver"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/cilium/chart"
)

const kubernetesVersion = "v1.36.6"

// versions are the charts of the minor releases that the product installs, the nearest that can be had of each.
var versions = []string{"1.18.7", "1.19.0", "1.20.2"}

// moduleOf returns the folder of a Go module with charts, in the version that another module requires. Go downloads it if needed.
func moduleOf(of, name string) (string, error) {
	command := exec.Command("go", "mod", "download", "-json", name)
	command.Dir = of
	command.Env = append(os.Environ(), "GOWORK=off")
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go mod download: %w: %s", err, out)
	}
	var module struct{ Dir string }
	err = json.Unmarshal(out, &module)
	return module.Dir, err
}

// inLab is the module with the charts that the lab pins.
const inLab = "../../lab/tools/cilium"

// charts is the folder with Cilium's charts, as the chart repository serves them, and sources the folder of a newer chart's sources.
var (
	charts  = sync.OnceValues(func() (string, error) { return moduleOf(inLab, "github.com/cilium/charts") })
	sources = sync.OnceValues(func() (string, error) {
		dir, err := moduleOf(inLab, "github.com/cilium/cilium")
		return filepath.Join(dir, "install", "kubernetes", "cilium"), err
	})
)

// loaded are the charts as Helm reads them, by version.
var loaded sync.Map

// chartOf returns the chart of a version. Of the newest minor release, there is one chart for all its patch releases.
func chartOf(version string) (*helmchart.Chart, error) {
	load, _ := loaded.LoadOrStore(version, sync.OnceValues(func() (*helmchart.Chart, error) {
		folder, err := charts()
		if err != nil {
			return nil, err
		}
		raw, err := os.ReadFile(filepath.Join(folder, "cilium-"+version+".tgz"))
		if err == nil {
			return loader.LoadArchive(bytes.NewReader(raw))
		}
		if folder, err = sources(); err != nil {
			return nil, err
		}
		chart, err := loader.LoadDir(folder)
		if err == nil && semver.MajorMinor("v"+chart.Metadata.Version) != semver.MajorMinor("v"+version) {
			err = fmt.Errorf("no chart %s", version)
		}
		return chart, err
	}))
	return load.(func() (*helmchart.Chart, error))()
}

// theChart is the one that the product installs.
func theChart() (*helmchart.Chart, error) { return chartOf(cluster.New("").Cilium.Version) }

// read is the chart that all tests are about.
func read(t *testing.T) *helmchart.Chart {
	t.Helper()
	chart, err := theChart()
	require.NoError(t, err)
	return chart
}

// variant is a cluster with one choice other than the default, or all that go together.
type variant struct {
	name    string
	set     func(*chart.Values)
	version string // of Cilium; "" means the default
}

func (v variant) String() string { return strings.TrimSpace(v.version + " " + v.name) }

// everyMinor are the variants with each of the versions.
func everyMinor() (all []variant) {
	for _, version := range versions {
		for _, v := range variants {
			v.version = version
			all = append(all, v)
		}
	}
	return all
}

var variants = []variant{
	{name: "default", set: func(*chart.Values) {}},
	{name: "dual-stack", set: dualStack},
	{name: "native", set: func(v *chart.Values) { v.Cilium.Routing = cluster.RoutingNative }},
	{name: "bpf", set: func(v *chart.Values) { v.Cilium.Masquerade = cluster.MasqueradeBPF }},
	{name: "gateway", set: func(v *chart.Values) { v.Cilium.GatewayAPI = true }},
	{name: "no-hubble", set: func(v *chart.Values) { v.Cilium.Hubble = hubble(false, false, false) }},
	{name: "no-relay", set: func(v *chart.Values) { v.Cilium.Hubble = hubble(true, false, false) }},
	{name: "hubble-ui", set: func(v *chart.Values) { v.Cilium.Hubble = hubble(true, true, true) }},
	{name: "bgp", set: func(v *chart.Values) { v.Network.LoadBalancers.Announce = cluster.AnnounceBGP }},
	{name: "no-announcements", set: func(v *chart.Values) {
		v.Network.LoadBalancers.Announce = cluster.AnnounceNone
	}},
	{name: "wireguard", set: func(v *chart.Values) { v.Cilium.Encryption = cluster.EncryptionWireGuard }},
	{name: "edt", set: func(v *chart.Values) { v.Cilium.BandwidthManager = cluster.BandwidthEDT }},
	{name: "mesh", set: meshed},
	{name: "everything", set: func(v *chart.Values) {
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
	c.Cilium.Version = cmp.Or(v.version, c.Cilium.Version)
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

// documents stand for certificates and keys, each for itself, so that a mix-up shows. The chart takes none of the mesh.
var documents = map[string]string{
	chart.PathCA:                   "the CA",
	"hubble.tls.server.cert":       "server cert",
	"hubble.tls.server.key":        "server key",
	"hubble.relay.tls.client.cert": "relay cert",
	"hubble.relay.tls.client.key":  "relay key",
	"slipway.mesh-server.cert":     "mesh server cert",
	"slipway.mesh-server.key":      "mesh server key",
	"slipway.mesh-admin.cert":      "mesh admin cert",
	"slipway.mesh-admin.key":       "mesh admin key",
	"slipway.mesh-remote.cert":     "mesh remote cert",
	"slipway.mesh-remote.key":      "mesh remote key",
	"slipway.mesh-local.cert":      "mesh local cert",
	"slipway.mesh-local.key":       "mesh local key",
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
	stream, _ := streams.LoadOrStore(v.String(), sync.OnceValues(func() (string, error) { return v.render(t) }))
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
	release, err := install(v.values().Cilium.Version, blank)
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
