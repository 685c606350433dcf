package check

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// MeshCA returns the command that makes a CA for a mesh.
func MeshCA(name string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: "Print a new CA of a cluster mesh", Args: cobra.NoArgs,
		Long: `Prints the certificate and the private key of a new CA, for "pulumi config set --secret slipway:meshCA", the same in
each stack of the mesh. Nothing is written.`,
		RunE: func(c *cobra.Command, _ []string) error { return writeMeshCA(c.OutOrStdout(), time.Now()) },
	}
}

func writeMeshCA(out io.Writer, now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca := &x509.Certificate{
		Subject: pkix.Name{CommonName: "Cilium CA"}, NotBefore: now, NotAfter: now.AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	certificate, ofCertificate := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	private, ofKey := x509.MarshalPKCS8PrivateKey(key)
	if err := errors.Join(ofCertificate, ofKey); err != nil {
		return err
	}
	return errors.Join(
		pem.Encode(out, &pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.Encode(out, &pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	)
}
