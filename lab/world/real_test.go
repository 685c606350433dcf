package world

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/qemu"
	"github.com/slipway-platform/slipway/lab/stackfile"
)

func TestReal_ATalosThatIsNotBuiltIsRefused(t *testing.T) {
	_, err := (&World{}).openReal("talos-1.12")
	require.EqualError(t, err, `the Talos "talos-1.12" is not built; build it: lab tools talos-1.12`)
}

func TestReal_ImagesAreAtEveryNameBesideWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	list := `[{"names": ["nocloud-installer/*"], "tags": ["*"], "layers": []}]`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "images.json"), []byte(list), 0o600))
	there := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	hosts, err := (&realMachines{built: []qemu.Built{{Dir: dir}}}).withImages([]host{
		{name: factoryHost, port: "443", handler: there}, {name: "pve.home.arpa", port: "8006", handler: there},
		{name: "git.home.arpa", port: "22"},
	})
	require.NoError(t, err)
	require.Len(t, hosts, 4)
	const image, other = "/v2/nocloud-installer/abc/manifests/v1.12.6", "/schematics"
	for i, codes := range map[int][2]int{
		0: {http.StatusOK, http.StatusTeapot}, 1: {http.StatusTeapot, http.StatusTeapot}, 3: {http.StatusOK, http.StatusNotFound},
	} {
		for j, path := range []string{image, other} {
			w := httptest.NewRecorder()
			hosts[i].handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			require.Equal(t, codes[j], w.Code, "%s %s", hosts[i].name, path)
		}
	}
	require.Equal(t, imagesHost, hosts[3].name)
}

func TestReal_MachinesAskTheGatewaysOnce(t *testing.T) {
	gateway := stackfile.Network{NodeCIDR: netip.MustParsePrefix("10.25.11.0/24"), Gateway: netip.MustParseAddr("10.25.11.1")}
	gateway.Nameservers = []netip.Addr{gateway.Gateway}
	asked, err := (&World{stacks: []stackfile.File{{Network: gateway}, {Network: gateway}}}).asked()
	require.NoError(t, err)
	require.Equal(t, []netip.Addr{gateway.Gateway}, asked)
}
