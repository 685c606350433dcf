package factory

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestImage_SaysWhetherItIsSigned(t *testing.T) {
	f := New(slog.New(slog.DiscardHandler))
	id, err := f.Add(Schematic{})
	require.NoError(t, err)
	for file, signed := range map[string]bool{"nocloud-amd64.iso": false, "nocloud-amd64-secureboot.iso": true} {
		content, err := f.image(id, "v1.12.7", file)
		require.NoError(t, err)
		image, err := Parse(content)
		require.NoError(t, err)
		assert.Equal(t, signed, image.SecureBoot, file)
		assert.Equal(t, "nocloud", image.Platform)
	}
}

// The expected ids are those of the public factory.
func TestSchematic_HasTheIDOfThePublicFactory(t *testing.T) {
	for _, tc := range []struct{ name, in, id string }{
		{"empty", `{}`, "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"},
		{"empty lists", `customization: {extraKernelArgs: [], systemExtensions: {}}`,
			"376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"},
		{"kernel args", `{"customization": {"extraKernelArgs": ["noapic", "nolapic"]}}`,
			"9cba8e32753f91a16c1837ab8abf356af021706ef284aef07380780177d9a06c"},
		{"meta", `customization: {meta: [{key: 10, value: foo}]}`, "d308a2a5ee2277bed5fbaa104fcbc8d59122abfa737df987a95b4ca763459a7f"},
		{"overlay", `overlay: {name: rpi_generic, image: siderolabs/sbc-raspberrypi}`,
			"ee21ef4a5ef808a9b7484cc0dda0f25075021691c8c09a276591eedb638ea1f9"},
		{"secure boot", `customization: {secureboot: {includeWellKnownCertificates: true}}`,
			"fa8e05f142a851d3ee568eb0a8e5841eaf6b0ebc8df9a63df16ac5ed2c04f3e6"},
		{"guest agent", `customization: {systemExtensions: {officialExtensions: [siderolabs/qemu-guest-agent]}}`,
			"ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := ParseSchematic([]byte(tc.in))
			require.NoError(t, err)
			id, err := s.ID()
			require.NoError(t, err)
			assert.Equal(t, tc.id, id)
		})
	}
}

func serve(t *testing.T) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(New(slog.New(slog.DiscardHandler)).Handler())
	t.Cleanup(srv.Close)
	return srv
}

func do(t *testing.T, srv *httptest.Server, method, path, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	res, err := srv.Client().Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res, string(content)
}

func post(t *testing.T, srv *httptest.Server, schematic string) string {
	t.Helper()
	res, body := do(t, srv, http.MethodPost, "/schematics", schematic)
	require.Equal(t, http.StatusCreated, res.StatusCode, body)
	var out struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(body), &out))
	return out.ID
}

func TestFactory_ServesAnImageThatSaysWhatItIs(t *testing.T) {
	srv := serve(t)
	id := post(t, srv, `customization: {systemExtensions: {officialExtensions: [siderolabs/qemu-guest-agent]}}`)

	res, body := do(t, srv, http.MethodGet, "/image/"+id+"/v1.12.7/nocloud-amd64.iso", "")
	require.Equal(t, http.StatusOK, res.StatusCode)
	image, err := Parse([]byte(body))
	require.NoError(t, err)
	assert.Equal(t, "v1.12.7", image.Version)
	assert.Equal(t, id, image.Schematic)
	assert.Equal(t, "nocloud", image.Platform)
	assert.Equal(t, []string{"siderolabs/qemu-guest-agent"}, image.Extensions)

	// The hypervisor compares the length in the answer to HEAD with the size of its file.
	head, empty := do(t, srv, http.MethodHead, "/image/"+id+"/v1.12.7/nocloud-amd64.iso", "")
	assert.Equal(t, int64(len(body)), head.ContentLength)
	assert.Empty(t, empty)
	assert.Contains(t, head.Header.Get("Content-Disposition"), `filename="nocloud-amd64.iso"`)
}

func TestFactory_RefusesInTheWordsOfThePublicOne(t *testing.T) {
	srv := serve(t)
	plain := post(t, srv, `customization: {}`)
	odd := post(t, srv, `customization: {systemExtensions: {officialExtensions: [siderolabs/no-such-thing]}}`)
	unknown := strings.Repeat("0", 64)
	for _, tc := range []struct {
		path, says string
		status     int
	}{
		{"/image/" + unknown + "/v1.12.7/nocloud-amd64.iso", `schematic ID "` + unknown + `" not found`, http.StatusNotFound},
		{"/image/" + plain + "/v9.9.9/nocloud-amd64.iso", "failed to get kernel: version 9.9.9 is not available", http.StatusNotFound},
		{"/image/" + odd + "/v9.9.9/nocloud-amd64.iso", "error enhancing profile from schematic: error getting official extensions: version 9.9.9 is not available", http.StatusNotFound},
		{"/image/" + plain + "/latest/nocloud-amd64.iso", "internal server error", http.StatusInternalServerError},
		{"/image/" + plain + "/v1.12.7/nocloud-sparc.iso", `error parsing profile from path: invalid architecture: "sparc"`, http.StatusBadRequest},
		{"/image/" + plain + "/v1.12.7/nocloud-amd64.raw.xz", "the lab's factory models ISO images only, not nocloud-amd64.raw.xz", http.StatusNotImplemented},
		{"/image/" + plain + "/v1.12.7/nocloud.iso", `error parsing profile from path: invalid platform-arch: "nocloud"`, http.StatusBadRequest},
		{"/image/" + plain + "/v1.12.7/proxmox-amd64.iso", "internal server error", http.StatusInternalServerError},
		{"/image/" + plain + "/v1.12.7/nocloud-amd64.iso.sha256", "enterprise not enabled: checksum endpoint is not available", http.StatusPaymentRequired},
		{"/image/" + odd + "/v1.12.7/nocloud-amd64.iso",
			`error enhancing profile from schematic: official extension "siderolabs/no-such-thing" is not available for Talos version v1.12.7`, http.StatusBadRequest},
	} {
		t.Run(tc.path, func(t *testing.T) {
			res, body := do(t, srv, http.MethodGet, tc.path, "")
			assert.Equal(t, tc.status, res.StatusCode)
			assert.Equal(t, tc.says+"\n", body)
		})
	}
}

func TestFactory_AnswersARefusedHEADWithStatusAndTypeOnly(t *testing.T) {
	srv := serve(t)
	plain := post(t, srv, `customization: {}`)
	head, body := do(t, srv, http.MethodHead, "/image/"+plain+"/v9.9.9/nocloud-amd64.iso", "")
	assert.Equal(t, "404 Not Found", head.Status)
	assert.Equal(t, "text/plain; charset=utf-8", head.Header.Get("Content-Type"))
	assert.Empty(t, head.Header.Get("Content-Disposition"))
	assert.Empty(t, body)

	// Only images and the health check have a HEAD.
	head, _ = do(t, srv, http.MethodHead, "/schematics", "")
	assert.Equal(t, "405 Method Not Allowed", head.Status)
	assert.Contains(t, head.Header.Get("Allow"), http.MethodOptions)
}

func TestFactory_KnowsFormerNamesOfExtensions(t *testing.T) {
	srv := serve(t)
	id := post(t, srv, `customization: {systemExtensions: {officialExtensions: [siderolabs/i915-ucode, siderolabs/xe-guest-utilities, siderolabs/lldpd]}}`)
	res, body := do(t, srv, http.MethodGet, "/image/"+id+"/v1.12.7/nocloud-amd64.iso", "")
	require.Equal(t, http.StatusOK, res.StatusCode, body)
	image, err := Parse([]byte(body))
	require.NoError(t, err)
	assert.Equal(t, []string{"siderolabs/i915", "siderolabs/xen-guest-agent", "siderolabs/lldpd"}, image.Extensions)
	for alias, name := range aliases {
		_, missing := resolve([]string{name})
		assert.Empty(t, missing, "%s is an alias of it", alias)
	}
}

func TestFactory_RefusesAnInvalidSchematic(t *testing.T) {
	srv := serve(t)
	for name, in := range map[string]string{
		"unknown key": `customization: {systemExtension: {}}`,
		"no YAML":     "customization: [",
		"empty":       "",
	} {
		t.Run(name, func(t *testing.T) {
			res, _ := do(t, srv, http.MethodPost, "/schematics", in)
			assert.Equal(t, http.StatusBadRequest, res.StatusCode)
		})
	}
}

func TestParse_RefusesAFileThatIsNoImageOfTheLab(t *testing.T) {
	for _, content := range []string{"", "CD001", magic, magic + "{}", magic + "no json\n"} {
		_, err := Parse([]byte(content))
		assert.Error(t, err, "%q", content)
	}
}
