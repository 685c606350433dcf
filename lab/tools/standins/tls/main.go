// pulumi-resource-tls stands in for Pulumi's TLS plugin, whose Terraform provider cannot be had as a module.
//
// It makes real keys and certificates. It has the resources PrivateKey, CertRequest, SelfSignedCert and
// LocallySignedCert with the inputs and outputs of the released plugin; like there, a changed input replaces the resource.
// It does not have functions, the provider's proxy settings, or the renewal of certificates that near their end, so
// that earlyRenewalHours replaces as well.
package main

import (
	"context"
	"fmt"
	"os"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi-go-provider/infer"
)

// version is the plugin's own; the linker sets it from the lab's table of tools.
var version = "0.0.0-dev"

func main() {
	provider, err := newProvider()
	if err == nil {
		err = p.RunProvider(context.Background(), "tls", version, provider)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pulumi-resource-tls:", err)
		os.Exit(1)
	}
}

func newProvider() (p.Provider, error) {
	return infer.NewProviderBuilder().
		WithDisplayName("TLS").
		WithResources(
			infer.Resource(&PrivateKey{}),
			infer.Resource(&CertRequest{}),
			infer.Resource(&SelfSignedCert{}),
			infer.Resource(&LocallySignedCert{}),
		).
		Build()
}
