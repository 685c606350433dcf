package talos_test

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/go-pointer"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/slipway-platform/slipway/lab/bucket"
	"github.com/slipway-platform/slipway/lab/kube/kubetest"
)

// forPods gives pods access to Talos's API.
func forPods(c *v1alpha1.Config) {
	c.MachineConfig.MachineFeatures.KubernetesTalosAPIAccessConfig = &v1alpha1.KubernetesTalosAPIAccessConfig{
		AccessEnabled: pointer.To(true), AccessAllowedRoles: []string{string(role.EtcdBackup)},
		AccessAllowedKubernetesNamespaces: []string{"etcd-backup"},
	}
}

func TestAccess_FollowsTheConfigurationWithoutAReboot(t *testing.T) {
	w := newWorld(t)
	w.cluster(2, 0)
	plane := w.kube.planes[0]
	is := func(given bool, at ...netip.Addr) bool {
		w.kube.mu.Lock()
		defer w.kube.mu.Unlock()
		return (plane.access != nil) == given && len(plane.accessAt) == len(at) && len(plane.applied) > 0
	}
	named := func(host byte) bool {
		conn, err := tls.Dial("tcp", w.endpoint(host), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // only its names are read
		require.NoError(t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].VerifyHostname("talos.default") == nil
	}
	require.Nil(t, plane.access)
	require.False(t, named(11))
	apply := func(host byte, change ...func(*v1alpha1.Config)) {
		_, err := w.admin(host).ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{
			Mode: machine.ApplyConfigurationRequest_NO_REBOOT, Data: w.config(configmachine.TypeControlPlane, host, change...),
		})
		require.NoError(t, err)
	}
	manifests := len(plane.applied)
	apply(12, forPods)
	w.eventually("one control plane is enough", func() bool { return is(true, w.addr(11), w.addr(12)) })
	w.eventually("pods find the API by the name of its Service", func() bool { return named(12) })
	w.eventually("the CRD is applied", func() bool {
		w.kube.mu.Lock()
		defer w.kube.mu.Unlock()
		return len(plane.applied) > manifests
	})
	apply(12)
	w.eventually("the access ends", func() bool { return is(false) })
}

func TestAccess_TheRoleOfSnapshotsTakesThemAndChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 0)
	c := w.admin(11, role.EtcdBackup)
	r, err := c.EtcdSnapshot(w.ctx, &machine.EtcdSnapshotRequest{})
	require.NoError(t, err)
	snapshot, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "data of "+w.kube.ids()[0], string(snapshot))
	_, err = c.EtcdStatus(w.ctx)
	require.NoError(t, err)
	_, version := c.Version(w.ctx)
	_, services := c.ServiceList(w.ctx)
	_, applied := c.ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{Data: w.config(configmachine.TypeControlPlane, 11)})
	for _, err := range []error{version, services, applied, c.Reboot(w.ctx)} {
		require.Equal(t, codes.PermissionDenied, client.StatusCode(err), "%v", err)
	}
}

func TestAccess_TheCronJobsProgramPutsASnapshotIntoABucket(t *testing.T) {
	program := kubetest.Binary(t, "talos-backup")
	w := newWorld(t)
	w.cluster(1, 0)
	w.kube.planes[0].set(func() { w.kube.planes[0].snapshot = strings.Repeat("s", 512<<10+32) })
	in := &bucket.Inbox{Name: "etcd", AccessKey: "writer", SecretKey: "right", Folder: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	server := httptest.NewTLSServer(in.Handler())
	defer server.Close()
	folder := t.TempDir()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(filepath.Join(folder, "ca"), authority, 0o600))
	crt, err := w.input.Options.SecretsBundle.GenerateTalosAPIClientCertificateWithTTL(role.MakeSet(role.EtcdBackup), time.Hour)
	require.NoError(t, err)
	require.NoError(t, clientconfig.NewConfig("default", []string{w.endpoint(11)}, w.input.Options.SecretsBundle.Certs.OS.Crt, crt).
		Save(filepath.Join(folder, "talosconfig")))
	run := func(change ...string) (string, error) {
		c := exec.CommandContext(t.Context(), program)
		c.Dir = t.TempDir()
		c.Env = append([]string{"HOME=" + folder, "TALOSCONFIG=" + filepath.Join(folder, "talosconfig"),
			"SSL_CERT_FILE=" + filepath.Join(folder, "ca"),
			"CLUSTER_NAME=infra", "CUSTOM_S3_ENDPOINT=" + server.URL, "BUCKET=etcd", "AWS_REGION=us-east-1", "USE_PATH_STYLE=false",
			"AWS_ACCESS_KEY_ID=writer", "AWS_SECRET_ACCESS_KEY=right", "AWS_REQUEST_CHECKSUM_CALCULATION=when_required",
			"AGE_X25519_PUBLIC_KEY=age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z"}, change...)
		out, err := c.CombinedOutput()
		left, _ := os.ReadDir(c.Dir)
		require.Empty(t, left, "it tidies up")
		return string(out), err
	}
	stored := func() []string {
		files, err := filepath.Glob(filepath.Join(in.Folder, "infra", "infra-*.snap.age"))
		require.NoError(t, err)
		return files
	}
	for variable, says := range map[string]string{
		"AWS_ACCESS_KEY_ID=other":     "failed to push encrypted snapshot: failed to upload \"infra-.*api error InvalidAccessKeyId",
		"AWS_SECRET_ACCESS_KEY=wrong": "api error SignatureDoesNotMatch",
		"BUCKET=other":                "NoSuchBucket",
		"AGE_X25519_PUBLIC_KEY=":      "failed to encrypt etcd snapshot: failed to parse public key",
	} {
		out, err := run(variable)
		require.Error(t, err, variable)
		require.Regexp(t, says, out)
	}
	require.Empty(t, stored())
	out, err := run()
	require.NoError(t, err, "%s", out)
	require.Len(t, stored(), 1, "%s", out)
	text, err := os.ReadFile(stored()[0])
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "age-encryption.org/v1\n"))
	require.Greater(t, len(text), 512<<10)
}
