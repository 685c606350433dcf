package machineconfig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	stdx509 "crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

// bundleOfTalos makes secrets of Talos's own, once: that takes seconds.
var bundleOfTalos = sync.OnceValues(func() (*secrets.Bundle, error) {
	return secrets.NewBundle(secrets.NewClock(), config.TalosVersionCurrent)
})

// generatedByTalos returns a machine configuration with secrets of Talos's own.
func generatedByTalos(t *testing.T, kind machine.Type, changes ...func(*v1alpha1.Config)) string {
	t.Helper()
	bundle, err := bundleOfTalos()
	require.NoError(t, err)
	input, err := generate.NewInput("infra", "https://10.25.11.10:6443", "1.35.0", generate.WithSecretsBundle(bundle))
	require.NoError(t, err)
	full, err := input.Config(kind)
	require.NoError(t, err)
	for _, change := range changes {
		full, err = full.PatchV1Alpha1(func(c *v1alpha1.Config) error { change(c); return nil })
		require.NoError(t, err)
	}
	text, err := full.Bytes()
	require.NoError(t, err)
	return string(text)
}

// certificate returns a certificate with its key, both in PEM.
func certificate(t *testing.T, change func(*stdx509.Certificate)) (crt, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &stdx509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	if change != nil {
		change(template)
	}
	der, err := stdx509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	keyDER, err := stdx509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

func TestCheckCredentials_TakesWhatTalosGenerates(t *testing.T) {
	for _, kind := range []machine.Type{machine.TypeControlPlane, machine.TypeWorker} {
		expired, err := CheckCredentials(generatedByTalos(t, kind), time.Now())
		require.NoError(t, err, kind)
		assert.Empty(t, expired)
	}
}

func TestCheckCredentials_LeavesToTalosWhatItDoesNotRead(t *testing.T) {
	for _, text := range []string{"", "no configuration", "machine: [", "apiVersion: v1alpha1\nkind: Nonsense\n"} {
		_, err := CheckCredentials(text, time.Now())
		assert.NoError(t, err, text)
	}
}

// The real Talos 1.12.6 has taken these stand-ins in maintenance mode, installed itself, and never started its API.
func TestCheckCredentials_NamesEveryStandIn(t *testing.T) {
	full, _, err := withoutUserPatches(model{*sample(t)}, sample(t).Machines()[0])
	require.NoError(t, err)
	text, err := full.Bytes()
	require.NoError(t, err)
	_, err = CheckCredentials(string(text), time.Now())
	require.Error(t, err)
	for _, part := range []string{
		"machine.ca: has a certificate that cannot be read; ", "cluster.ca: ", "cluster.aggregatorCA: ", "cluster.etcd.ca: ",
		"cluster.serviceAccount.key: is no PEM of an RSA, ECDSA or Ed25519 private key; ",
		"cluster.secret: is not a key of 32 bytes in base64; ", "cluster.secretboxEncryptionSecret: ",
	} {
		assert.Contains(t, err.Error(), part)
	}
	assert.NotContains(t, err.Error(), "stand-in")
}

func TestCheckCredentials_NamesWhatTalosCouldNotUse(t *testing.T) {
	crt, key := certificate(t, nil)
	leaf, leafKey := certificate(t, func(c *stdx509.Certificate) { c.IsCA = false })
	later, laterKey := certificate(t, func(c *stdx509.Certificate) {
		c.NotBefore, c.NotAfter = time.Date(2199, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(2200, 1, 2, 0, 0, 0, 0, time.UTC)
	})
	set := func(crt, key string) func(*v1alpha1.Config) {
		return func(c *v1alpha1.Config) {
			c.MachineConfig.MachineCA.Crt, c.MachineConfig.MachineCA.Key = []byte(crt), []byte(key)
		}
	}
	machineToken := func(c *v1alpha1.Config) { c.MachineConfig.MachineToken = "SECRET" }
	clusterToken := func(c *v1alpha1.Config) { c.ClusterConfig.BootstrapToken = "SECRET" }
	for says, change := range map[string]func(*v1alpha1.Config){
		"": set(crt, key),
		"machine.ca: has no certificate in base64":                                       set("", key),
		"machine.ca: has a certificate that cannot be read":                              set("SECRET", key),
		"machine.ca: has a certificate that is none of a CA":                             set(leaf, leafKey),
		"machine.ca: has a certificate that is valid from 2199-01-02":                    set(later, laterKey),
		"machine.ca: has a key of another certificate":                                   set(crt, leafKey),
		"machine.ca: has a key that is no PEM of an RSA, ECDSA or Ed25519 private key":   set(crt, "SECRET"),
		"machine.ca: has a key that is no PEM of an RSA, ECDSA or Ed25519 private key; ": set(crt, crt),
		"machine.token: is no token of the form abcdef.0123456789abcdef":                 machineToken,
		"cluster.token: is no token of the form abcdef.0123456789abcdef":                 clusterToken,
		"cluster.secretboxEncryptionSecret: is not a key of 32 bytes in base64": func(c *v1alpha1.Config) {
			c.ClusterConfig.ClusterSecretboxEncryptionSecret = base64.StdEncoding.EncodeToString([]byte("SECRET"))
		},
	} {
		_, err := CheckCredentials(generatedByTalos(t, machine.TypeControlPlane, change), time.Now())
		if says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, says)
		assert.NotContains(t, err.Error(), "SECRET")
		assert.Len(t, problems(err), 1)
	}
}

func TestCheckCredentials_AnExpiredCAIsNoErrorAndIsNamed(t *testing.T) {
	expired, err := CheckCredentials(generatedByTalos(t, machine.TypeControlPlane), time.Now().AddDate(11, 0, 0))
	require.NoError(t, err, "Slipway replaces it")
	require.Len(t, expired, 4)
	assert.Regexp(t, `^machine\.ca expired on \d{4}-\d\d-\d\d$`, expired[0])
}

func TestCheckPatches_ParsesCertificatesAndKeys(t *testing.T) {
	crt, key := certificate(t, nil)
	_, another := certificate(t, nil)
	in64 := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	block := func(text string) string {
		return "|\n    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
	}
	registry := func(tls string) string { return "machine: {registries: {config: {r.home.arpa: {tls: " + tls + "}}}}" }
	pair := func(crt, key string) string {
		return "{clientIdentity: {crt: " + in64(crt) + ", key: " + in64(key) + "}}"
	}
	roots := func(text string) string {
		return "apiVersion: v1alpha1\nkind: TrustedRootsConfig\nname: own\ncertificates: " + block(text)
	}
	const at = "machine.registries.config.r.home.arpa.tls."
	for patch, says := range map[string]string{
		registry("{ca: " + in64(crt) + "}"):                             "",
		registry("{ca: " + in64("# ours\n"+crt+"# theirs\n"+crt) + "}"): "",
		registry("{ca: " + in64("SECRET") + "}"):                        at + "ca: has no certificate in PEM",
		registry("{ca: " + in64(key) + "}"):                             at + "ca: has a block of PEM that is no certificate",
		registry(pair(crt, key)):                                        "",
		registry(pair(crt, another)):                                    at + "clientIdentity: has a key of another certificate",
		registry("{clientIdentity: {crt: " + in64(crt) + "}}"):          at + "clientIdentity: has no key in PEM",
		roots(crt):                       "",
		roots("SECRET"):                  "TrustedRootsConfig own.certificates: has no certificate in PEM",
		roots(crt + "-----BEGIN SECRET"): "TrustedRootsConfig own.certificates: has a block of PEM that cannot be read",
	} {
		lines := said(t, sample(t), cluster.ControlPlane, patch)
		if says == "" {
			assert.Empty(t, lines)
			continue
		}
		assert.Equal(t, []string{says + "; give it as Talos generates or documents it"}, lines)
	}
}
