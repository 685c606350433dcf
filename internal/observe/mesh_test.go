package observe

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health/mesh"
	"github.com/slipway-platform/slipway/tests/fakes/fakecluster"
)

func TestMeshReport_WhatCiliumLeavesOutIsFalseOrZero(t *testing.T) {
	report := meshReport([]remoteCluster{{Name: "apps", Status: "Waiting for initial connection to be established"}}, nil, nil)
	assert.Equal(t, mesh.Report{Asked: true, Peers: map[string]mesh.Remote{
		"apps": {Status: "Waiting for initial connection to be established"}}}, report)
}

func TestMeshReport_HasTheErrorsOfThePeersControllers(t *testing.T) {
	controller := func(name string, failures int, message string) controllerStatus {
		var one controllerStatus
		one.Name, one.Status.Failures, one.Status.Message = name, failures, message
		return one
	}
	report := meshReport([]remoteCluster{{Name: "apps"}, {Name: "edge"}}, []controllerStatus{
		controller("remote-etcd-apps", 2, "clusterID 2 is already used"), controller("remote-etcd-apps-cluster-config", 1, "not found\nmore"),
		controller("remote-etcd-edge", 0, "an older error"), controller("sync-to-k8s-ciliumendpoint", 3, "else"),
	}, nil)
	assert.Equal(t, []string{"clusterID 2 is already used", "not found"}, report.Peers["apps"].Errors)
	assert.Empty(t, report.Peers["edge"].Errors, "it has succeeded since")
}

func TestMeshReport_SaysWhyThereIsNone(t *testing.T) {
	report := meshReport(nil, nil, errors.New("command terminated with exit code 1: token=hunter2"))
	assert.True(t, report.Asked)
	assert.Equal(t, "command terminated with exit code 1: token=(hidden)", report.Err)
}

// dialed returns what a mesh API server with that certificate answers.
func dialed(t *testing.T, ca *fakecluster.MeshCA, trusted string, change func(*x509.Certificate, *tls.Config)) mesh.Answer {
	t.Helper()
	port, _ := ca.Serve(t, "127.0.0.1", 0, change)
	spec := &mesh.Spec{CA: trusted, Port: port}
	spec.SetDefaults()
	return newMeshDialer(spec).try(t.Context(), "apps", netip.MustParseAddr("127.0.0.1"))
}

func TestMeshDialer_JudgesTheCertificateWithoutOneOfItsOwn(t *testing.T) {
	ca, other := fakecluster.NewMeshCA(t), fakecluster.NewMeshCA(t)
	for name, c := range map[string]struct {
		trusted string
		change  func(*x509.Certificate, *tls.Config)
		reason  string
	}{
		"valid":           {ca.Certificate, nil, ""},
		"valid, TLS 1.2":  {ca.Certificate, func(_ *x509.Certificate, c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, ""},
		"another CA":      {other.Certificate, nil, mesh.OtherCA},
		"expired":         {ca.Certificate, func(c *x509.Certificate, _ *tls.Config) { c.NotAfter = time.Now().Add(-time.Minute) }, mesh.Expired},
		"for another use": {ca.Certificate, func(c *x509.Certificate, _ *tls.Config) { c.DNSNames = []string{"git.home.arpa"} }, mesh.OtherName},
	} {
		answer := dialed(t, ca, c.trusted, c.change)
		assert.True(t, answer.Asked, name)
		assert.Empty(t, answer.Err, name)
		assert.Equal(t, c.reason, answer.TLS, name)
		if c.reason == "" {
			assert.Greater(t, answer.Left, 360*24*time.Hour, name)
			assert.Equal(t, time.Now().UTC().Add(365*24*time.Hour).Format(time.DateOnly), answer.Expires, name)
		}
	}
	assert.Equal(t, mesh.Answer{Asked: true}, dialed(t, ca, "", nil), "without a CA only the connection is tried")
}

func TestMeshDialer_SaysWhyAnAddressDoesNotAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	spec := &mesh.Spec{CA: fakecluster.NewMeshCA(t).Certificate, Port: port}
	spec.SetDefaults()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("SSH-2.0-OpenSSH_9.9\r\n"))
			_ = conn.Close()
		}
	}()
	dialer, here := newMeshDialer(spec), netip.MustParseAddr("127.0.0.1")
	assert.Equal(t, mesh.NoTLS, dialer.try(t.Context(), "apps", here).TLS)
	require.NoError(t, listener.Close())
	assert.Equal(t, mesh.Answer{Asked: true, Err: mesh.Refused}, dialer.try(t.Context(), "apps", here))
}
