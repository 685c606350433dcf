//go:build e2e

package e2e

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// onepassword is the folder of the lab's 1Password account.
func (l *lab) onepassword() string { return filepath.Join(l.home(), "1password") }

// failed runs `pulumi up` of infra, which must fail, and returns its output.
func (l *lab) failed() string {
	l.t.Helper()
	out, err := l.try("pulumi", "--non-interactive", "--color=never", "up", "--yes", "--skip-preview", "--stack", "infra")
	require.Error(l.t, err, "up went on: %s", out)
	return out
}

// fails runs `pulumi up` of infra, which must fail with a text.
func (l *lab) fails(pattern string) {
	l.t.Helper()
	out := l.failed()
	require.Regexp(l.t, pattern, out)
	l.t.Logf("up says: %s", regexp.MustCompile(`(?m)^.*(`+pattern+`).*$`).FindString(out))
}

// setSecret sets a secret of a stack from its standard input.
func (l *lab) setSecret(stack, key, value string) {
	l.t.Helper()
	c := l.cmd(l.t.Context(), "exec", "--", "pulumi", "config", "set", "--non-interactive", "--secret", "--stack", stack, "slipway:"+key)
	c.Stdin = strings.NewReader(value)
	out, err := c.CombinedOutput()
	require.NoError(l.t, err, "%s", out)
}

// apply applies an object to a cluster.
func (l *lab) apply(stack string, object map[string]any) {
	l.t.Helper()
	text, err := yaml.Marshal(object)
	require.NoError(l.t, err)
	c := l.cmd(l.t.Context(), "exec", "--", "kubectl", "--context=admin@"+stack, "apply", "-f", "-")
	c.Stdin = strings.NewReader(string(text))
	out, err := c.CombinedOutput()
	require.NoError(l.t, err, "%s", out)
}

// decoded waits for a key of a Secret, and returns its value.
func (l *lab) decoded(stack, namespace, name, key string) string {
	l.t.Helper()
	var value []byte
	l.eventually("Secret "+namespace+"/"+name, func() bool {
		out, err := l.cmd(l.t.Context(), "exec", "--", "kubectl", "--context=admin@"+stack, "get", "secret", "--namespace="+namespace, name,
			"--output=jsonpath={.data."+key+"}").Output()
		if err != nil || len(out) == 0 {
			return false
		}
		value, err = encoding.DecodeString(string(out))
		return err == nil
	})
	return string(value)
}

// probeItem returns the value of the item that the stack's probe reads.
func probeItem(t *testing.T, l *lab) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.onepassword(), "vaults.yaml"))
	require.NoError(t, err)
	var account struct {
		Vaults []struct {
			Name  string
			Items []struct {
				Title  string
				Fields map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &account))
	for _, vault := range account.Vaults {
		for _, item := range vault.Items {
			if vault.Name == "infra" && item.Title == "slipway-probe" {
				require.NotEmpty(t, item.Fields["password"])
				return item.Fields["password"]
			}
		}
	}
	require.Fail(t, "the account lacks the probe's item")
	return ""
}

// itemsSynced shows that a user's ExternalSecret syncs from the store, beside the probe's, and an ExternalSecret in an undeclared namespace
// does not.
func itemsSynced(t *testing.T, l *lab) {
	for _, namespace := range []string{"default", "cert-manager"} {
		l.apply("infra", map[string]any{
			"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret",
			"metadata": map[string]any{"name": "own", "namespace": namespace},
			"spec": map[string]any{
				"secretStoreRef": map[string]any{"kind": "ClusterSecretStore", "name": "onepassword"},
				"data": []any{map[string]any{
					"secretKey": "password", "remoteRef": map[string]any{"key": "slipway-probe", "property": "password"},
				}},
			},
		})
	}
	want := probeItem(t, l)
	require.True(t, want == l.decoded("infra", "cert-manager", "own", "password"), "the value in 1Password")
	l.eventually("the operator refuses the namespace", func() bool {
		events := l.in("kubectl", "--context=admin@infra", "--namespace=default", "get", "events", "--output=jsonpath={.items[*].message}")
		return strings.Contains(events, `using cluster store "onepassword" is not allowed from namespace "default"`)
	})
	require.True(t, want == l.decoded("infra", "external-secrets", "slipway-probe", "value"), "the value in 1Password")
}

// connectRefuses shows that up stops at what 1Password refuses and names it, and that the next run gets past it.
func connectRefuses(t *testing.T, l *lab) {
	text, err := os.ReadFile(filepath.Join(l.onepassword(), "token"))
	require.NoError(t, err)
	token := string(text)
	set := func(path, value string) { l.pulumi("config", "set", "--stack", "infra", "--path", path, value) }
	remove := func(path string) { l.pulumi("config", "rm", "--stack", "infra", "--path", path) }

	set("slipway:readiness.timeout", "30s")
	header, rest, _ := strings.Cut(token, ".")
	claims, signature, _ := strings.Cut(rest, ".")
	l.setSecret("infra", "onepasswordToken", header+"."+claims+"."+strings.Repeat("A", len(signature)))
	l.fails(`status 401: Invalid token signature.*Connect refuses the token; set onepasswordToken anew`)
	l.setSecret("infra", "onepasswordToken", token)

	set("slipway:secrets.onepassword.vaults[0]", "absent")
	l.fails(`ClusterSecretStore onepassword.*Found 0 vaults with title \\?"absent`)
	set("slipway:secrets.onepassword.vaults[0]", "infra")

	set("slipway:secrets.onepassword.probe.item", "absent")
	l.fails(`ExternalSecret external-secrets/slipway-probe.*key not found in 1Password Vaults: absent`)
	remove("slipway:secrets.onepassword.probe")

	remove("slipway:readiness")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(t, "True", l.kubectl("get", "externalsecret", "--namespace=external-secrets", "slipway-probe",
		`--output=jsonpath={.status.conditions[?(@.type=="Ready")].status}`))
}

// sealed returns a SealedSecret with one key, as kubeseal makes it with a certificate in PEM. See the package pkg/crypto of
// sealed-secrets: a key of AES is encrypted with the certificate's, and the value with that key.
func sealed(t *testing.T, certificate, namespace, name, key, value string) map[string]any {
	t.Helper()
	block, _ := pem.Decode([]byte(certificate))
	require.NotNil(t, block, "a certificate in PEM")
	parsed, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	session := make([]byte, 32)
	_, err = rand.Read(session)
	require.NoError(t, err)
	encrypted, err := rsa.EncryptOAEP(sha256.New(), rand.Reader, parsed.PublicKey.(*rsa.PublicKey), session, []byte(namespace+"/"+name))
	require.NoError(t, err)
	cipherBlock, err := aes.NewCipher(session)
	require.NoError(t, err)
	gcm, err := cipher.NewGCM(cipherBlock)
	require.NoError(t, err)
	text := binary.BigEndian.AppendUint16(nil, uint16(len(encrypted)))
	text = gcm.Seal(append(text, encrypted...), make([]byte, gcm.NonceSize()), []byte(value), nil)
	return map[string]any{
		"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret",
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec":     map[string]any{"encryptedData": map[string]any{key: encoding.EncodeToString(text)}},
	}
}

// unseals shows that the controller of a cluster decrypts a SealedSecret.
func (l *lab) unseals(stack string, object map[string]any, value string) {
	l.t.Helper()
	metadata := object["metadata"].(map[string]any)
	l.apply(stack, object)
	require.Equal(l.t, value, l.decoded(stack, metadata["namespace"].(string), metadata["name"].(string), "value"))
}

// sealingCertificate returns the certificate in a stack's outputs.
func (l *lab) sealingCertificate(stack string) string {
	l.t.Helper()
	return l.pulumi("stack", "output", "sealedSecretsCert", "--stack", stack)
}

// sealingKeyRotated shows that secrets sealed with the stack's certificate are decrypted, also those sealed before another key was made,
// and that the controller always runs.
func sealingKeyRotated(t *testing.T, l *lab) { l.rotatesSealingKey("apps") }

func (l *lab) rotatesSealingKey(stack string) {
	t := l.t
	t.Helper()
	first := l.sealingCertificate(stack)
	l.unseals(stack, sealed(t, first, "default", "before", "value", "one"), "one")
	late := sealed(t, first, "default", "late", "value", "two")

	l.pulumi("config", "set", "--stack", stack, "--path", "slipway:secrets.sealedSecrets.keyPairs", "2")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", stack)
	second := l.sealingCertificate(stack)
	require.NotEqual(t, first, second, "the newest certificate is for sealing")
	l.unseals(stack, late, "two")
	l.unseals(stack, sealed(t, second, "default", "after", "value", "three"), "three")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", stack)

	keys := l.in("kubectl", "--context=admin@"+stack, "get", "secrets", "--namespace=kube-system", "--output=name",
		"--selector=sealedsecrets.bitnami.com/sealed-secrets-key=active")
	require.Equal(t, []string{"secret/sealed-secrets-key-1", "secret/sealed-secrets-key-2"}, strings.Fields(keys),
		"the controller has made no key of its own")
}

// newSealingPair makes a key for sealing and its certificate, as docs/credentials.md does with openssl. The newest certificate seals.
func newSealingPair(t *testing.T, age time.Duration) (key, certificate string) {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 4096)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sealed-secrets"},
		NotBefore: time.Now().Add(-age), NotAfter: time.Now().Add(24 * time.Hour),
	}
	bytes, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	encode := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(private)), encode("CERTIFICATE", bytes)
}
