package argocd

import (
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/lab/tools"
	"github.com/slipway-platform/slipway/lab/workload"
)

func start(t *testing.T, programs map[string]string, image string, args ...string) error {
	t.Helper()
	c := workload.Container{
		Cluster: &workload.Cluster{Name: "infra", Client: fake.NewClientset(), Log: slog.New(slog.DiscardHandler)},
		PodIP:   netip.MustParseAddr("10.244.0.10"), Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "argocd"}},
		Spec: corev1.Container{Name: "main", Image: image, Args: args}, Log: io.Discard, Dir: t.TempDir(),
	}
	r := workload.Registry{Images: Images(programs, "/data", "/ca.crt")}
	_, err := r.Find(c)(t.Context(), c)
	return err
}

func TestImages_AContainerWhoseProgramsAreNotBuiltNamesTheCommand(t *testing.T) {
	all := map[string]string{"argo-cd": "/a", "helm": "/h", "kustomize": "/k", "redis": "/r"}
	for image, needs := range map[string][]string{
		"quay.io/argoproj/argocd:v3.5.2":                               {"argo-cd", "helm", "kustomize"},
		"ecr-public.aws.com/docker/library/redis:8.6.4-alpine":         {"redis"},
		"registry.home.arpa/mirror/argoproj/argocd:v3.5.2@sha256:0123": {"argo-cd"},
	} {
		for _, tool := range needs {
			some := map[string]string{}
			for name, path := range all {
				if name != tool {
					some[name] = path
				}
			}
			require.EqualError(t, start(t, some, image, "--x"), "the lab runs the real programs of image "+image+
				", and they are not built; build them, and start the lab again: lab tools argo-cd argo-cd-chart helm kustomize redis")
		}
		require.ErrorContains(t, start(t, all, image, "--x"), "its pod has no network namespace", "the programs are there")
	}
	require.NoError(t, start(t, nil, "quay.io/argoproj/argocli:v3"), "another image")
}

func TestImages_AreBuiltByTheCommandThatTheyName(t *testing.T) {
	for _, name := range []string{"argo-cd", chart, "helm", "kustomize", "redis"} {
		require.Contains(t, Build+" ", " "+name+" ")
		_, err := tools.Find(name)
		require.NoError(t, err)
	}
}

func TestImages_HaveEveryPartOfArgoCDAndThisMachinesPrograms(t *testing.T) {
	authorities := filepath.Join(t.TempDir(), "ca.crt")
	images := Images(map[string]string{"argo-cd": "/cache/argo-cd", "helm": "/cache/helm", "redis": "/cache/redis"}, "/data", authorities)
	files := images[image].Files
	for path, want := range map[string]string{
		"/usr/local/bin/argocd": "/cache/argo-cd", "/usr/local/bin/argocd-repo-server": "/cache/argo-cd",
		"/usr/local/bin/argocd-notifications": "/cache/argo-cd", "/usr/local/bin/helm": "/cache/helm",
		"/usr/local/bin/git-verify-wrapper.sh": "/data/git-verify-wrapper.sh",
		"/etc/ssl/certs/ca-certificates.crt":   authorities, "/usr/bin": "/usr/bin",
	} {
		require.Equal(t, want, files[path], path)
	}
	for path, source := range files {
		if path == source && path != authorities {
			_, err := os.Stat(path)
			require.NoError(t, err)
		}
	}
	require.Equal(t, "/cache/redis", images[redisImage].Files["/usr/local/bin/redis-cli"])
}
