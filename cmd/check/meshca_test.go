package check

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster/syntax"
	"github.com/slipway-platform/slipway/cmd/command"
)

func TestMeshCA_PrintsAnotherAuthorityEachTimeThatTheStackFileTakes(t *testing.T) {
	var printed []string
	for range 2 {
		code, out, problems := execute(t, MeshCA("mesh-ca"), t.TempDir())
		require.Equal(t, command.Done, code, problems)
		pair, fault := syntax.MeshAuthority(out)
		require.Nil(t, fault)
		block, _ := pem.Decode([]byte(pair.Certificate))
		certificate, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		assert.Equal(t, "Cilium CA", certificate.Subject.CommonName)
		assert.Equal(t, x509.KeyUsageCertSign|x509.KeyUsageCRLSign, certificate.KeyUsage)
		assert.Equal(t, elliptic.P256(), certificate.PublicKey.(*ecdsa.PublicKey).Curve)
		assert.WithinDuration(t, time.Now().AddDate(10, 0, 0), certificate.NotAfter, 24*time.Hour)
		assert.NoError(t, certificate.CheckSignatureFrom(certificate))
		printed = append(printed, pair.Key)
	}
	assert.NotEqual(t, printed[0], printed[1])
}
