//go:build e2e

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var encoding = base64.StdEncoding

// noSecrets searches the state, and all output of pulumi and the probe so far, for every secret of the stacks.
func noSecrets(t *testing.T, l *lab) {
	for _, stack := range []string{"infra", "apps"} {
		l.pulumi("preview", "--diff", "--stack", stack)
	}
	home := l.home()
	secrets := labSecrets(t, home)
	for _, stack := range []string{"infra", "apps"} {
		secrets = append(secrets, stackSecrets(t, l, stack)...)
	}
	require.Greater(t, len(secrets), 20, "the search must know the secrets")

	places := map[string]string{"output of commands": l.record.String()}
	for _, dir := range []string{"state", "logs", "project"} {
		err := filepath.WalkDir(filepath.Join(home, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			places[path] = string(data)
			return err
		})
		require.NoError(t, err)
	}
	require.Greater(t, len(places), 10, "the search must include the state")
	for place, text := range places {
		for _, secret := range secrets {
			for _, form := range []string{secret, encoding.EncodeToString([]byte(secret)), strings.ReplaceAll(secret, "\n", `\n`)} {
				if strings.Contains(text, form) {
					t.Errorf("%s holds a secret in plain text: %.12s…", place, secret)
				}
			}
		}
	}
}

// labSecrets returns the secrets that the lab supplied to the stacks.
func labSecrets(t *testing.T, home string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(home, "lab.json"))
	require.NoError(t, err)
	var settings struct {
		Secrets struct {
			ProxmoxToken, GitPassword string
		}
	}
	require.NoError(t, json.Unmarshal(data, &settings))
	_, uuid, found := strings.Cut(settings.Secrets.ProxmoxToken, "=")
	require.True(t, found)
	require.NotEmpty(t, settings.Secrets.GitPassword)
	return []string{uuid, settings.Secrets.GitPassword}
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
