package syntax

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	sshhosts "golang.org/x/crypto/ssh/knownhosts"
)

func asPEM(kind string, bytes []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
}

func inBase64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// faults checks what a check says of texts, and that it repeats nothing of them. "" means that the text is valid.
func faults(t *testing.T, check func(string) *Fault, texts map[string][]string) {
	t.Helper()
	for want, given := range texts {
		for _, text := range given {
			fault := check(text)
			if want == "" {
				assert.Nil(t, fault, "%q", text)
				continue
			}
			if !assert.NotNil(t, fault, "%q", text) {
				continue
			}
			assert.Equal(t, want, fault.Problem, "%q", text)
			assert.NotEmpty(t, fault.Remedy)
			for _, line := range strings.Split(text, "\n") {
				if len(line) > 30 {
					assert.NotContains(t, fault.Problem+fault.Remedy, line[:30])
				}
			}
		}
	}
}

func sshKey(t *testing.T) (private, locked, public string) {
	t.Helper()
	publicKey, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(key, "")
	require.NoError(t, err)
	encrypted, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte("hunter2"))
	require.NoError(t, err)
	shared, err := ssh.NewPublicKey(publicKey)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(block)), string(pem.EncodeToMemory(encrypted)), string(ssh.MarshalAuthorizedKey(shared))
}

func rsaKeys(t *testing.T) (pkcs1, pkcs8, public string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	eight, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return asPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)), asPEM("PRIVATE KEY", eight),
		asPEM("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&key.PublicKey))
}

func certificate(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Home CA"}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true,
	}
	bytes, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	keyBytes, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	return asPEM("CERTIFICATE", bytes), asPEM("EC PRIVATE KEY", keyBytes)
}

func TestSSHKey_IsAPrivateKeyWithoutAPassphrase(t *testing.T) {
	private, locked, public := sshKey(t)
	pkcs1, _, rsaPublic := rsaKeys(t)
	faults(t, SSHKey, map[string][]string{
		"": {private, strings.TrimSpace(private), strings.ReplaceAll(private, "\n", "\r\n"), pkcs1},
		"has a passphrase, which Flux is not given":      {locked},
		"is in base64 as a whole":                        {inBase64(private), inBase64(locked)},
		"is a public key, which belongs to the Git host": {public, strings.TrimSpace(public)},
		"is a key in PuTTY's own form":                   {"PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none"},
		"is not an SSH private key that can be read": {
			"", "hunter2", private[:100], strings.ReplaceAll(private, "\n", " "), rsaPublic,
		},
	})
}

func TestRSAKey_IsWhatGitHubMakesForAnApp(t *testing.T) {
	pkcs1, pkcs8, public := rsaKeys(t)
	private, _, _ := sshKey(t)
	_, ec := certificate(t)
	faults(t, RSAKey, map[string][]string{
		"":                        {pkcs1, pkcs8, strings.TrimSpace(pkcs1)},
		"is in base64 as a whole": {inBase64(pkcs1)},
		"is not a key in PEM":     {"", "hunter2", pkcs1[:100], strings.ReplaceAll(pkcs1, "\n", " ")},
		"is a public key":         {public},
		"has a passphrase, which nobody in the cluster knows": {asPEM("ENCRYPTED PRIVATE KEY", []byte("x")),
			strings.Replace(pkcs1, "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n", 1)},
		"is not an RSA private key that can be read": {private, ec, asPEM("RSA PRIVATE KEY", []byte("x"))},
	})
}

func TestAgeKeys_ArePrivateKeysAsSOPSReadsThem(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	other, err := age.GenerateHybridIdentity()
	require.NoError(t, err)
	key, public := identity.String(), identity.Recipient().String()
	private, _, _ := sshKey(t)
	faults(t, AgeKeys, map[string][]string{
		"": {
			key, key + "\n", "# created: today\n# public key: " + public + "\n" + key + "\n", key + "\n" + other.String() + "\n",
		},
		"is in base64 as a whole":                  {inBase64(key), inBase64("# created\n" + key + "\n")},
		"is a public key, which is for encrypting": {public, public + "\n"},
		"has no key that begins with AGE-SECRET-KEY-1": {
			strings.TrimPrefix(key, "AGE-SECRET-KEY-1"), strings.ToLower(key), "", private,
		},
		"is encrypted with a passphrase, which nobody is asked for": {
			"-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n-----END AGE ENCRYPTED FILE-----\n",
		},
		"is a key of a plugin of age, which is not supported": {"AGE-PLUGIN-YUBIKEY-1QQQQQ"},
		"has a line that is neither a key of age nor a comment": {
			key[:40], key + "x", " " + key, key + " " + key, key + "\n" + public,
		},
	})
}

func TestCertificates_AreOnlyCertificates(t *testing.T) {
	one, key := certificate(t)
	two, _ := certificate(t)
	faults(t, Certificates, map[string][]string{
		"":                        {one, one + two, "# Home CA\n" + one, strings.TrimSpace(one)},
		"has a private key in it": {one + key, key},
		"is in base64 as a whole": {inBase64(one)},
		"has a certificate that cannot be read": {asPEM("CERTIFICATE", []byte("x")), one + two[:200], one[:100],
			strings.Replace(one, "\nM", "\n%M", 1) + two},
		"has something else in it than certificates": {one + asPEM("CERTIFICATE REQUEST", []byte("x"))},
		"is not a certificate in PEM":                {"", "hunter2"},
	})
}

func TestKnownHosts_HaveAKeyOfTheHost(t *testing.T) {
	_, _, public := sshKey(t)
	public = strings.TrimSpace(public)
	for _, one := range []struct{ line, url, problem string }{
		{"git.home.arpa " + public, "ssh://git@git.home.arpa/a/b", ""},
		{"# git.home.arpa:22\ngit.home.arpa " + public + "\n", "ssh://git.home.arpa:22/a/b", ""},
		{"other.home.arpa,git.home.arpa " + public, "ssh://git@git.home.arpa/a/b", ""},
		{"*.home.arpa " + public, "ssh://git@git.home.arpa/a/b", ""},
		{"@cert-authority *.home.arpa " + public, "ssh://git@git.home.arpa/a/b", ""},
		{sshhosts.HashHostname("git.home.arpa") + " " + public, "ssh://git@git.home.arpa/a/b", ""},
		{"[git.home.arpa]:2222 " + public, "ssh://git@git.home.arpa:2222/a/b", ""},
		{sshhosts.HashHostname("[git.home.arpa]:2222") + " " + public, "ssh://git@git.home.arpa:2222/a/b", ""},
		{"10.25.11.5 " + public, "ssh://git@10.25.11.5/a", ""},
		{"git.home.arpa " + public, "ssh://git@git.home.arpa:2222/a/b", "has no key of [git.home.arpa]:2222, the host in gitops.url"},
		{"other.home.arpa " + public, "ssh://git@git.home.arpa/a/b", "has no key of git.home.arpa, the host in gitops.url"},
		{"!git.home.arpa,*.home.arpa " + public, "ssh://git@git.home.arpa/a/b", "has no key of git.home.arpa, the host in gitops.url"},
		{"# nothing\n", "ssh://git@git.home.arpa/a/b", "has no key of git.home.arpa, the host in gitops.url"},
		{public, "ssh://git@git.home.arpa/a/b", "has a line that is not in the form of known_hosts"},
		{"git.home.arpa ssh-ed25519 AAAA", "ssh://git@git.home.arpa/a/b", "has a line that is not in the form of known_hosts"},
	} {
		fault := KnownHosts(one.line, one.url)
		if one.problem == "" {
			assert.Nil(t, fault, one.line)
			continue
		}
		require.NotNil(t, fault, one.line)
		assert.Equal(t, one.problem, fault.Problem, one.line)
	}
	assert.True(t, strings.HasSuffix(KeyScan("ssh://git@git.home.arpa:2222/a"), ": ssh-keyscan -p 2222 git.home.arpa"))
	assert.True(t, strings.HasSuffix(KeyScan("ssh://git.home.arpa/a"), ": ssh-keyscan git.home.arpa"))
}

// sealingPair returns a private key and a certificate of it.
func sealingPair(t *testing.T) KeyPair {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour)}
	bytes, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return KeyPair{Key: asPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)), Certificate: asPEM("CERTIFICATE", bytes)}
}

func TestSealingKey_BelongsToItsCertificate(t *testing.T) {
	pair, other := sealingPair(t), sealingPair(t)
	certificateEC, keyEC := certificate(t)
	faults(t, SealingKey, map[string][]string{
		"": {pair.Key, strings.TrimSpace(pair.Key)},
		"is not an RSA private key that can be read": {keyEC},
		"is in base64 as a whole":                    {inBase64(pair.Key)},
		"is not a key in PEM":                        {"", "hunter2"},
	})
	faults(t, func(text string) *Fault { return SealingCertificate(text, pair.Key) }, map[string][]string{
		"":                            {pair.Certificate},
		"belongs to another key":      {other.Certificate, certificateEC},
		"has a private key in it":     {pair.Key},
		"is not a certificate in PEM": {"hunter2"},
	})
	assert.Nil(t, SealingCertificate(other.Certificate, "hunter2"), "the key is reported by itself")
}

func TestSealingPairs_AreKeysWithTheirCertificatesInAnyOrder(t *testing.T) {
	one, two := sealingPair(t), sealingPair(t)
	faults(t, func(text string) *Fault { _, fault := SealingPairs(text); return fault }, map[string][]string{
		"":                                      {one.Key + one.Certificate, two.Certificate + one.Key + one.Certificate + two.Key},
		"has a key without its certificate":     {one.Key, one.Key + two.Certificate},
		"has a certificate without its key":     {one.Key + one.Certificate + two.Certificate},
		"has a key twice":                       {one.Key + one.Certificate + one.Key},
		"has no key in PEM":                     {"", "hunter2", one.Certificate},
		"is in base64 as a whole":               {inBase64(one.Key + one.Certificate)},
		"has a block in it that cannot be read": {one.Key + one.Certificate + two.Key[:200]},
		"has a block in it that is not an RSA private key that can be read": {one.Key + asPEM("DSA PRIVATE KEY", []byte("x"))},
	})
	found, fault := SealingPairs(two.Certificate + one.Key + one.Certificate + two.Key)
	require.Nil(t, fault)
	assert.Equal(t, []KeyPair{one, two}, found)
	assert.NotEqual(t, one.Name(), two.Name())
	assert.Len(t, one.Name(), 12)
	assert.WithinDuration(t, time.Now(), one.NotBefore(), time.Minute)
}

func TestConnectCredentials_AreTheFileOfAConnectServer(t *testing.T) {
	const file = `{"verifier":{"salt":"c2FsdA","localHash":"aGFzaA"},"encCredentials":{"kid":"localauthv2keykid","enc":"A256GCM",` +
		`"cty":"b5+jwk+json","iv":"aXY","data":"ZGF0YQ"},"version":"2","deviceUuid":"hhhhhhhhhhhhhhhhhhhhhhhhhh",` +
		`"uniqueKey":{"alg":"A256GCM","ext":true,"k":"azE","key_ops":["encrypt","decrypt"],"kty":"oct","kid":"a2lk"}}`
	token := "eyJhbGciOiJFUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"x"}`)) + ".c2ln"
	urlEncoded := base64.RawURLEncoding.EncodeToString([]byte(file))
	faults(t, ConnectCredentials, map[string][]string{
		"":                        {file, file + "\n", strings.Replace(file, `"2"`, "2", 1)},
		"is in base64 as a whole": {inBase64(file), urlEncoded, urlEncoded[:60] + "\n" + urlEncoded[60:]},
		"is in base64 twice":      {inBase64(inBase64(file)), inBase64(urlEncoded)},
		"is not of version 2":     {strings.Replace(file, `"2"`, `"1"`, 1), "{}"},
		"lacks one of verifier, encCredentials, uniqueKey and deviceUuid": {strings.Replace(file, "uniqueKey", "key", 1), `{"version":"2"}`},
		"is not JSON of 1Password Connect":                                {"", "hunter2", file[:200], "[]", `"x"`},
		"is a token, which belongs into onepasswordToken":                 {token},
	})
	faults(t, ConnectToken, map[string][]string{
		"":                                       {token},
		"begins or ends with white space":        {token + "\n", " " + token},
		"is in base64 as a whole":                {inBase64(token), inBase64(token + "\n")},
		"is JSON, such as the credentials' file": {file},
		"is the token of a service account, which a Connect server does not know": {"ops_" + inBase64(file)},
		"is not a JWT": {"", "hunter2", "a.b.c", strings.TrimSuffix(token, ".c2ln"), strings.TrimSuffix(token, "c2ln"), "e30.e30"},
	})
}
