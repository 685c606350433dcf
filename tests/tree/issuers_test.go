package tree

import (
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
