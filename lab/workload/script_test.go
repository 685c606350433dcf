package workload

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// claimContainer is a container with a volume of a claim at /probe.
func claimContainer(folder, script string) (Container, *bytes.Buffer) {
	log := &bytes.Buffer{}
	return Container{Cluster: cluster(), Pod: &corev1.Pod{}, Claims: map[string]string{"probe": folder}, Log: log, RunsToCompletion: true,
		Spec: corev1.Container{Name: "main", Image: "quay.io/cilium/cilium:v1.18.7", Command: []string{"sh", "-c", script},
			VolumeMounts: []corev1.VolumeMount{{Name: "probe", MountPath: "/probe"}}}}, log
}

func TestScript_ReallyWritesAndReadsAVolume(t *testing.T) {
	folder := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(folder, "link")))
	for _, c := range []struct {
		script string
		code   int
	}{
		{"test -f /probe/slipway", 1},
		{"echo word >/probe/slipway && sync", 0},
		{`test "$(cat /probe/slipway)" = word`, 0},
		{`test "$(cat /probe/slipway)" = other`, 1},
		{"cat /probe/missing", 1},
		{"echo word >/elsewhere", 1},
		{"echo word >/probe/link/outside", 1},
		{"echo word >/probe/../etc/passwd", 1},
		{"rm /probe/slipway && test ! -e /probe/slipway", 0},
		{"rm -f /probe/slipway; exit 7", 7},
		{"exit 0; cat /probe/missing", 0},
	} {
		container, log := claimContainer(folder, c.script)
		i, err := completes(t.Context(), container)
		require.NoError(t, err)
		select {
		case <-i.Done():
		case <-time.After(10 * time.Second):
			t.Fatal("the script does not end: " + c.script)
		}
		require.Equal(t, c.code, i.ExitCode(), "%s\n%s", c.script, log)
		require.Empty(t, i.Message, "nothing is assumed")
	}
	require.NoFileExists(t, outside)
}

func TestScript_IsNotRunIfItCallsOtherProgramsOrHasNoVolume(t *testing.T) {
	for _, script := range []string{"chown -R 1000 /probe", "cat /probe/x | sed s/a/b/", "f() { echo; }; f", `"$PROGRAM" /probe`,
		"cd /; echo x >/probe/x", "if"} {
		container, _ := claimContainer(t.TempDir(), script)
		require.Nil(t, scriptOf(container), script)
	}
	container, _ := claimContainer(t.TempDir(), "echo word >/probe/slipway")
	require.NotNil(t, scriptOf(container))
	container.Claims = nil
	require.Nil(t, scriptOf(container), "without a claim's volume")
}
