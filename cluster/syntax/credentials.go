package syntax

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"filippo.io/age"
	"github.com/fluxcd/pkg/ssh/knownhosts"
	"golang.org/x/crypto/ssh"
	sshhosts "golang.org/x/crypto/ssh/knownhosts"
)

// Remedies for keys. None of the faults below repeats anything of the text: even an error of a parser may quote it.
const (
	remedyPEM    = "write the whole text, from -----BEGIN to the last -----END line, with its line breaks"
	remedySSHKey = "make one with: ssh-keygen -t ed25519 -N '' -f FILE; and set the file without .pub"
	remedyAppKey = "set the file that GitHub made for the app"
	remedyAgeKey = "make one with: age-keygen -o FILE; and set the file"
)

// SSHKey checks the private key of an SSH identity, as Flux reads it: in PEM, without a passphrase.
func SSHKey(text string) *Fault {
	var passphrase *ssh.PassphraseMissingError
	_, err := ssh.ParsePrivateKey([]byte(text))
	switch {
	case err == nil:
		return nil
	case errors.As(err, &passphrase):
		return because("has a passphrase, which Flux is not given", remedySSHKey)
	case isInBase64(text, "-----BEGIN"):
		return because("is in base64 as a whole", "set the key's file as it is")
	case isSSHPublicKey(text):
		return because("is a public key, which belongs to the Git host", "set the private one, the file without .pub")
	case strings.HasPrefix(text, "PuTTY-User-Key-File"):
		return because("is a key in PuTTY's own form", "convert it with: puttygen KEY.ppk -O private-openssh -o FILE; and set the file")
	}
	return because("is not an SSH private key that can be read", remedySSHKey)
}

func isSSHPublicKey(text string) bool {
	_, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	return err == nil || strings.Contains(text, "-----BEGIN SSH2 PUBLIC KEY-----") || strings.Contains(text, "-----BEGIN PUBLIC KEY-----")
}

// RSAKey checks the private key of a GitHub App: RSA in PEM, unencrypted.
func RSAKey(text string) *Fault {
	_, fault := rsaKey(text, remedyAppKey)
	return fault
}

// rsaKey reads a private key, RSA in PEM, unencrypted. The remedy says where such a key comes from.
func rsaKey(text, remedy string) (*rsa.PrivateKey, *Fault) {
	block, _ := pem.Decode([]byte(text))
	switch {
	case block == nil && isInBase64(text, "-----BEGIN"):
		return nil, because("is in base64 as a whole", "set the key's file as it is")
	case block == nil:
		return nil, because("is not a key in PEM", remedyPEM)
	case isEncrypted(block):
		return nil, because("has a passphrase, which nobody in the cluster knows", remedy)
	case strings.HasSuffix(block.Type, "PUBLIC KEY"):
		return nil, because("is a public key", remedy)
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if key, isRSA := parsed.(*rsa.PrivateKey); err == nil && isRSA {
		return key, nil
	}
	return nil, because("is not an RSA private key that can be read", remedy)
}

// AgeRecipient checks a public key of age.
func AgeRecipient(text string) *Fault {
	const remedy = "write the line that age-keygen -y prints, age1…"
	if strings.Contains(text, "AGE-SECRET-KEY-") {
		return because("is a private key of age, which must not be in a file in plain text", "make a new one, and "+remedy)
	}
	if recipients, err := age.ParseRecipients(strings.NewReader(text)); err != nil || len(recipients) != 1 {
		return because("is not a public key of age", remedy)
	}
	return nil
}

// AgeKeys checks the file with one or more private keys of age, as SOPS reads it: a key on each line, and comments.
func AgeKeys(text string) *Fault {
	if _, err := age.ParseIdentities(strings.NewReader(text)); err == nil {
		return nil
	}
	switch {
	case isInBase64(text, "AGE-SECRET-KEY-"):
		return because("is in base64 as a whole", "set the key's file as it is")
	case strings.HasPrefix(text, "age-encryption.org/") || strings.Contains(text, "-----BEGIN AGE ENCRYPTED FILE-----"):
		return because("is encrypted with a passphrase, which nobody is asked for", "set what age --decrypt writes of it")
	case strings.Contains(text, "AGE-PLUGIN-"):
		return because("is a key of a plugin of age, which is not supported", remedyAgeKey)
	case !strings.Contains(text, "AGE-SECRET-KEY-") && strings.HasPrefix(strings.TrimSpace(text), "age1"):
		return because("is a public key, which is for encrypting", "set the private one, which begins with AGE-SECRET-KEY-1")
	case !strings.Contains(text, "AGE-SECRET-KEY-1") && !strings.Contains(text, "AGE-SECRET-KEY-PQ-1"):
		return because("has no key that begins with AGE-SECRET-KEY-1", remedyAgeKey)
	}
	return because("has a line that is neither a key of age nor a comment",
		"set the file as age-keygen wrote it, or the whole line that begins with AGE-SECRET-KEY-1")
}

// Certificates checks text with one or more X.509 certificates in PEM and nothing else. Flux silently ignores what it cannot read.
func Certificates(text string) *Fault {
	blocks, cut := pemBlocks(text)
	for _, block := range blocks {
		_, err := x509.ParseCertificate(block.Bytes)
		switch {
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return because("has a private key in it", "revoke it, and write only the certificates")
		case block.Type != "CERTIFICATE" || len(block.Headers) > 0:
			return because("has something else in it than certificates", "write only those, each between its -----BEGIN and -----END line")
		case err != nil:
			return because("has a certificate that cannot be read", remedyPEM)
		}
	}
	switch {
	case cut:
		return because("has a certificate that cannot be read", remedyPEM)
	case len(blocks) == 0 && isInBase64(text, "-----BEGIN"):
		return because("is in base64 as a whole", "write the certificate's file as it is")
	case len(blocks) == 0:
		return because("is not a certificate in PEM", remedyPEM)
	}
	return nil
}

// Expired returns when the first certificate of a text in PEM expired; zero if all are valid on a day.
func Expired(text string, day time.Time) time.Time {
	blocks, _ := pemBlocks(text)
	for _, block := range blocks {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && certificate.NotAfter.Before(day) {
			return certificate.NotAfter
		}
	}
	return time.Time{}
}

// KnownHosts checks text in the form of OpenSSH's file known_hosts, as Flux reads it: it must have a key of the host of an ssh URL.
func KnownHosts(text, gitURL string) *Fault {
	parsed, err := url.Parse(gitURL)
	if err != nil {
		return nil // the URL is reported already
	}
	host, port := parsed.Hostname(), cmp.Or(parsed.Port(), "22")
	check, _, err := knownhosts.New([]byte(text))
	if err != nil {
		return because("has a line that is not in the form of known_hosts", KeyScan(gitURL))
	}
	// No host has this key, so the answer lists the text's keys for the host.
	none, err := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
	if err != nil {
		return nil
	}
	var unknown *sshhosts.KeyError
	err = check(net.JoinHostPort(host, port), &net.TCPAddr{}, none)
	if errors.As(err, &unknown) && len(unknown.Want) == 0 {
		return because("has no key of "+sshhosts.Normalize(net.JoinHostPort(host, port))+", the host in gitops.url", KeyScan(gitURL))
	}
	return nil
}

// KeyScan is the remedy for missing keys of the host of an ssh URL.
func KeyScan(gitURL string) string {
	command := "ssh-keyscan "
	if parsed, err := url.Parse(gitURL); err == nil {
		if parsed.Port() != "" {
			command += "-p " + parsed.Port() + " "
		}
		command += parsed.Hostname()
	}
	return "write what this prints, and compare it with what the host publishes: " + command
}

// pemBlocks returns the blocks of a text in PEM, and whether there is one beside them that cannot be read.
func pemBlocks(text string) (blocks []*pem.Block, cut bool) {
	block, rest := pem.Decode([]byte(text))
	for ; block != nil; block, rest = pem.Decode(rest) {
		blocks = append(blocks, block)
	}
	return blocks, strings.Count(text, "-----BEGIN ") > len(blocks)
}

// isEncrypted reports whether a key in PEM has a passphrase.
func isEncrypted(key *pem.Block) bool {
	return strings.HasPrefix(key.Type, "ENCRYPTED") || strings.Contains(key.Headers["Proc-Type"], "ENCRYPTED")
}

// isInBase64 reports whether a text is another one in base64 that contains the mark.
func isInBase64(text, mark string) bool {
	decoded, ok := fromBase64(text)
	return ok && strings.Contains(decoded, mark)
}

// KeyPair is a private key with its certificate, PEM: of sealed-secrets, or of a certificate authority.
type KeyPair struct{ Key, Certificate string }

// Name returns a name of the pair that does not depend on the certificate: a renewed certificate keeps it. It is a part of
// the public key's checksum.
func (p KeyPair) Name() string {
	key, fault := rsaKey(p.Key, "")
	if fault != nil {
		return ""
	}
	sum := sha256.Sum256(x509.MarshalPKCS1PublicKey(&key.PublicKey))
	return hex.EncodeToString(sum[:6])
}

// NotBefore returns the time from which the certificate is valid. The controller of sealed-secrets offers the newest one.
func (p KeyPair) NotBefore() time.Time {
	certificate, err := firstCertificate(p.Certificate)
	if err != nil {
		return time.Time{}
	}
	return certificate.NotBefore
}

const remedySealingKey = "set the key's file as it is, RSA in PEM, such as tls.key of the controller's Secret"

// SealingKey checks the private key of sealed-secrets: RSA in PEM, unencrypted.
func SealingKey(text string) *Fault {
	_, fault := rsaKey(text, remedySealingKey)
	return fault
}

// SealingCertificate checks the certificate of a private key of sealed-secrets, if the key can be read.
func SealingCertificate(text, key string) *Fault {
	if fault := Certificates(text); fault != nil {
		return fault
	}
	private, fault := rsaKey(key, remedySealingKey)
	certificate, err := firstCertificate(text)
	if fault != nil || err != nil {
		return nil
	}
	if !private.PublicKey.Equal(certificate.PublicKey) {
		return because("belongs to another key", "set the certificate of sealedSecretsKey")
	}
	return nil
}

// SealingPairs reads private keys of sealed-secrets and their certificates, in any order.
func SealingPairs(text string) ([]KeyPair, *Fault) {
	const remedy = "set the files of all earlier keys and of their certificates, one after the other"
	var keys, certificates []string
	blocks, cut := pemBlocks(text)
	for _, block := range blocks {
		one := string(pem.EncodeToMemory(block))
		if block.Type == "CERTIFICATE" {
			if fault := Certificates(one); fault != nil {
				return nil, fault
			}
			certificates = append(certificates, one)
			continue
		}
		if fault := SealingKey(one); fault != nil {
			return nil, because("has a block in it that "+fault.Problem, fault.Remedy)
		}
		keys = append(keys, one)
	}
	switch {
	case cut:
		return nil, because("has a block in it that cannot be read", remedyPEM)
	case len(blocks) == 0 && isInBase64(text, "-----BEGIN"):
		return nil, because("is in base64 as a whole", "set the files as they are")
	case len(keys) == 0:
		return nil, because("has no key in PEM", remedy)
	}
	return pairs(keys, certificates, remedy)
}

// pairs returns each key with its certificate.
func pairs(keys, certificates []string, remedy string) ([]KeyPair, *Fault) {
	var all []KeyPair
	used := map[string]bool{}
	for _, key := range keys {
		pair := KeyPair{Key: key}
		for _, certificate := range certificates {
			if SealingCertificate(certificate, key) == nil {
				pair.Certificate = certificate
			}
		}
		switch {
		case pair.Certificate == "":
			return nil, because("has a key without its certificate", remedy)
		case used[pair.Name()]:
			return nil, because("has a key twice", "keep one")
		}
		used[pair.Name()] = true
		all = append(all, pair)
	}
	if len(certificates) > len(keys) {
		return nil, because("has a certificate without its key", remedy)
	}
	return all, nil
}

func firstCertificate(text string) (*x509.Certificate, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("no PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

// ConnectCredentials checks the file 1password-credentials.json, which a 1Password Connect server reads.
func ConnectCredentials(text string) *Fault {
	const remedy = "set the file 1password-credentials.json that 1Password made for the Connect server, as it is"
	var file struct {
		Version        json.RawMessage `json:"version"`
		DeviceUUID     string          `json:"deviceUuid"`
		Verifier       map[string]any  `json:"verifier"`
		EncCredentials map[string]any  `json:"encCredentials"`
		UniqueKey      map[string]any  `json:"uniqueKey"`
	}
	if once, ok := fromBase64(text); ok {
		if _, twice := fromBase64(once); twice {
			return because("is in base64 twice", remedy)
		}
		if strings.HasPrefix(strings.TrimSpace(once), "{") {
			return because("is in base64 as a whole", remedy)
		}
	}
	switch err := json.Unmarshal([]byte(text), &file); {
	case jsonWebToken(text):
		return because("is a token, which belongs into onepasswordToken", remedy)
	case err != nil:
		return because("is not JSON of 1Password Connect", remedy)
	case strings.Trim(string(file.Version), `"`) != "2":
		return because("is not of version 2", "make a Connect server anew, with: op connect server create NAME; and set the file that it writes")
	case file.DeviceUUID == "" || len(file.Verifier) == 0 || len(file.EncCredentials) == 0 || len(file.UniqueKey) == 0:
		return because("lacks one of verifier, encCredentials, uniqueKey and deviceUuid", remedy)
	}
	return nil
}

// ConnectToken checks a token for a 1Password Connect server: a JWT.
func ConnectToken(text string) *Fault {
	const remedy = "make one with: op connect token create NAME --server SERVER --vault VAULT; and set what it prints"
	switch {
	case jsonWebToken(text):
		return nil
	case strings.TrimSpace(text) != text && jsonWebToken(strings.TrimSpace(text)):
		return because("begins or ends with white space", "set it without, for instance with printf instead of echo")
	case strings.HasPrefix(strings.TrimSpace(text), "{"):
		return because("is JSON, such as the credentials' file", remedy)
	case strings.HasPrefix(text, "ops_"):
		return because("is the token of a service account, which a Connect server does not know", remedy)
	}
	if once, ok := fromBase64(text); ok && jsonWebToken(strings.TrimSpace(once)) {
		return because("is in base64 as a whole", "set the token as it is")
	}
	return because("is not a JWT", remedy)
}

// jsonWebToken reports whether a text is a signed JWT: header and claims are JSON objects, and there is a signature.
func jsonWebToken(text string) bool {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || strings.ContainsAny(text, "\r\n") { // which the decoder skips
		return false
	}
	for _, part := range parts[:2] {
		var object map[string]any
		decoded, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil || json.Unmarshal(decoded, &object) != nil {
			return false
		}
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	return err == nil && len(signature) > 0
}

// fromBase64 decodes a text in any variant of base64, with or without line breaks.
func fromBase64(text string) (string, bool) {
	text = strings.TrimRight(strings.Join(strings.Fields(text), ""), "=")
	if text == "" {
		return "", false
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if decoded, err := encoding.DecodeString(text); err == nil && utf8.Valid(decoded) {
			return string(decoded), true
		}
	}
	return "", false
}
