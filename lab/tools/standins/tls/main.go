// pulumi-resource-tls is a stand-in for Pulumi's TLS plugin, whose Terraform provider is not available as a module.
//
// It creates real keys and certificates. It has the resources PrivateKey, CertRequest, SelfSignedCert and
// LocallySignedCert with those inputs of the released plugin that the program sets, and its outputs. As there, a changed input replaces the
// resource. It has no functions, no proxy settings of the provider, and does not renew certificates before they expire,
// so a change of earlyRenewalHours replaces too.
package main

import (
	"context"
	"fmt"
	"os"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi-go-provider/infer"
)

// version is the plugin's version. The linker sets it from the lab's table of tools.
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
