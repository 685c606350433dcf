package releases_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster/releases"
)

// pin is a release that users run because Slipway names it.
type pin struct {
	name     string // of releases.All, if its project is there
	dep      string // depName in the comment for Renovate above the pin, module in go.mod, or "" for the tree
	in       string // pattern in the tree whose group is the release
	lab      string // what the lab runs
	compared string // what compares the pin with its own sources
}

// same is what the lab runs if it runs the pin itself.
const same = "the same"

// pins are all pins, but for those of the lab and of the pipelines.
var pins = []pin{
	{"Talos", "siderolabs/talos", "", "simulated after 1.12.6 to 1.14.1; the real 1.13.9 and 1.14.1 in `make real-talos`",
		"`lab/talos/testdata/real`; machinery 1.13.9 checks each configuration"},
	{"Kubernetes", "kubernetes/kubernetes", "", "1.36.4, a patch release before; 1.35.8 and 1.37.2 in `make minors`",
		"removed flags, feature gates and plugins: go-kubernetes, and the components of 1.35 to 1.37 themselves"},
	{"Cilium", "cilium", "", "chart and CRDs of the same; simulated agents; mesh servers of 1.18.6", "`tests/charts`"},
	{"Gateway API", "kubernetes-sigs/gateway-api", "", same, "`tests/tree`: each object against the CRDs"},
	{"Flux", "fluxcd/flux2", "", "its controllers, as programs", "`tests/tree`: each object against the CRDs"},
	{"flux-operator", "ghcr.io/controlplaneio-fluxcd/charts/flux-operator", "", "the program; a chart of the lab", "lab: real CRDs"},
	{"Argo CD (chart)", "argo-cd", "", "the same, without high availability; Argo CD 3.5.2, which it installs, on demand", "`tests/charts`"},
	{"cert-manager", "cert-manager", "", "chart and CRDs; the controllers behind a main of the lab", "`tests/tree`"},
	{"External Secrets", "external-secrets", "", "0.20.4", "`tests/tree`: the values and the objects that Slipway writes, and the CRDs"},
	{"1Password Connect", "connect", "", "simulated; a chart of the lab", "the keys of its values: `cluster/chartkeys`"},
	{"sealed-secrets (chart)", "sealed-secrets", "", "chart and controller 0.40.0", "`tests/tree`"},
	{"CoreDNS (chart)", "coredns", "", "a chart of the lab", "the keys of its values: `cluster/chartkeys`"},
	{"Spegel (chart)", "ghcr.io/spegel-org/helm-charts/spegel", "", "a chart of the lab", "the keys of its values: `cluster/chartkeys`"},
	{"Rook", "rook/rook", "", "charts and CRDs; simulated operator", "`tests/tree`: charts, CRDs and objects"},
	{"ceph-csi-operator", "ceph/ceph-csi-operator", "", "chart and CRDs; simulated operator", "`tests/tree`"},
	{"Ceph", "", `image: quay\.io/ceph/ceph:v(\S+)`, "simulated", "the key types that kernels mount: `tests/tree`"},
	{"CloudNativePG", "cloudnative-pg/cloudnative-pg", "", "CRDs; a chart of the lab", "`tests/tree`: each object against the CRDs"},
	{"VictoriaMetrics operator", "VictoriaMetrics/operator", "", "CRDs; a chart of the lab", "`tests/tree`: each object against the CRDs"},
	{"Prometheus operator (CRDs)", "prometheus-operator/prometheus-operator", "", same, "`tests/tree`"},
	{"talos-backup", "", `image: ghcr\.io/siderolabs/talos-backup:v(\S+)`, "a stand-in", "–"},
	{"local-path-provisioner", "", `image: docker\.io/rancher/local-path-provisioner:v(\S+)`, "–", "–"},
	{"BusyBox, its helper", "", `image: docker\.io/library/busybox:(\S+)`, "–", "–"},
	{"metrics-server", "", `tag: v(\S+)`, "–", "`tests/tree`: chart, values and objects"},
	{"kubelet-serving-cert-approver", "", `image: ghcr\.io/alex1989hu/kubelet-serving-cert-approver:(\S+)`, "–", "–"},
	{"Pulumi's SDK and CLI", "github.com/pulumi/pulumi/sdk/v3", "", same, "–"},
	{"Proxmox plugin", "github.com/muhlba91/pulumi-proxmoxve/sdk/v7", "",
		"bpg 0.111.1, and 0.66.0 in `make brackets`; the plugin has 0.95.0", "`tests/plugins`: both schemas, field by field"},
	{"Proxmox SDK", "github.com/muhlba91/pulumi-proxmoxve/sdk/v6", "", same, "`tests/plugins`"},
	{"Kubernetes plugin", "github.com/pulumi/pulumi-kubernetes/sdk/v4", "", same, "–"},
	{"Talos plugin", "github.com/pulumiverse/pulumi-talos/sdk", "", "terraform-provider-talos 0.7.1; the plugin has 0.10.1", "`tests/charts`"},
	{"TLS plugin", "github.com/pulumi/pulumi-tls/sdk/v5", "", "a stand-in", "–"},
	{"Command plugin", "github.com/pulumi/pulumi-command/sdk", "", "a stand-in", "–"},
}

var (
	annotation = regexp.MustCompile(`// renovate: datasource=\S+ depName=(\S+).*\n.*?"v?(\d[^"]*)"`)
	direct     = regexp.MustCompile(`(?m)^\t(\S*/pulumi\S*) v(\S+)$`)
)

// pinned returns the pins of the program, by their depNames, and the text of the tree.
func pinned(t *testing.T) (found map[string]string, tree string) {
	t.Helper()
	list, err := exec.CommandContext(t.Context(), "git", "ls-files",
		"../../cluster", "../../components", "../../go.mod", "../../kubernetes").Output()
	require.NoError(t, err)
	found = map[string]string{}
	for _, path := range strings.Fields(string(list)) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		text := string(data)
		switch {
		case strings.HasSuffix(path, "_test.go"):
		case strings.HasPrefix(path, "../../kubernetes"):
			tree += text
		default:
			for _, pattern := range []*regexp.Regexp{annotation, direct} {
				for _, match := range pattern.FindAllStringSubmatch(text, -1) {
					found[match[1]] = match[2]
				}
			}
		}
	}
	return found, tree
}

// pinTable writes the pins as Markdown. Each pin of the code must have a row.
func pinTable(t *testing.T) string {
	t.Helper()
	found, tree := pinned(t)
	var text strings.Builder
	text.WriteString("\n| | Slipway pins | supported until, or as | the lab runs | compared with its sources by |\n" +
		"| --- | --- | --- | --- | --- |\n")
	for _, one := range pins {
		version := found[one.dep]
		if one.dep == "" {
			match := regexp.MustCompile(one.in).FindStringSubmatch(tree)
			require.NotNil(t, match, one.name)
			version = match[1]
		}
		require.NotEmpty(t, version, "%s: the code has no pin of %s", one.name, one.dep)
		delete(found, one.dep)
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", one.name, version, until(t, one.name, version), one.lab, one.compared)
	}
	require.Empty(t, found, "pins without a row in the table")
	return text.String() + "\n"
}

// until returns until when a pin is supported, as the table of releases has it.
func until(t *testing.T, name, version string) string {
	t.Helper()
	at := slices.IndexFunc(releases.All, func(p releases.Project) bool { return p.Name == name })
	if at < 0 {
		return "–"
	}
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	known := slices.IndexFunc(releases.All[at].Minors, func(m releases.Minor) bool { return m.Minor == major+"."+minor })
	require.GreaterOrEqual(t, known, 0, "%s %s is not in the table of releases", name, version)
	release := releases.All[at].Minors[known]
	ends := slices.IndexFunc(release.Notes, func(note string) bool { return strings.HasPrefix(note, "ends with ") })
	switch {
	case release.Ended != "":
		return release.Ended
	case ends >= 0:
		return release.Notes[ends]
	}
	return releases.All[at].Policy
}
