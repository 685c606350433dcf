//go:build e2e

package e2e

import (
	stdx509 "crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/stretchr/testify/require"
)

// TestLifecycle_EtcdCAIsReplacedUnderLoad replaces the CA of etcd of a cluster by its stack file and `pulumi up`.
func TestLifecycle_EtcdCAIsReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "rotatedetcd", func(s settings) {
		s.withoutProviders()
		s.set("gitops", map[string]any{"enabled": false})
	})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	load := startLoad(l)
	load.during(l, []change{{"the CA of etcd, with a kill in the middle", etcdCAReplaced}})
}

// etcdCAReplaced kills the run when the first control plane has rebooted with both CAs. The next one goes on.
func etcdCAReplaced(l *lab) {
	t := l.t
	controlPlanes := allNodes[:3]
	boots, talosconfig, kubeconfig := l.boots(), l.output("talosconfig"), l.output("kubeconfig")
	former := l.etcdCAs(controlPlanes[0])
	require.Len(t, former, 1)
	l.caGeneration("etcd", 2)
	preview := l.pulumiSays("generation 2 of etcd's CA", "preview", "--stack", "infra")
	require.Regexp(t, `generation 2 of etcd's CA replaces the former one before anything else is changed,\s+in three passes on all control\s+`+
		`planes. Each of them is drained and reboots twice`, preview)

	saved := l.snapshots()
	up := l.up("infra")
	up.reaches("the first control plane has rebooted with both CAs", func() bool { return len(l.etcdCAs(controlPlanes[0])) == 2 })
	up.kill("infra")
	require.Equal(t, former, l.etcdCAs(controlPlanes[1]), "control planes change one after the other")
	require.NotEqual(t, saved, l.snapshots(), "etcd was not saved before the new CA")
	up = l.up("infra")
	up.reaches("all control planes accept only the new CA", func() bool {
		return !slices.ContainsFunc(controlPlanes, func(node string) bool {
			all := l.etcdCAs(node)
			return len(all) != 1 || all[0] == former[0]
		})
	})
	twice := l.bootIDs(controlPlanes)
	out, err := up.end(longest)
	require.NoError(t, err, "%s", end(out))
	require.Contains(t, out, "generation 2 of etcd's CA")
	require.Equal(t, twice, l.bootIDs(controlPlanes), "a control plane has rebooted once more, for the configuration that it had already")
	l.pulumiSays(pendingOperations, "refresh", "--clear-pending-creates", "--yes", "--skip-preview", "--stack", "infra")

	declared := string(decoded(t, l.generations()[1].MachineSecrets.Certs.Etcd.Cert))
	for _, node := range controlPlanes {
		require.Equal(t, []string{strings.TrimSpace(declared)}, l.etcdCAs(node), node)
		require.Contains(t, l.onNode(node, "etcd", "status"), node)
	}
	for name, boot := range l.boots() {
		if strings.Contains(name, "-cp-") {
			require.NotEqual(t, boots[name], boot, "%s has not rebooted", name)
		} else {
			require.Equal(t, boots[name], boot, "%s is a worker, and has rebooted", name)
		}
	}
	require.Equal(t, talosconfig, l.output("talosconfig"), "Talos has its own CA")
	require.Equal(t, kubeconfig, l.output("kubeconfig"), "Kubernetes has its own CA")
	l.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
}

// bootIDs returns the ids of the boots of nodes, as the machines say.
func (l *lab) bootIDs(nodes []string) (all []string) {
	l.t.Helper()
	for _, node := range nodes {
		all = append(all, strings.TrimSpace(l.onNode(node, "read", "/proc/sys/kernel/random/boot_id")))
	}
	return all
}

// etcdCAs returns the certificates of the CAs that a control plane has for etcd, in PEM, the one that issues first; none while it does not
// answer.
func (l *lab) etcdCAs(node string) (all []string) {
	text, err := l.try("talosctl", "--context=infra", "--nodes="+node, "get", "etcdrootsecrets", "--output=jsonpath={.spec.etcdCA.crt}")
	if err != nil {
		return nil
	}
	const end = "-----END CERTIFICATE-----"
	for one := range strings.SplitAfterSeq(string(decoded(l.t, strings.TrimSpace(text))), end) {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	return all
}

// etcdCAReallyReplaced also connects to etcd itself, which the lab's own nodes do not have.
func etcdCAReallyReplaced(l *lab) {
	t := l.t
	before := l.bootID()
	l.caGeneration("etcd", 2)
	l.upTo("talos-etcd-rotate", true)
	require.NotEqual(t, before, l.bootID(), "the machine has not rebooted")
	all := l.generations()
	require.Len(t, l.etcdCAs(realNode), 1)
	require.Equal(t, `{"health":"true","reason":""}`, l.asksEtcd(all[1].MachineSecrets.Certs.Etcd, all[1].MachineSecrets.Certs.Etcd))
	require.Regexp(t, `certificate|alert`, l.asksEtcd(all[1].MachineSecrets.Certs.Etcd, all[0].MachineSecrets.Certs.Etcd),
		"it takes a client of the former CA")
	require.Contains(t, l.asksEtcd(all[0].MachineSecrets.Certs.Etcd, all[1].MachineSecrets.Certs.Etcd), "certificate",
		"it has a certificate of the former CA")
	l.isSchedulable()
}

// asksEtcd asks the etcd of the machine how it is, and returns what curl says. One CA has to have signed the server's certificate; another
// one signs the client's.
func (l *lab) asksEtcd(server, client pair) string {
	t := l.t
	t.Helper()
	ca, err := x509.NewCertificateAuthorityFromCertificateAndKey(&x509.PEMEncodedCertificateAndKey{
		Crt: decoded(t, client.Cert), Key: decoded(t, client.Key),
	})
	require.NoError(t, err)
	now := time.Now()
	own, err := x509.NewKeyPair(ca, x509.CommonName("asks"), x509.NotBefore(now.Add(-time.Hour)), x509.NotAfter(now.Add(time.Hour)),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature), x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}))
	require.NoError(t, err)
	folder := t.TempDir()
	for name, text := range map[string][]byte{"ca": decoded(t, server.Cert), "crt": own.CrtPEM, "key": own.KeyPEM} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	said, _ := l.try("curl", "--silent", "--show-error", "--max-time", "20",
		"--cacert", folder+"/ca", "--cert", folder+"/crt", "--key", folder+"/key", "https://"+realNode+":2379/health")
	return strings.TrimSpace(said)
}
