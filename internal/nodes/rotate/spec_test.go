package rotate

import (
	"encoding/base64"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
)

func valid() Spec {
	text := func(name string) string {
		return base64.StdEncoding.EncodeToString([]byte("-----BEGIN " + name + "-----\naGk=\n-----END " + name + "-----\n"))
	}
	one := Authority{Certificate: text("ONE"), Key: text("KEY"), ClientCertificate: text("CLIENT"), ClientKey: text("CLIENT KEY")}
	two := one
	two.Certificate = text("TWO")
	return Spec{Of: Talos, Authorities: []Authority{one, two}, Target: turn.Target{Cluster: "infra", Nodes: []turn.Node{
		{Name: "cp-1", Role: cluster.ControlPlane, Address: netip.MustParseAddr("10.0.0.1")},
	}}}
}

func TestSpec_ReturnsItsCertificatesAsPEM(t *testing.T) {
	spec := valid()
	require.NoError(t, probe.Complete(&spec))
	assert.Contains(t, spec.Certificates()[1], "BEGIN TWO")
	assert.Contains(t, spec.IssuingKey(), "BEGIN KEY")
}

func TestSpec_NamesEveryProblemAndNoSecret(t *testing.T) {
	spec := valid()
	spec.Cluster = ""
	spec.Authorities[0].ClientKey, spec.Authorities[1].Key = "s3cret", base64.StdEncoding.EncodeToString([]byte("s3cret"))
	spec.Authorities[0].Key = "" // only the declared one signs
	err := spec.Validate()
	for _, want := range []string{
		"cluster: is empty", "authorities[0].clientKey: is not base64", "authorities[1].key: is not base64 of PEM",
	} {
		require.ErrorContains(t, err, want)
	}
	assert.NotContains(t, err.Error(), "authorities[0].key")
	assert.False(t, strings.Contains(err.Error(), "s3cret"))
	spec.Authorities = spec.Authorities[:1]
	require.ErrorContains(t, spec.Validate(), "authorities: are fewer than two")
}

func TestSpec_OfKubernetesNeedsAllKeysAndATalosconfig(t *testing.T) {
	spec := valid()
	spec.Of = Kubernetes
	for i := range spec.Authorities {
		spec.Authorities[i].ClientCertificate, spec.Authorities[i].ClientKey = "", ""
	}
	spec.Authorities[0].Key = ""
	err := spec.Validate()
	require.ErrorContains(t, err, "talosconfig: is empty")
	require.ErrorContains(t, err, "authorities[0].key: is not base64 of PEM")
	require.NotContains(t, err.Error(), "client")
	spec.Talosconfig, spec.Authorities[0].Key = "context: infra", spec.Authorities[1].Key
	require.NoError(t, spec.Validate())
	spec.Of = "Cilium"
	require.ErrorContains(t, spec.Validate(), "of: is \"Cilium\"; write Talos, Kubernetes or etcd")
}
