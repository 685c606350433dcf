package workload

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
)

func TestImage_LeavesOutArgumentsOfNewerImages(t *testing.T) {
	image := Image{Unknown: []string{"--cache-ttl", "--default"}}
	require.Equal(t, []string{"mesh", "--name=infra", "--default-qps=5"},
		image.command([]string{"mesh", "--cache-ttl=0s", "--name=$(NAME)", "--default", "--default-qps=5"}, map[string]string{"NAME": "infra"}))
}

func TestImage_SaysWhatThisMachinesProgramsCallOtherwise(t *testing.T) {
	image := Image{Other: map[string]string{"--update=none": "--update"}}
	require.Equal(t, []string{"sh", "-c", "cp --update a b"}, image.command([]string{"sh", "-c", "cp --update=none a b"}, nil))
}

func TestImage_NeedsACommandUnlessItsEntrypointRunsArguments(t *testing.T) {
	for _, one := range []struct {
		image   Image
		command []string
		args    []string
		want    string
	}{
		{Image{}, nil, []string{"/serve"}, "the lab does not know the image's"},
		{Image{Entrypoint: []string{}}, nil, nil, "the lab does not know the image's"},
		{Image{Entrypoint: []string{}}, nil, []string{"/serve"}, "token of service account"}, // it comes as far as the cluster, which has nothing
		{Image{}, []string{"/serve"}, nil, "token of service account"},
	} {
		c := container(cluster(), "cp-1", "main", "example.com/x")
		c.Network, c.Dir, c.Spec.Command, c.Spec.Args = "/proc/self/ns/net", t.TempDir(), one.command, one.args
		_, err := one.image.start(t.Context(), nil, c)
		require.ErrorContains(t, err, one.want)
	}
}

func TestRegistry_KnowsAnImageByTheLastElementsOfItsName(t *testing.T) {
	r := Registry{Images: map[string]Image{"library/redis": {}, "talos-backup": {}}}
	for image, want := range map[string]bool{
		"ecr-public.aws.com/docker/library/redis:8": true, "library/redis": true, "ghcr.io/siderolabs/talos-backup:v1": true,
		"bitnami/redis": false, "example.com/my-library/redis": false, "library/redis-exporter": false,
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}
		require.Equal(t, want, r.Isolated(pod), image)
	}
}

func TestMountedVolumes_ShowsPartsOfVolumesAndWhatSeveralMountsShare(t *testing.T) {
	c := container(cluster(), "cp-1", "main", "example.com/x")
	c.Cluster.Client = fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: namespace},
		Data: map[string]string{"a.yaml": "one", "run.sh": "exit 0"}})
	c.Dir = t.TempDir()
	executable := int32(0o755)
	c.Pod.Spec.Volumes = []corev1.Volume{
		{Name: "files", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "m"}, DefaultMode: &executable}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	c.Spec.VolumeMounts = []corev1.VolumeMount{
		{Name: "files", MountPath: "/all"}, {Name: "files", MountPath: "/etc/a.yaml", SubPath: "a.yaml"},
		{Name: "scratch", MountPath: "/cache", SubPath: "cache/one"}, {Name: "files", MountPath: accountFolder},
	}
	mounts, err := mountedVolumes(t.Context(), c, "/account")
	require.NoError(t, err)
	require.Equal(t, "/account", mounts[accountFolder])
	text, err := os.ReadFile(mounts["/etc/a.yaml"])
	require.NoError(t, err)
	require.Equal(t, "one", string(text))
	require.DirExists(t, mounts["/cache"])
	info, err := os.Stat(filepath.Join(mounts["/all"], "run.sh"))
	require.NoError(t, err)
	require.EqualValues(t, 0o700, info.Mode().Perm())

	for _, bad := range []corev1.VolumeMount{{Name: "scratch", SubPath: "../other"}, {Name: "scratch", SubPathExpr: "$(POD)"}} {
		c.Spec.VolumeMounts = []corev1.VolumeMount{bad}
		_, err = mountedVolumes(t.Context(), c, "/account")
		require.Error(t, err)
	}
}

func TestProbe_AsksByHTTPSAndByCommandAsAKubeletDoes(t *testing.T) {
	var healthy atomic.Bool
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" || !healthy.Load() {
			http.Error(w, "no", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(at.Port())
	require.NoError(t, err)
	for name, of := range map[string]corev1.ProbeHandler{
		"https":   {HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt(port), Scheme: corev1.URISchemeHTTPS}},
		"command": {Exec: &corev1.ExecAction{Command: []string{"check", "it"}}},
	} {
		healthy.Store(false)
		c := container(cluster(), "cp-1", "main", "example.com/x")
		c.PodIP, c.Spec.ReadinessProbe = netip.MustParseAddr("127.0.0.1"), &corev1.Probe{ProbeHandler: of}
		i, ctx := NewInstance(t.Context())
		ended := make(chan struct{})
		i.OnExec = func(_ context.Context, cmd []string, _ io.Reader, _, _ io.Writer) (int, error) {
			if len(cmd) != 2 || !healthy.Load() {
				return 1, nil
			}
			return 0, nil
		}
		passes, err := Program{}.readiness(c, i)
		require.NoError(t, err)
		require.False(t, passes(ctx), name)
		go func() {
			Program{}.probe(ctx, c, i)
			close(ended)
		}()
		require.False(t, i.Ready(), name)
		healthy.Store(true)
		require.Eventually(t, i.Ready, time.Minute, time.Millisecond, name)
		i.Exit(0)
		<-ended
	}
}
