package talos

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/machines"
)

// Fingerprint returns a text that changes with texts that may be secret. The text is not secret: a key of the cluster is part of the
// checksum, so nobody can find a short password by trying.
func (c *TalosCluster) Fingerprint(texts ...string) pulumi.StringOutput {
	sum := c.secrets.ApplyT(func(secrets machine.MachineSecrets) string {
		checksum := hmac.New(sha256.New, []byte(secrets.Cluster.Secret))
		checksum.Write([]byte(strings.Join(texts, "\x00")))
		return hex.EncodeToString(checksum.Sum(nil)[:8])
	})
	return pulumi.Unsecret(sum).(pulumi.StringOutput)
}

// sumOf returns a checksum of a machine and of its configuration. It is not secret: the configuration holds keys that nobody can guess.
func sumOf(of machines.Machine, configuration pulumi.StringOutput) pulumi.StringOutput {
	sum := configuration.ApplyT(func(text string) (string, error) {
		made, err := json.Marshal(of.Node)
		if err != nil {
			return "", err
		}
		return cluster.Checksum(string(made) + of.Hardware + "\x00" + text), nil
	}).(pulumi.StringOutput)
	return pulumi.Unsecret(sum).(pulumi.StringOutput)
}
