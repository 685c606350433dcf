//go:build e2e

package e2e

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha512"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// TestGitOps_AccessAndKeysAreTriedWhenTheyChange changes the keys of SOPS and Flux's access to its source. Each run ends only once Flux has
// used what is new. Then GitOps is removed, which leaves what Flux has applied, and comes back.
func TestGitOps_AccessAndKeysAreTriedWhenTheyChange(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "access", func(s settings) {
		oneNode(s)
		delete(s, "slipway:secrets")
		s.set("gitops", map[string]any{"timeout": "3m"})
	})
	first, second := newAgeKey(t), newAgeKey(t)
	l.encrypts("first", first)
	l.commit("first", nil)
	l.setSecret("infra", "sopsAgeKey", first.String())
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(t, "first", l.decoded("infra", "default", "encrypted", "value"))

	l.setSecret("infra", "sopsAgeKey", second.String())
	l.fails(`Kustomization flux-system/flux-system: .*(decrypt|SOPS)`)
	l.setSecret("infra", "sopsAgeKey", first.String()+"\n"+second.String())
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.encrypts("second", second)
	l.change("second", nil)
	l.eventually("Flux decrypts with the second key", func() bool {
		return l.decoded("infra", "default", "encrypted", "value") == "second"
	})
	l.setSecret("infra", "sopsAgeKey", second.String())
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")

	password := labSettings(t, l).GitPassword
	l.setSecret("infra", "gitPassword", "not "+password)
	l.fails(`GitRepository flux-system/flux-system: .*(401|[Aa]uth)`)
	keys := filepath.Join(l.home(), "git", "git.home.arpa-ssh")
	l.syncsBySSH(keys, filepath.Join(keys, "identity"))
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(t, "ssh://git@git.home.arpa/platform/slipway.git True", l.kubectl("get", "--namespace=flux-system", "gitrepository/flux-system",
		`--output=jsonpath={.spec.url} {.status.conditions[?(@.type=="Ready")].status}`))
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")

	l.removesGitOps()
	unprotectAndDestroy(l)
}

// removesGitOps removes Flux, and lets it come back.
func (l *lab) removesGitOps() {
	t := l.t
	t.Helper()
	const applied = "ciliumloadbalancerippool/infra"
	uid := l.field(applied, "{.metadata.uid}")
	enable := func(yes string) {
		l.pulumi("config", "set", "--stack", "infra", "--path", "slipway:gitops.enabled", yes)
	}
	enable("false")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(t, "secret/flux-operator-entitlement", // which flux-operator makes, and leaves
		l.kubectl("get", "--namespace=flux-system", "deployments,secrets", "--output=name"), "Flux is gone")
	require.Equal(t, uid, l.field(applied, "{.metadata.uid}"), "what Flux has applied stays")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")

	enable("true")
	foreign := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "source-controller", "namespace": "flux-system",
			"labels": map[string]any{"app.kubernetes.io/part-of": "flux", "app.kubernetes.io/version": "v2.99.0"},
		},
		"spec": map[string]any{
			"replicas": 0, "selector": map[string]any{"matchLabels": map[string]any{"app": "source-controller"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "source-controller"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "manager", "image": "ghcr.io/fluxcd/source-controller:v2.99.0"}}},
			},
		},
	}
	l.apply("infra", foreign)
	l.fails(`Deployment flux-system/source-controller is of Flux v2\.99\.0, and gitops\.flux\.version is .*, which is older`)
	l.kubectl("delete", "--namespace=flux-system", "deployment/source-controller")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(t, uid, l.field(applied, "{.metadata.uid}"), "Flux adopts what is there")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")

	// The policy takes effect with a run of its own, which removes nothing yet.
	l.pulumi("config", "set", "--stack", "infra", "--path", "slipway:gitops.deletionPolicy", "delete")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(t, uid, l.field(applied, "{.metadata.uid}"), "the policy alone removes nothing")
	enable("false")
	// Pulumi shows the warnings of Kubernetes about what it deletes.
	l.pulumiSays(`^warning: ReconciliationDisabled: `, "up", "--yes", "--skip-preview", "--stack", "infra")
	out, err := l.try("kubectl", "--context=admin@infra", "get", applied)
	require.Error(t, err, "Flux removes what it has applied")
	require.Contains(t, out, "NotFound")
	require.Equal(t, "secret/flux-operator-entitlement",
		l.kubectl("get", "--namespace=flux-system", "deployments,secrets", "--output=name"), "Flux is gone")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
}

// syncsBySSH makes infra sync by SSH with a key.
func (l *lab) syncsBySSH(keys, identity string) {
	t := l.t
	t.Helper()
	hosts, err := os.ReadFile(filepath.Join(keys, "known_hosts"))
	require.NoError(t, err)
	key, err := os.ReadFile(identity)
	require.NoError(t, err)
	l.pulumi("config", "rm", "--stack", "infra", "slipway:gitPassword")
	editStackFile(t, l.stackFile("infra"), func(s settings) {
		s.set("gitops", map[string]any{"url": "ssh://git@git.home.arpa/platform/slipway.git", "knownHosts": string(hosts)})
	})
	l.setSecret("infra", "gitIdentity", string(key))
}

func newAgeKey(t *testing.T) *age.X25519Identity {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	return key
}

// encrypts writes a Secret into the cluster's folder whose value is encrypted for a key.
func (l *lab) encrypts(value string, key *age.X25519Identity) {
	t := l.t
	t.Helper()
	file := filepath.Join(l.project, "kubernetes", "clusters", "infra", "encrypted.yaml")
	require.NoError(t, os.WriteFile(file, encryptedSecret(t, value, key.Recipient()), 0o600))
}

// encryptedSecret returns a file as `sops encrypt --age` writes it: each value is encrypted with a new key by AES-GCM, which
// authenticates the value's path, too; age encrypts that key; and a checksum covers all values in their order.
func encryptedSecret(t *testing.T, value string, recipient age.Recipient) []byte {
	t.Helper()
	key := make([]byte, 32)
	_, err := rand.Read(key)
	require.NoError(t, err)
	var wrapped bytes.Buffer
	armored := armor.NewWriter(&wrapped)
	to, err := age.Encrypt(armored, recipient)
	require.NoError(t, err)
	_, err = to.Write(key)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	require.NoError(t, armored.Close())

	checksum := sha512.New()
	for _, one := range []string{"v1", "Secret", "encrypted", "default", value} {
		checksum.Write([]byte(one))
	}
	now := time.Now().UTC().Format(time.RFC3339)
	text, err := yaml.Marshal(map[string]any{
		"sops": map[string]any{
			"age":             []any{map[string]any{"recipient": fmt.Sprint(recipient), "enc": wrapped.String()}},
			"lastmodified":    now,
			"mac":             encryptedValue(t, key, fmt.Sprintf("%X", checksum.Sum(nil)), now),
			"encrypted_regex": "^(data|stringData)$", "version": "3.11.0",
		},
	})
	require.NoError(t, err)
	return []byte(strings.Join([]string{
		"apiVersion: v1", "kind: Secret", "metadata:", "  name: encrypted", "  namespace: default", "stringData:",
		"  value: " + encryptedValue(t, key, value, "stringData:value:"), string(text),
	}, "\n"))
}

func encryptedValue(t *testing.T, key []byte, value, authenticated string) string {
	t.Helper()
	block, err := aes.NewCipher(key)
	require.NoError(t, err)
	gcm, err := cipher.NewGCMWithNonceSize(block, 32)
	require.NoError(t, err)
	nonce := make([]byte, 32)
	_, err = rand.Read(nonce)
	require.NoError(t, err)
	sealed := gcm.Seal(nil, nonce, []byte(value), []byte(authenticated))
	data, tag := sealed[:len(value)], sealed[len(value):]
	return fmt.Sprintf("ENC[AES256_GCM,data:%s,iv:%s,tag:%s,type:str]", encoding.EncodeToString(data), encoding.EncodeToString(nonce),
		encoding.EncodeToString(tag))
}
