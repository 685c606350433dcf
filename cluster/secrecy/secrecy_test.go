package secrecy

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each text or name is recognised by all that look for its kind.
func TestTable_RecognisesSecrets(t *testing.T) {
	for _, text := range []string{"ghp_0123456789", "x ghp_0123456789", "glpat-0123456789", "hvs.CAESIJ0123", "sk-0123456789abcdefgh",
		"eyJhbGciOiJSUzI1NiIs"} {
		assert.True(t, IsToken(text), text)
		assert.True(t, HasToken(text), text)
		assert.True(t, Like(text), text)
		assert.NotContains(t, Line(text), "0123", text)
		assert.NotContains(t, HideInKeys("a."+text), "0123", text)
	}
	for _, text := range []string{
		"-----BEGIN PRIVATE KEY-----", "AGE-SECRET-KEY-1X", "https://u:p@h", "https://u:@h", "https://u:p'x@h", "--token=x", "apiKey=x",
		"https://hooks.slack.com/services/T0/B0/x", "https://discord.com/api/webhooks/1/x", "https://home.webhook.office.com/webhookb2/x",
		"0123456789abcdef0123456789abcdef", "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
	} {
		assert.True(t, Like(text), text)
	}
	for _, name := range []string{"password", "passwd", "spec.adminPassword", "apiToken", "credentials", "private", "/a/auth", "tls/key",
		"psk", "clientSecret", "passphrase"} {
		assert.True(t, Named(name), name)
	}
	for _, name := range []string{"passwordFile", "mytoken", "secretName", "credentialProvider", "privateKey"} {
		assert.True(t, Mentioned(name), name)
	}
	assert.True(t, HasPassword("user:hunter2@h"))
	assert.True(t, HasPassword("password=hunter2"))
}

func TestTable_LeavesOrdinaryTextAndNames(t *testing.T) {
	for _, text := range []string{"task-controller-manager-1", "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi0", "https://a.b:8006/c",
		"registry.k8s.io/kube-apiserver:v1.35.8", "10.25.11.0/24", "", "--dns01-recursive-nameservers-only",
		"a-name-in-words-that-is-longer-than-most", "ValidatingAdmissionPolicyConfiguration",
		"https://slack.com/help", "https://discord.com/developers"} {
		assert.False(t, Like(text), text)
		assert.False(t, HasPassword(text), text)
	}
	for _, name := range []string{"maxPods", "authorization", "keys", "replicas"} {
		assert.False(t, Named(name), name)
		assert.False(t, Mentioned(name), name)
	}
	for _, line := range []string{"invalid credentials: refused", "pod task-controller-manager-1 is https://a.b:8006/c"} {
		assert.Equal(t, line, Line(line))
	}
}
