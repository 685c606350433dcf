//go:build e2e

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// noSecrets looks for every secret the stacks hold in what lies in the state, and in all that pulumi and the probe
// have printed so far.
func noSecrets(t *testing.T, l *lab) {
	for _, stack := range []string{"infra", "apps"} {
		l.pulumi("preview", "--diff", "--stack", stack)
	}
	home := strings.TrimSpace(l.in("sh", "-c", `echo "$SLIPWAY_LAB"`))
	secrets := labSecrets(t, home)
	for _, stack := range []string{"infra", "apps"} {
		secrets = append(secrets, stackSecrets(t, l, stack)...)
	}
	require.Greater(t, len(secrets), 20, "the search has to know the secrets")

	places := map[string]string{"what was printed": l.record.String()}
	for _, dir := range []string{"state", "logs", "stacks"} {
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
	require.Greater(t, len(places), 10, "the search has to look at the state")
	for place, text := range places {
		for _, secret := range secrets {
			for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), strings.ReplaceAll(secret, "\n", `\n`)} {
				if strings.Contains(text, form) {
					t.Errorf("%s holds a secret in plain text: %.12s…", place, secret)
				}
			}
		}
	}
}

// labSecrets are the ones that the lab supplied from outside.
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

// keyMaterial finds what is secret in a decrypted state: private keys in PEM or in base64 of it, tokens and secrets of
// the machine secrets by the names that Talos gives them.
var keyMaterial = []*regexp.Regexp{
	regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?:\\n|\n)([A-Za-z0-9+/=]{40,})`),
	regexp.MustCompile(`"(?:key|k8sServiceAccount)":\s*"([A-Za-z0-9+/=]{80,})"`),
	regexp.MustCompile(`client-key-data: ([A-Za-z0-9+/=]{80,})`),
	regexp.MustCompile(`"(?:bootstrapToken|secretboxEncryptionSecret|token|secret)":\s*"([^"]{16,})"`),
	regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/]*UFJJVkFURSBLRVkt([A-Za-z0-9+/=]{60,})`),
}

// stackSecrets are the ones in a stack's own decrypted state.
func stackSecrets(t *testing.T, l *lab, stack string) []string {
	t.Helper()
	state := strings.ReplaceAll(l.secret("pulumi", "stack", "export", "--show-secrets", "--stack", stack), `\"`, `"`)
	found := map[string]bool{}
	for _, form := range keyMaterial {
		for _, match := range form.FindAllStringSubmatch(state, -1) {
			found[match[1]] = true
		}
	}
	var all []string
	for secret := range found {
		if !strings.HasPrefix(secret, "[secret]") {
			all = append(all, secret)
		}
	}
	return all
}
