package tree

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// cert-manager issues a certificate anew when its issuer has another name, and not when the issuer of the same name is another one.
func TestIssuers_AnotherISSUERIsAnotherNameInTheCertificateOfTheGateway(t *testing.T) {
	stack, names := stacks(t)[0], map[string]bool{}
	for _, issuer := range []string{"", "own-ca", "acme", "acme-cloudflare"} {
		settings := with(with(stack.Settings(), withServer), map[string]string{"ISSUER": issuer})
		layers, err := Build(checkout(t), stack.GitOps.Path, settings)
		require.NoError(t, err)
		name := named(t, layers, "Certificate", "gateway").Text("spec", "issuerRef", "name")
		names[name] = true

		own, common := named(t, layers, "ClusterIssuer", name), named(t, layers, "ClusterIssuer", "cluster")
		account := []string{"spec", "acme", "privateKeySecretRef", "name"}
		if own.Text(account...) != "" { // two issuers that made one Secret at a time would hinder each other
			assert.NotEqual(t, own.Text(account...), common.Text(account...), name)
			require.NoError(t, unstructured.SetNestedField(own.Object, common.Text(account...), account...))
		}
		assert.Equal(t, common.Object["spec"], own.Object["spec"], "%s is the issuer that Certificates of others name cluster", name)
	}
	assert.Len(t, names, 3, "%v", names)
}

func TestIssuers_ReachANameServerOfAnyForm(t *testing.T) {
	stack := stacks(t)[0]
	for _, server := range []string{"10.25.11.2", "fd00::2", "ns.example.com"} {
		layers, err := Build(checkout(t), "kubernetes/infrastructure/security/issuers/acme",
			with(with(stack.Settings(), withServer), map[string]string{"DNS_SERVER": server}))
		require.NoError(t, err)
		solvers := named(t, layers, "ClusterIssuer", "cluster").List("spec", "acme", "solvers")
		require.Len(t, solvers, 1)
		at, _, err := unstructured.NestedString(solvers[0], "dns01", "rfc2136", "nameserver")
		require.NoError(t, err)
		host, port, err := net.SplitHostPort(at) // as cert-manager does: internal/apis/certmanager/validation/util/nameserver.go
		require.NoError(t, err)
		assert.Equal(t, [2]string{server, "53"}, [2]string{host, port})
	}
}
