package proxmox

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The Terraform provider treats a 500 as "not there" only if the status line says "does not exist", also over TLS.
func TestErrors_AreInTheStatusLine(t *testing.T) {
	w := newWorld(t)
	srv := httptest.NewTLSServer(w.c.Handler())
	t.Cleanup(srv.Close)
	conn, err := tls.Dial("tcp", srv.Listener.Addr().String(),
		&tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"})
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET /api2/json/nodes/pve1/qemu/1111/config HTTP/1.1\r\nHost: x\r\nAuthorization: PVEAPIToken=" + admin +
		"\r\n\r\n"))
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "HTTP/1.1 500 Configuration file 'nodes/pve1/qemu-server/1111.conf' does not exist\r\n", line)
}

// HTTP/2 has no reason phrase. The message is in the body, and clients do not fail.
func TestErrors_AreInTheBodyOfHTTP2(t *testing.T) {
	w := newWorld(t)
	srv := httptest.NewUnstartedServer(w.c.Handler())
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/api2/json/nodes/pve1/qemu/1111/config", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "PVEAPIToken="+admin)
	res, err := srv.Client().Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	var body strings.Builder
	_, err = bufio.NewReader(res.Body).WriteTo(&body)
	require.NoError(t, err)
	assert.Equal(t, 2, res.ProtoMajor)
	assert.Equal(t, http.StatusInternalServerError, res.StatusCode)
	assert.Contains(t, body.String(), "does not exist")
}

// A test measures by the line when the first request of a run has arrived.
func TestLog_HasTheFirstRequestOfAClientWithAToken(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	w.token = ""
	w.call(http.MethodGet, "version", nil)
	require.NotContains(t, log.String(), "first request")
	w.token = admin
	w.get("version")
	w.get("nodes")
	require.Equal(t, 1, strings.Count(log.String(), `msg="first request" method=GET path=/api2/json/version`), log.String())
	require.Equal(t, 1, strings.Count(log.String(), "first request"), log.String())
}
