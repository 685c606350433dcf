//go:build e2e

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/siderolabs/crypto/x509"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/e2e/leaks"
)

// TestLifecycle_TalosCAIsReplacedUnderLoad replaces the CA of the Talos APIs of a cluster by its stack file and `pulumi up`.
func TestLifecycle_TalosCAIsReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "rotated", func(s settings) {
		s.withoutProviders()
		s.set("gitops", map[string]any{"enabled": false})
	})
	l.caGeneration("talos", 2)
	l.fails("lifecycle.certificateAuthorities.talos: is 2, and the cluster is new; remove the key")
	require.Empty(t, l.status().VMs)
	editStackFile(t, l.stackFile("infra"), func(s settings) { delete(s, "slipway:lifecycle") })
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	load := startLoad(l)
	load.during(l, []change{{"the CA of Talos's API, with a kill in the middle", talosCAReplaced}})
}

// allNodes are the addresses of infra's nodes.
var allNodes = []string{"10.25.11.11", "10.25.11.12", "10.25.11.13", "10.25.11.21", "10.25.11.22"}

// caGeneration declares a generation of a CA. Those of others stay.
func (l *lab) caGeneration(of string, number int) {
	l.t.Helper()
	editStackFile(l.t, l.stackFile("infra"), func(s settings) {
		lifecycle, _ := s["slipway:lifecycle"].(map[string]any)
		all, _ := lifecycle["certificateAuthorities"].(map[string]any)
		if all == nil {
			all = map[string]any{}
		}
		all[of] = number
		s.set("lifecycle", map[string]any{"certificateAuthorities": all})
	})
}

// talosCAReplaced kills the run when the first control plane has a certificate of the new CA. The next one goes on.
func talosCAReplaced(l *lab) {
	t := l.t
	before, boots, kubeconfig := l.talosconfigFile("before"), l.boots(), l.output("kubeconfig")
	l.caGeneration("talos", 2)
	preview := l.pulumiSays("generation 2 of Talos's CA", "preview", "--stack", "infra")
	require.Contains(t, preview, "generation 2 of Talos's CA replaces the former one before anything else is changed, in three "+
		"passes on all nodes")
	require.NotRegexp(t, `\+-\s*(kubernetes|proxmoxve):`, preview, "a preview replaces nothing for credentials that it does not know")

	up := l.up("infra")
	up.reaches("the first control plane has a certificate of the new CA", func() bool { return !l.answers(before, "10.25.11.11") })
	up.kill("infra")
	transitional := l.transitional()
	for _, node := range allNodes {
		require.True(t, l.answers(transitional, node), "%s refuses the new credentials", node)
	}
	out := l.pulumiSays(pendingOperations, "up", "--yes", "--skip-preview", "--stack", "infra")
	require.Contains(t, out, "generation 2 of Talos's CA")
	l.pulumiSays(pendingOperations, "refresh", "--clear-pending-creates", "--yes", "--skip-preview", "--stack", "infra")

	after := l.talosconfigFile("after")
	for _, node := range allNodes {
		require.True(t, l.answers(after, node), "%s refuses the new talosconfig", node)
		require.False(t, l.answers(before, node), "%s takes the former talosconfig", node)
	}
	l.in("talosctl", "--talosconfig="+after, "--endpoints=10.25.11.12", "--nodes=10.25.11.21", "version") // by another node
	require.Equal(t, boots, l.boots(), "a node has rebooted")
	require.Equal(t, kubeconfig, l.output("kubeconfig"), "Kubernetes has its own CA")
	l.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	newKeysAreHidden(l)

	l.caGeneration("talos", 1)
	said, err := l.try("pulumi", "--non-interactive", "--color=never", "preview", "--stack", "infra")
	require.Error(t, err, "a generation was given up")
	require.Regexp(t, `talos-secrets-2" cannot be deleted\s+because it is protected`, said)
	l.caGeneration("talos", 2)
}

// output returns a secret output of infra.
func (l *lab) output(name string) string {
	l.t.Helper()
	return l.secret("pulumi", "--non-interactive", "stack", "output", "--show-secrets", name, "--stack", "infra")
}

// talosconfigFile writes the talosconfig of infra to a file, and returns its path.
func (l *lab) talosconfigFile(name string) string {
	l.t.Helper()
	file := filepath.Join(l.t.TempDir(), name)
	require.NoError(l.t, os.WriteFile(file, []byte(l.output("talosconfig")), 0o600))
	return file
}

// answers tells whether a node's own API takes the credentials of a talosconfig.
func (l *lab) answers(talosconfig, node string) bool {
	_, err := l.try("talosctl", "--talosconfig="+talosconfig, "--endpoints="+node, "--nodes="+node, "version")
	return err == nil
}

// generationOf is what the state has of one generation of the CAs: base64 of PEM.
type generationOf struct {
	MachineSecrets      struct{ Certs struct{ OS, Etcd pair } }
	ClientConfiguration struct{ ClientCertificate, ClientKey string }
}

// generations returns the generations of the one CA that was replaced, oldest first.
func (l *lab) generations() (all []generationOf) {
	t := l.t
	t.Helper()
	var exported struct {
		Deployment struct {
			Resources []struct {
				Type    string         `json:"type"`
				Outputs map[string]any `json:"outputs"`
			} `json:"resources"`
		} `json:"deployment"`
	}
	text := l.secret("pulumi", "--non-interactive", "stack", "export", "--show-secrets", "--stack", "infra")
	require.NoError(t, json.Unmarshal([]byte(text), &exported))
	for _, one := range exported.Deployment.Resources {
		if one.Type != "talos:machine/secrets:Secrets" {
			continue
		}
		plain := map[string]any{}
		for key, value := range one.Outputs {
			plain[key] = plainValue(t, value)
		}
		text, err := json.Marshal(plain)
		require.NoError(t, err)
		var read generationOf
		require.NoError(t, json.Unmarshal(text, &read))
		all = append(all, read)
	}
	require.Len(t, all, 2)
	return all
}

// transitional writes a talosconfig with the newest client certificate that trusts the servers of all generations, and returns its path.
func (l *lab) transitional() string {
	t := l.t
	t.Helper()
	var bundle bytes.Buffer
	all := l.generations()
	for _, one := range all {
		bundle.Write(decoded(t, one.MachineSecrets.Certs.OS.Cert))
	}
	newest := all[len(all)-1].ClientConfiguration
	config := clientconfig.NewConfig("infra", nil, bundle.Bytes(), &x509.PEMEncodedCertificateAndKey{
		Crt: decoded(t, newest.ClientCertificate), Key: decoded(t, newest.ClientKey),
	})
	file := filepath.Join(t.TempDir(), "transitional")
	require.NoError(t, config.Save(file))
	return file
}

func decoded(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	require.NotEmpty(t, raw)
	return raw
}

// newKeysAreHidden searches the keys of all generations in the state and in what all commands have printed.
func newKeysAreHidden(l *lab) {
	t := l.t
	var secrets leaks.Secrets
	for i, one := range l.generations() {
		for name, key := range map[string]string{"CA": one.MachineSecrets.Certs.OS.Key, "client": one.ClientConfiguration.ClientKey} {
			text := middle(strings.TrimSpace(string(decoded(t, key))))
			require.NoError(t, secrets.Add(fmt.Sprintf("key of the %s of generation %d", name, i+1), text))
		}
	}
	require.Len(t, secrets.Names(), 4)
	found, files, err := secrets.Files(filepath.Join(l.home(), "state"))
	require.NoError(t, err)
	require.Positive(t, files)
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, append(found, secrets.Search("the output of all commands", bytes.Clone(l.record.Bytes()))...))
}
