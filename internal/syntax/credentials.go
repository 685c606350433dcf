package syntax

import (
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"net"
	"net/url"
	"strings"

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
	block, _ := pem.Decode([]byte(text))
	switch {
	case block == nil && isInBase64(text, "-----BEGIN"):
		return because("is in base64 as a whole", "set the key's file as it is")
	case block == nil:
		return because("is not a key in PEM", remedyPEM)
	case strings.HasPrefix(block.Type, "ENCRYPTED") || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"):
		return because("has a passphrase, which Flux is not given", remedyAppKey)
	case strings.HasSuffix(block.Type, "PUBLIC KEY"):
		return because("is a public key", remedyAppKey)
	}
	if _, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if _, isRSA := key.(*rsa.PrivateKey); err == nil && isRSA {
		return nil
	}
	return because("is not an RSA private key that can be read", remedyAppKey)
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
		return because("is encrypted with a passphrase, which Flux is not given", "set what age --decrypt writes of it")
	case strings.Contains(text, "AGE-PLUGIN-"):
		return because("is a key of a plugin of age, which Flux does not have", remedyAgeKey)
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
	found := 0
	for rest := []byte(text); ; found++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
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
	case strings.Count(text, "-----BEGIN ") > found:
		return because("has a certificate that cannot be read", remedyPEM)
	case found == 0 && isInBase64(text, "-----BEGIN"):
		return because("is in base64 as a whole", "write the certificate's file as it is")
	case found == 0:
		return because("is not a certificate in PEM", remedyPEM)
	}
	return nil
}

// KnownHosts checks text in the form of OpenSSH's file known_hosts, as Flux reads it: it must have a key of the host of an ssh URL.
func KnownHosts(text, gitURL string) *Fault {
	parsed, err := url.Parse(gitURL)
	if err != nil {
		return nil // the URL is reported already
	}
	host, port := parsed.Hostname(), parsed.Port()
	check, _, err := knownhosts.New([]byte(text))
	if err != nil {
		return because("has a line that is not in the form of known_hosts", KeyScan(gitURL))
	}
	if port == "" {
		port = "22"
	}
	// No host has this key, so that the answer lists the keys that the text has for the host.
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

// isInBase64 reports whether a text is another one in base64 that contains the mark.
func isInBase64(text, mark string) bool {
	decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	return err == nil && strings.Contains(string(decoded), mark)
}
