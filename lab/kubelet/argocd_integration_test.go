package kubelet

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-platform/slipway/lab/ca"
	"github.com/slipway-platform/slipway/lab/git"
	"github.com/slipway-platform/slipway/lab/kube/kubetest"
	"github.com/slipway-platform/slipway/lab/network"
	"github.com/slipway-platform/slipway/lab/registry/charts"
	"github.com/slipway-platform/slipway/lab/workload"
	"github.com/slipway-platform/slipway/lab/workload/argocd"
)

// argoTree is the repository of the test: plain objects, a chart, and a tree for the plugin.
var argoTree = map[string]string{
	"plain/all.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: plain}
data: {a: b}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: pause}
spec:
  selector: {matchLabels: {app: pause}}
  template:
    metadata: {labels: {app: pause}}
    spec: {containers: [{name: pause, image: "registry.k8s.io/pause:3.10"}]}
`,
	"chart/Chart.yaml":        "apiVersion: v2\nname: c\nversion: 0.1.0\n",
	"chart/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart}\ndata: {v: {{ .Values.v | quote }}}\n",
	"chart/values.yaml":       "v: from the chart\n",
	"plugin/kustomization.yaml": "configMapGenerator: [{name: plugin, literals: ['cluster=${CLUSTER}', 'other=${OTHER}']}]\n" +
		"generatorOptions: {disableNameSuffixHash: true}\n",
}

// argoPlugin is a plugin as Slipway has one: Kustomize, and settings from the files of a ConfigMap.
const argoPlugin = `set -eu -o pipefail
kustomize build . | perl -pe 's{\$\{(\w+)\}}{do { if (open(my $f, "<", "$ENV{SETTINGS_DIR}/$1")) { local $/; <$f> } else { $& } }}ge'
`

func argoValues() map[string]any {
	off := map[string]any{"enabled": false}
	list := func(objects ...map[string]any) (all []any) {
		for _, o := range objects {
			all = append(all, o)
		}
		return all
	}
	mount := func(name, path string) map[string]any { return map[string]any{"name": name, "mountPath": path} }
	plugin := mount("plugin", "/home/argocd/cmp-server/config/plugin.yaml")
	plugin["subPath"] = "settings.yaml"
	return map[string]any{
		"dex": off, "notifications": off,
		"redis": map[string]any{"readinessProbe": map[string]any{"enabled": true}},
		"configs": map[string]any{
			"cm": map[string]any{"timeout.reconciliation": "10s"},
			"cmp": map[string]any{"create": true, "plugins": map[string]any{"settings": map[string]any{
				"generate": map[string]any{"command": []any{"bash", "-c", argoPlugin}},
			}}},
		},
		"repoServer": map[string]any{
			"extraContainers": list(map[string]any{
				"name": "settings", "image": "quay.io/argoproj/argocd:v3.5.2", "command": []any{"/var/run/argocd/argocd-cmp-server"},
				"env": list(map[string]any{"name": "SETTINGS_DIR", "value": "/settings"}),
				"volumeMounts": list(mount("var-files", "/var/run/argocd"), mount("plugins", "/home/argocd/cmp-server/plugins"), plugin,
					mount("settings", "/settings"), mount("plugin-tmp", "/tmp")),
			}),
			"volumes": list(
				map[string]any{"name": "plugin", "configMap": map[string]any{"name": "argocd-cmp-cm"}},
				map[string]any{"name": "settings", "configMap": map[string]any{"name": "settings"}},
				map[string]any{"name": "plugin-tmp", "emptyDir": map[string]any{}},
			),
		},
	}
}

// serveArgoTree serves the tree over HTTPS with a password, and returns its URL and the file with the CA.
func serveArgoTree(t *testing.T, link *network.Link) (url, authorities string) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range argoTree {
		require.NoError(t, os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "--all"},
		{"-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message=x"},
	} {
		c := exec.CommandContext(t.Context(), "git", args...)
		c.Dir = folder
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	server := &git.Server{Checkout: folder, Dir: filepath.Join(t.TempDir(), "r.git"), Path: "/r.git", Branches: []string{"main"},
		Username: "git", Password: "s3cret", Log: slog.New(slog.DiscardHandler)}
	handler, err := server.Handler(t.Context())
	require.NoError(t, err)
	authority, err := ca.New("lab")
	require.NoError(t, err)
	authorities = filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(authorities, authority.PEM(), 0o600))
	address := netip.MustParseAddr("198.18.0.1")
	require.NoError(t, link.Add(netip.PrefixFrom(address, address.BitLen())))
	listener, err := net.Listen("tcp", netip.AddrPortFrom(address, 443).String())
	require.NoError(t, err)
	https := &http.Server{Handler: handler, TLSConfig: authority.Server()}
	go func() { _ = https.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = https.Close() })
	return "https://198.18.0.1/r.git", authorities
}

func startArgo(t *testing.T, link *network.Link, authorities string) *linkedCluster {
	t.Helper()
	programs := map[string]string{}
	for _, name := range []string{"argo-cd", "helm", "kustomize", "redis"} {
		programs[name] = kubetest.Binary(t, name)
	}
	api := netip.MustParsePrefix("10.25.11.10/24")
	require.NoError(t, link.Add(api))
	s := &linkedCluster{}
	s.real = startPlaneAt(t, planeOptions{advertise: api.Addr(), link: link,
		endpoint:  "https://" + netip.AddrPortFrom(api.Addr(), 6443).String(),
		workloads: withCRDs(t, workload.Registry{Images: argocd.Images(programs, data(t, "argo-cd"), authorities)})})
	stop, err := s.plane.Serve(api.Addr(), nil)
	require.NoError(t, err)
	t.Cleanup(stop)
	for name, address := range map[string]string{"infra-cp-1": "10.25.11.11/24", "infra-worker-1": "10.25.11.21/24"} {
		p := netip.MustParsePrefix(address)
		require.NoError(t, link.Add(p))
		_, err := s.Start(t.Context(), NodeOptions{Name: name, Addresses: []netip.Addr{p.Addr()}, ControlPlane: name == "infra-cp-1",
			TalosVersion: "v1.12.7", KubernetesVersion: kubetest.Version, BootID: "1"})
		require.NoError(t, err)
	}
	s.deploy(t)
	s.dynamic, err = dynamic.NewForConfig(s.rest)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			s.tellArgo(t)
		}
	})
	return s
}

var applications = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}

// tellArgo logs the state of Argo CD's pods and applications, and the ends of the pods' logs.
func (s *linkedCluster) tellArgo(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	pods, err := s.api.CoreV1().Pods("argocd").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Log(err)
		return
	}
	for _, pod := range pods.Items {
		for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			state, _ := json.Marshal(c.State)
			t.Logf("%s %s ready=%t restarts=%d %s", pod.Name, c.Name, c.Ready, c.RestartCount, state)
			log, _ := os.ReadFile(s.logPath(&pod, c.Name, c.RestartCount))
			lines := strings.Split(string(log), "\n")
			t.Log(strings.Join(lines[max(0, len(lines)-15):], "\n"))
		}
	}
	if list, err := s.dynamic.Resource(applications).Namespace("argocd").List(ctx, metav1.ListOptions{}); err == nil {
		for _, a := range list.Items {
			status, _ := json.Marshal(a.Object["status"])
			t.Logf("%s %s", a.GetName(), status)
		}
	}
}

// synced tells whether an application is synced and healthy.
func (s *linkedCluster) synced(t *testing.T, name string) bool {
	a, err := s.dynamic.Resource(applications).Namespace("argocd").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return false
	}
	sync, _, _ := unstructured.NestedString(a.Object, "status", "sync", "status")
	health, _, _ := unstructured.NestedString(a.Object, "status", "health", "status")
	return sync == "Synced" && health == "Healthy"
}

func TestArgoCD_SyncsATreeAChartAndAPlugin(t *testing.T) {
	source := data(t, "argo-cd-chart")
	if !inNamespaces(t) {
		return
	}
	link, err := network.NewLink()
	require.NoError(t, err)
	url, authorities := serveArgoTree(t, link)
	s := startArgo(t, link, authorities)
	archive, err := charts.ArgoCD(t.TempDir(), filepath.Join(source, "chart"))
	require.NoError(t, err)
	began := time.Now()
	s.install(t, archive, "argocd", "argocd", argoValues())
	require.NoError(t, s.apply(t, objects(t, `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: argocd}
data: {CLUSTER: infra}
---
apiVersion: v1
kind: Secret
metadata: {name: tree, namespace: argocd, labels: {argocd.argoproj.io/secret-type: repository}}
stringData: {type: git, url: "`+url+`", username: git, password: s3cret}
`)...))
	s.available(t, "argocd", "argocd-redis", "argocd-repo-server", "argocd-server", "argocd-applicationset-controller")
	s.eventually(t, "the application controller is ready", func() bool {
		set, err := s.api.AppsV1().StatefulSets("argocd").Get(t.Context(), "argocd-application-controller", metav1.GetOptions{})
		return err == nil && set.Status.ReadyReplicas == 1
	})
	t.Logf("all pods are ready after %s", time.Since(began).Round(time.Millisecond))

	began = time.Now()
	for name, more := range map[string]string{"plain": "", "chart": "", "plugin": ", plugin: {name: settings}"} {
		require.NoError(t, s.apply(t, objects(t, `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: `+name+`, namespace: argocd}
spec:
  project: default
  destination: {server: "https://kubernetes.default.svc", namespace: default}
  source: {repoURL: "`+url+`", targetRevision: main, path: `+name+more+`}
  syncPolicy: {automated: {selfHeal: true}, syncOptions: [ServerSideApply=true]}
`)...))
	}
	for _, name := range []string{"plain", "chart", "plugin"} {
		s.eventually(t, name+" is synced and healthy", func() bool { return s.synced(t, name) })
	}
	t.Logf("all applications are synced and healthy after %s", time.Since(began).Round(time.Millisecond))
	for name, want := range map[string]map[string]string{
		"plain": {"a": "b"}, "chart": {"v": "from the chart"}, "plugin": {"cluster": "infra", "other": "${OTHER}"},
	} {
		m, err := s.api.CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, want, m.Data)
	}

	// A new pod of the repo-server has another address, and the files of its volumes follow their objects.
	require.NoError(t, s.api.CoreV1().Pods("argocd").DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=argocd-repo-server"}))
	settings, err := s.api.CoreV1().ConfigMaps("argocd").Get(t.Context(), "settings", metav1.GetOptions{})
	require.NoError(t, err)
	settings.Data["CLUSTER"] = "apps"
	_, err = s.api.CoreV1().ConfigMaps("argocd").Update(t.Context(), settings, metav1.UpdateOptions{})
	require.NoError(t, err)
	s.eventually(t, "the plugin has read the new settings", func() bool {
		s.refresh(t, "plugin")
		m, err := s.api.CoreV1().ConfigMaps("default").Get(t.Context(), "plugin", metav1.GetOptions{})
		return err == nil && m.Data["cluster"] == "apps"
	})
	s.eventually(t, "the plugin's application is synced again", func() bool { return s.synced(t, "plugin") })
}

// refresh asks for a comparison without caches, unless one is due already.
func (s *linkedCluster) refresh(t *testing.T, name string) {
	t.Helper()
	const annotation = "argocd.argoproj.io/refresh" // Argo CD removes it
	api := s.dynamic.Resource(applications).Namespace("argocd")
	a, err := api.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	if a.GetAnnotations()[annotation] != "" {
		return
	}
	_, err = api.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+annotation+`":"hard"}}}`),
		metav1.PatchOptions{})
	require.NoError(t, err)
}
