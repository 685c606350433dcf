package factory

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInstaller_ExistsForKnownSchematicsVersionsAndPlatforms(t *testing.T) {
	f := New(slog.New(slog.DiscardHandler))
	with := func(names ...string) string {
		id, err := f.Add(Schematic{Customization: Customization{SystemExtensions: SystemExtensions{OfficialExtensions: names}}})
		require.NoError(t, err)
		return id
	}
	good, bad := with("siderolabs/xe-guest-utilities"), with("siderolabs/nonsense")
	for _, name := range []string{"installer", "nocloud-installer", "nocloud-installer-secureboot"} {
		extensions, err := f.Installer("factory.talos.dev/" + name + "/" + good + ":v1.12.7")
		require.NoError(t, err, name)
		require.Equal(t, []string{"siderolabs/xen-guest-agent"}, extensions)
	}
	for _, reference := range []string{
		"factory.talos.dev/nocloud-installer/" + good + ":v1.12.99", "factory.talos.dev/nocloud-installer/" + good + ":1.12.7",
		"factory.talos.dev/nocloud-installer/" + good, "factory.talos.dev/nocloud-installer/abc:v1.12.7",
		"factory.talos.dev/nonsense-installer/" + good + ":v1.12.7", "factory.talos.dev/nocloud/" + good + ":v1.12.7", "x",
	} {
		_, err := f.Installer(reference)
		require.EqualError(t, err, reference+": not found")
	}
	_, err := f.Installer("factory.talos.dev/nocloud-installer/" + bad + ":v1.12.7")
	require.ErrorContains(t, err, "400 Bad Request")
}
