//go:build e2e

package e2e

import (
	"bytes"
	"crypto/rand"
	stdx509 "crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/siderolabs/crypto/x509"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
)

// TestRestore_ALostClusterComesBackFromASnapshot rehearses docs/recovery.md: expired certificates, a lost state, and the loss of all
// machines.
func TestRestore_ALostClusterComesBackFromASnapshot(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "restored", func(s settings) {
		planes := s.pool(0)["nodes"]
		oneNode(s)
		s.pool(0)["nodes"] = planes
	})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.part("certificates that have expired", expiredCertificates)
	l.part("a state that was lost", lostState)
	l.part("all machines lost", lostMachines)
	unprotectAndDestroy(l)
}

// wroteBefore are objects that are written before the snapshot.
const wroteBefore = `{"apiVersion": "v1", "kind": "List", "items": [
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "before", "namespace": "default"}, "data": {"key": "kept"}},
{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "before", "namespace": "default"}, "stringData": {"key": "kept"}},
{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "before", "namespace": "default"},
 "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "before"}}, "template": {"metadata": {"labels": {"app": "before"}},
  "spec": {"containers": [{"name": "before", "image": "registry.k8s.io/pause:3.10"}]}}}}]}`

// remindsOfRecovery is what Pulumi says while a snapshot is declared.
const remindsOfRecovery = `^warning: lifecycle.snapshots.recoverFrom: if no control plane has etcd`

// lostMachines takes a snapshot, destroys all VMs without Pulumi, and restores the cluster.
func lostMachines(l *lab) {
	t := l.t
	folder := t.TempDir()
	file := filepath.Join(folder, "objects.json")
	require.NoError(t, os.WriteFile(file, []byte(wroteBefore), 0o600))
	l.kubectl("apply", "--validate=false", "--filename="+file) // a busy API answers late with the schemas
	l.kubectl("wait", "--for=condition=Available", "--timeout=2m", "deployment/before")
	uid := l.field("namespace/kube-system", "{.metadata.uid}")

	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	const name = "infra-20260102T030405Z.db.age"
	l.takesSnapshot(l.talosconfigFile("infra"), identity.Recipient().String(), name)
	l.kubectl("create", "--namespace=default", "configmap", "after")

	destroyVMs(l)
	// Not of everything: the Kubernetes plugin fails without an API.
	l.pulumi("refresh", "--yes", "--skip-preview", "--target", "**-vm", "--target", "**-iso", "--stack", "infra")
	l.fails("all control planes are new, and etcd with the cluster's state is lost; declare lifecycle.snapshots.recoverFrom.*" + name)

	l.declare("lifecycle", map[string]any{"snapshots": map[string]any{"recoverFrom": "infra-20200102T030405Z.db"}})
	l.fails("infra-20200102T030405Z.db cannot be restored: .*; put the file there, or remove the key")
	l.pulumi("config", "set", "--stack", "infra", "--path", "slipway:lifecycle.snapshots.recoverFrom", name)
	l.fails("it is encrypted, and there is no identity of age.*pulumi config set --secret slipway:snapshotIdentity")
	l.setSecret("infra", "snapshotIdentity", identity.String())
	out := l.pulumiSays(remindsOfRecovery, "up", "--yes", "--skip-preview", "--stack", "infra")
	require.Contains(t, out, "etcd was restored from "+name)

	require.Equal(t, uid, l.field("namespace/kube-system", "{.metadata.uid}"), "it is the same cluster")
	require.Equal(t, "kept", l.kubectl("get", "--namespace=default", "configmap/before", "--output=jsonpath={.data.key}"))
	require.Equal(t, base64.StdEncoding.EncodeToString([]byte("kept")),
		l.kubectl("get", "--namespace=default", "secret/before", "--output=jsonpath={.data.key}"), "Secrets can be read")
	_, err = l.try("kubectl", "--context=admin@infra", "get", "--namespace=default", "configmap/after")
	require.Error(t, err, "it was written after the snapshot")
	l.kubectl("wait", "--namespace=default", "--for=condition=Available", "--timeout=2m", "deployment/before")
	members := strings.TrimSpace(l.in("talosctl", "--context=infra", "--nodes=10.25.11.11", "etcd", "members"))
	require.Len(t, strings.Split(members, "\n"), 1+3, "a header and the members:\n%s", members)
	fluxGoesOn(l)

	out = l.pulumiSays(remindsOfRecovery, "up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	require.Contains(t, out, "Remove the key once the cluster runs")
	l.pulumi("config", "rm", "--stack", "infra", "--path", "slipway:lifecycle.snapshots.recoverFrom")
	l.pulumi("config", "rm", "--stack", "infra", "slipway:snapshotIdentity")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	require.Equal(t, uid, l.field("namespace/kube-system", "{.metadata.uid}"))
}

// takesSnapshot puts a snapshot of etcd where a run looks for it.
func (l *lab) takesSnapshot(talosconfig, recipient, name string) {
	l.t.Helper()
	const take = `umask 077; mkdir -p "$XDG_STATE_HOME/slipway/snapshots"; cd "$1"
go run ./cmd/slipway-probe snapshot --talosconfig "$2" --recipient "$3" --to "$XDG_STATE_HOME/slipway/snapshots/$4"`
	l.in("sh", "-ec", take, "sh", l.project, talosconfig, recipient, name)
}

// destroyVMs destroys VMs in Proxmox VE, without Pulumi: those of these names, or all.
func destroyVMs(l *lab, names ...string) {
	l.t.Helper()
	left := len(l.status().VMs)
	for name, vm := range l.machines() {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		left--
		path := fmt.Sprintf("nodes/%s/qemu/%d", vm.Host, vm.ID)
		var upid string
		l.proxmox("POST", path+"/status/stop", &upid)
		l.eventually("the VM stops", func() bool {
			var current struct{ Status string }
			l.proxmox("GET", path+"/status/current", &current)
			return current.Status == "stopped"
		})
		l.proxmox("DELETE", path+"?purge=1&destroy-unreferenced-disks=1", &upid)
	}
	l.eventually("the VMs are gone", func() bool { return len(l.status().VMs) == left })
}

// fluxGoesOn asks Flux to fetch and apply again, and waits until it has.
func fluxGoesOn(l *lab) {
	l.t.Helper()
	at := time.Now().Format(time.RFC3339Nano)
	for _, object := range []string{"gitrepository/flux-system", "kustomization/flux-system"} {
		l.kubectl("annotate", "--namespace=flux-system", "--overwrite", object, "reconcile.fluxcd.io/requestedAt="+at)
	}
	l.eventually("Flux reconciles", func() bool {
		return l.kubectl("get", "--namespace=flux-system", "kustomization/flux-system",
			`--output=jsonpath={.status.lastHandledReconcileAt} {.status.conditions[?(@.type=="Ready")].status}`) == at+" True"
	})
}

// lostState goes on with a copy of the state, after the backend has lost it.
func lostState(l *lab) {
	l.pulumi("stack", "export", "--stack", "infra", "--file", filepath.Join(l.home(), "infra-state.json"))
	l.in("sh", "-ec", `rm -r "${PULUMI_BACKEND_URL#file://}/.pulumi/stacks"`)
	l.pulumi("stack", "init", "infra")
	l.fails("is not in this stack's state")
	l.pulumi("stack", "import", "--stack", "infra", "--file", filepath.Join(l.home(), "infra-state.json"))
	l.pulumi("preview", "--expect-no-changes", "--stack", "infra")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
}

// expiredCertificates puts client certificates into the state that have expired, as after a year without any run. The run after that renews
// them.
func expiredCertificates(l *lab) {
	t := l.t
	credentials := func() (talosconfig, kubeconfig string) {
		output := func(name string) string {
			return l.secret("pulumi", "--non-interactive", "stack", "output", "--show-secrets", name, "--stack", "infra")
		}
		return output("talosconfig"), output("kubeconfig")
	}
	talosBefore, kubeBefore := clientCertificates(t, credentials)
	state := l.secret("pulumi", "--non-interactive", "stack", "export", "--show-secrets", "--stack", "infra")
	certs := machineCertificates(t, state)
	for before, ca := range map[string]pair{talosBefore: certs.OS, kubeBefore: certs.K8s} {
		require.Contains(t, state, before)
		state = strings.ReplaceAll(state, before, expired(t, before, ca))
	}
	c := l.cmd(t.Context(), "exec", "--", "pulumi", "--non-interactive", "stack", "import", "--stack", "infra")
	c.Stdin = strings.NewReader(state)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)

	file := filepath.Join(t.TempDir(), "talosconfig")
	talosconfig, _ := credentials()
	require.NoError(t, os.WriteFile(file, []byte(talosconfig), 0o600))
	// With TLS 1.3, a client that writes at once may see the connection end before it has read why.
	l.eventually("Talos says that the certificate has expired", func() bool {
		said, err := l.try("talosctl", "--talosconfig="+file, "--nodes=10.25.11.11", "version")
		require.Error(t, err, "Talos has accepted an expired certificate")
		return strings.Contains(said, "expired")
	})

	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	talosAfter, kubeAfter := clientCertificates(t, credentials)
	for _, one := range []string{talosAfter, kubeAfter} {
		require.Greater(t, time.Until(certificate(t, one).NotAfter), 300*24*time.Hour)
	}
	talosconfig, _ = credentials()
	require.NoError(t, os.WriteFile(file, []byte(talosconfig), 0o600))
	l.in("talosctl", "--talosconfig="+file, "--nodes=10.25.11.11", "version")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	l.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
}

// clientCertificates returns the client certificates of the credentials, as they are in the state: PEM in base64.
func clientCertificates(t *testing.T, credentials func() (talosconfig, kubeconfig string)) (talos, kubernetes string) {
	t.Helper()
	talosconfig, kubeconfig := credentials()
	config, err := clientconfig.FromString(talosconfig)
	require.NoError(t, err)
	kube, err := clientcmd.Load([]byte(kubeconfig))
	require.NoError(t, err)
	for _, user := range kube.AuthInfos {
		kubernetes = base64.StdEncoding.EncodeToString(user.ClientCertificateData)
	}
	return config.Contexts[config.Context].Crt, kubernetes
}

// pair is a certificate and its key, each PEM in base64.
type pair struct{ Cert, Key string }

// machineCertificates returns the certificate authorities in a state with plain secrets.
func machineCertificates(t *testing.T, state string) (certs struct{ OS, K8s pair }) {
	t.Helper()
	var exported struct {
		Deployment struct {
			Resources []struct {
				Type    string         `json:"type"`
				Outputs map[string]any `json:"outputs"`
			} `json:"resources"`
		} `json:"deployment"`
	}
	require.NoError(t, json.Unmarshal([]byte(state), &exported))
	for _, one := range exported.Deployment.Resources {
		if one.Type == "talos:machine/secrets:Secrets" {
			text, err := json.Marshal(plainValue(t, one.Outputs["machineSecrets"]))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &struct{ Certs any }{&certs}))
		}
	}
	require.NotEmpty(t, certs.OS.Key)
	require.NotEmpty(t, certs.K8s.Key)
	return certs
}

// plainValue returns a value of the state without the objects that mark secrets.
func plainValue(t *testing.T, value any) any {
	t.Helper()
	object, is := value.(map[string]any)
	if !is {
		return value
	}
	if text, secret := object["plaintext"].(string); secret {
		var inner any
		require.NoError(t, json.Unmarshal([]byte(text), &inner))
		return plainValue(t, inner)
	}
	plain := map[string]any{}
	for key, one := range object {
		plain[key] = plainValue(t, one)
	}
	return plain
}

// certificate parses a certificate, PEM in base64.
func certificate(t *testing.T, text string) *stdx509.Certificate {
	t.Helper()
	decoded, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	block, _ := pem.Decode(decoded)
	require.NotNil(t, block)
	parsed, err := stdx509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return parsed
}

// expired returns the certificate with the same key and names that has expired, PEM in base64.
func expired(t *testing.T, text string, authority pair) string {
	t.Helper()
	decode := func(text string) []byte {
		decoded, err := base64.StdEncoding.DecodeString(text)
		require.NoError(t, err)
		return decoded
	}
	ca, err := x509.NewCertificateAuthorityFromCertificateAndKey(&x509.PEMEncodedCertificateAndKey{
		Crt: decode(authority.Cert), Key: decode(authority.Key),
	})
	require.NoError(t, err)
	former := certificate(t, text)
	next := &stdx509.Certificate{
		SerialNumber: big.NewInt(1), Subject: former.Subject, KeyUsage: former.KeyUsage, ExtKeyUsage: former.ExtKeyUsage,
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour),
	}
	signed, err := stdx509.CreateCertificate(rand.Reader, next, ca.Crt, former.PublicKey, ca.Key)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: signed}))
	return base64.StdEncoding.EncodeToString(out.Bytes())
}
