package machineconfig

import (
	"bytes"
	"cmp"
	"crypto/tls"
	stdx509 "crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/gen/xslices"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
)

// Talos takes any text for most of the certificates, keys and tokens in a configuration, in maintenance mode too. It installs itself, and
// then its API never starts: the machine must be made anew. So they are parsed here, before a machine gets them.

// credential is a part of the configuration that Talos parses only when it uses it.
type credential struct {
	part  string                 // as in a talosForm
	fault func(value any) string // what is wrong, without any value; "" if nothing is
}

// credentialsAt are the parts that are parsed, at a time.
func credentialsAt(now time.Time) []credential {
	authority := func(value any) string { return faultOfAuthority(value, now) }
	return []credential{
		{"machine.ca", authority},
		{"machine.acceptedCAs[]", authority},
		{"machine.token", joinToken},
		{"machine.registries.config.*.tls.ca", decoded(bundle)},
		{"machine.registries.config.*.tls.clientIdentity", identity("crt", fromBase64)},
		{"cluster.ca", authority},
		{"cluster.acceptedCAs[]", authority},
		{"cluster.aggregatorCA", authority},
		{"cluster.etcd.ca", authority},
		{"cluster.serviceAccount.key", decoded(key)},
		{"cluster.token", joinToken},
		{"cluster.secret", encryptionKey},
		{"cluster.secretboxEncryptionSecret", encryptionKey},
		{"cluster.aescbcEncryptionSecret", encryptionKey},
		{"RegistryTLSConfig *.ca", plain(bundle)},
		{"RegistryTLSConfig *.clientIdentity", identity("cert", plainText)},
		{"TrustedRootsConfig *.certificates", plain(bundle)},
	}
}

// tokenForm is the form of the tokens by which machines and kubelets join.
var tokenForm = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)

var joinToken = plain(func(text string) string {
	if tokenForm.MatchString(text) {
		return ""
	}
	return "is no token of the form abcdef.0123456789abcdef"
})

const credentialRemedy = "give it as Talos generates or documents it"

// faultyCredentials returns the credentials in a tree of documents that Talos could not use, sorted by part.
func faultyCredentials(tree map[string]any, now time.Time) (found []fault) {
	for _, one := range credentialsAt(now) {
		eachAt(tree, nil, one.part, nil, func(path []string, value any) {
			if problem := one.fault(value); problem != "" {
				found = append(found, fault{strings.Join(path, "."), problem, credentialRemedy})
			}
		})
	}
	slices.SortStableFunc(found, func(a, b fault) int { return cmp.Compare(a.part, b.part) })
	return found
}

// reader returns the text of a value; false if it has none.
type reader func(value any) (string, bool)

func plainText(value any) (string, bool) {
	text, isText := value.(string)
	return text, isText && text != ""
}

func fromBase64(value any) (string, bool) {
	text, isText := plainText(value)
	decoded, err := base64.StdEncoding.DecodeString(text)
	return string(decoded), isText && err == nil && len(decoded) > 0
}

func plain(check func(string) string) func(any) string { return read(plainText, "is no text", check) }

func decoded(check func(string) string) func(any) string {
	return read(fromBase64, "is not in base64", check)
}

func read(read reader, otherwise string, check func(string) string) func(any) string {
	return func(value any) string {
		text, ok := read(value)
		if !ok {
			return otherwise
		}
		return check(text)
	}
}

// encryptionKey is a key of 32 bytes.
func encryptionKey(value any) string {
	if text, ok := fromBase64(value); !ok || len(text) != 32 {
		return "is not a key of 32 bytes in base64"
	}
	return ""
}

// faultOfAuthority checks a CA with its key, or without: a worker has only certificates.
func faultOfAuthority(value any, now time.Time) string {
	certificate, ok := fromBase64(at(value, "crt"))
	if !ok {
		return "has no certificate in base64"
	}
	parsed := firstCertificate(certificate)
	switch {
	case parsed == nil:
		return "has a certificate that cannot be read"
	case !parsed.IsCA:
		return "has a certificate that is none of a CA"
	case now.Before(parsed.NotBefore.Add(-clockSkew)):
		return "has a certificate that is valid from " + parsed.NotBefore.UTC().Format(time.DateOnly)
	}
	secret := at(value, "key")
	if secret == nil || secret == "" {
		return ""
	}
	return pairs("crt", fromBase64, value)
}

// firstCertificate reads the first block of PEM; nil if it is no certificate.
func firstCertificate(text string) *stdx509.Certificate {
	block, _ := pem.Decode([]byte(text))
	if block == nil || block.Type != x509.PEMTypeCertificate {
		return nil
	}
	parsed, err := stdx509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return parsed
}

// clockSkew is how much earlier than another computer's this one's clock may be.
const clockSkew = time.Hour

// key is a private key of a kind that Talos knows.
func key(text string) string {
	if _, err := (&x509.PEMEncodedKey{Key: []byte(text)}).GetKey(); err != nil {
		return "is no PEM of an RSA, ECDSA or Ed25519 private key"
	}
	return ""
}

// identity is a client certificate with its key.
func identity(certificate string, read reader) func(any) string {
	return func(value any) string { return pairs(certificate, read, value) }
}

// pairs checks that a key is that of a certificate.
func pairs(certificate string, read reader, value any) string {
	crt, hasCertificate := read(at(value, certificate))
	secret, hasKey := read(at(value, "key"))
	switch {
	case !hasCertificate:
		return "has no certificate in PEM"
	case !hasKey:
		return "has no key in PEM"
	case bundle(crt) != "":
		return "has a certificate that cannot be read"
	case key(secret) != "":
		return "has a key that is no PEM of an RSA, ECDSA or Ed25519 private key"
	}
	if _, err := tls.X509KeyPair([]byte(crt), []byte(secret)); err != nil {
		return "has a key of another certificate"
	}
	return ""
}

// bundle is one or more certificates. Text between them is a comment.
func bundle(text string) string {
	rest, count := []byte(text), 0
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != x509.PEMTypeCertificate {
			return "has a block of PEM that is no certificate"
		}
		if _, err := stdx509.ParseCertificate(block.Bytes); err != nil {
			return "has a certificate that cannot be read"
		}
		count++
	}
	switch {
	case count == 0:
		return "has no certificate in PEM"
	case bytes.Contains(rest, []byte("-----BEGIN")):
		return "has a block of PEM that cannot be read"
	}
	return ""
}

// CheckCredentials parses the certificates, keys and tokens of a node's whole machine configuration. The error names all credentials that
// Talos could not use, by path and without value. expired are CAs that Talos accepts, although nothing is valid with them any more. A text
// that this program cannot read is left to Talos.
func CheckCredentials(configuration string, now time.Time) (expired []string, err error) {
	tree, unread := guarded(func() (map[string]any, error) {
		full, err := configloader.NewFromBytes([]byte(configuration))
		if err != nil {
			return nil, err
		}
		return documents(full)
	})
	if unread != nil {
		return nil, nil // Talos says what is wrong with it
	}
	problems := xslices.Map(faultyCredentials(tree, now), func(one fault) error {
		return fmt.Errorf("%s: %s; %s", one.part, one.problem, one.remedy)
	})
	for _, path := range []string{"machine.ca", "cluster.ca", "cluster.aggregatorCA", "cluster.etcd.ca"} {
		text, _ := fromBase64(at(at(tree, strings.Split(path, ".")...), "crt"))
		if certificate := firstCertificate(text); certificate != nil && now.After(certificate.NotAfter) {
			expired = append(expired, path+" expired on "+certificate.NotAfter.UTC().Format(time.DateOnly))
		}
	}
	return expired, errors.Join(problems...)
}

// patchedCredentials returns the credentials that Talos could not use, but for those that belong to Slipway, which no patch may change.
func patchedCredentials(tree map[string]any, now time.Time) []fault {
	return slices.DeleteFunc(faultyCredentials(tree, now), func(one fault) bool {
		return isOwned(strings.Split(strings.ReplaceAll(one.part, "[", ".["), "."))
	})
}
