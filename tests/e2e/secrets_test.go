//go:build e2e

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/e2e/leaks"
)

var encoding = base64.StdEncoding

// known returns the secrets that the lab has supplied and those in the states of the stacks.
func known(t *testing.T, l *lab) *leaks.Secrets {
	t.Helper()
	all := &leaks.Secrets{}
	add := func(name, value string) { require.NoError(t, all.Add(name, value)) }
	own := labSettings(t, l)
	_, uuid, _ := strings.Cut(own.ProxmoxToken, "=")
	add("proxmoxApiToken", uuid)
	add("gitPassword", own.GitPassword)

	token, err := os.ReadFile(filepath.Join(l.onepassword(), "token"))
	require.NoError(t, err)
	add("onepasswordToken", string(token[bytes.LastIndexByte(token, '.')+1:]))
	add("onepasswordStorageToken", string(token[bytes.LastIndexByte(token, '.')+1:])) // the lab has one for all vaults
	var credentials struct {
		UniqueKey      struct{ K string }
		EncCredentials struct{ Data string }
	}
	readJSON(t, filepath.Join(l.onepassword(), "1password-credentials.json"), &credentials)
	add("onepasswordCredentials", credentials.UniqueKey.K)
	add("onepasswordCredentials.data", credentials.EncCredentials.Data)
	add("the item in 1Password", probeItem(t, l))
	authority, err := os.ReadFile(filepath.Join(l.home(), "mesh-ca.pem"))
	require.NoError(t, err)
	add(cluster.MeshAuthorityKey, strings.Split(string(authority), "\n")[2]) // of the key, which comes first
	for _, stack := range []string{"infra", "apps"} {
		for i, secret := range stackSecrets(t, l, stack) {
			if len(secret) >= 16 {
				add(fmt.Sprintf("%d of the state of %s", i, stack), secret)
			}
		}
	}
	return all
}

// labSecrets are the secrets that the lab has made for Proxmox VE and Git.
type labSecrets struct{ ProxmoxToken, GitPassword string }

func labSettings(t *testing.T, l *lab) labSecrets {
	t.Helper()
	var file struct{ Secrets labSecrets }
	readJSON(t, filepath.Join(l.home(), "lab.json"), &file)
	return file.Secrets
}

func readJSON(t *testing.T, path string, value any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, value))
}

// In a decrypted state, a secret value is an object with this key and signature, and with the value as JSON in "plaintext".
const (
	signatureKey    = "4dabf18193072939515e22adb298388d"
	secretSignature = "1b47061264138c4ac30d75fd1eb44270"
)

// stackSecrets returns the key material in a stack's decrypted state.
func stackSecrets(t *testing.T, l *lab, stack string) []string {
	t.Helper()
	var state any
	require.NoError(t, json.Unmarshal([]byte(l.secret("pulumi", "stack", "export", "--show-secrets", "--stack", stack)), &state))
	found := map[string]bool{}
	collect(t, state, "", false, found)
	return slices.Sorted(maps.Keys(found))
}

// tokens are the keys of secrets that are not private keys, in the machine secrets and in Kubernetes Secrets.
var tokens = []string{"bootstrapToken", "secretboxEncryptionSecret", "aescbcEncryptionSecret", "secret", "token", "password"}

// collect walks a state and collects the key material inside secrets. Secrets may be nested.
func collect(t *testing.T, value any, key string, secret bool, found map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		if text, sealed := v["plaintext"].(string); sealed && v[signatureKey] == secretSignature {
			var inner any
			require.NoError(t, json.Unmarshal([]byte(text), &inner))
			collect(t, inner, key, true, found)
			return
		}
		for k, inner := range v {
			collect(t, inner, k, secret, found)
		}
	case []any:
		for _, inner := range v {
			collect(t, inner, key, secret, found)
		}
	case string:
		if !secret {
			return
		}
		for _, body := range privateKeys(v) {
			found[body] = true
		}
		if slices.Contains(tokens, key) && v != "" {
			found[v] = true
		}
	}
}

var (
	// The first line of an OpenSSH key is always the same.
	pemKey     = regexp.MustCompile(`PRIVATE KEY-----\s+(?:b3BlbnNzaC1rZXkt\S+\s+)?([A-Za-z0-9+/=]{40,})`)
	base64Text = regexp.MustCompile(`[A-Za-z0-9+/]{60,}={0,2}`)
)

// privateKeys returns the private keys in a text: the first line of each in PEM, and all of each in base64 of PEM.
func privateKeys(text string) []string {
	var all []string
	text = strings.ReplaceAll(text, `\n`, "\n")
	for _, match := range pemKey.FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	for _, token := range base64Text.FindAllString(text, -1) {
		if plain, err := encoding.DecodeString(token); err == nil && strings.Contains(string(plain), "PRIVATE KEY") {
			all = append(all, token)
		}
	}
	return all
}
