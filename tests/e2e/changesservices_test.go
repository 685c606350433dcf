//go:build e2e

package e2e

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// providerAdded is the first provider of secrets, beside a change of how Proxmox VE is reached.
var providerAdded = run{rows: []row{
	{
		cell: "`secrets`: a provider added or removed, a version", does: "rollout of that provider; Secrets that exist stay",
		edit: func(s settings) { s.set("secrets", map[string]any{"sealedSecrets": map[string]any{}}) },
		arrived: func(l *lab) bool {
			return l.field("deployment/sealed-secrets-controller", "{.status.readyReplicas}") == "1"
		},
	},
	{
		cell: "`proxmox.endpoint`, `proxmox.insecure`", does: "nothing",
		before: func(l *lab) {
			said, err := l.refreshWithoutCA()
			require.Error(l.t, err, "the certificate is of a CA that nobody knows")
			require.Contains(l.t, said, "certificate signed by unknown authority")
		},
		edit: func(s settings) { s.set("proxmox", map[string]any{"insecure": true}) },
		arrived: func(l *lab) bool {
			_, err := l.refreshWithoutCA()
			return err == nil
		},
	},
	{
		cell: "`proxmox.nodes`, `nodePools[].hosts`, `proxmox.allowControlPlanesOnOneHost`", does: "nothing",
		edit: func(s settings) { s.set("proxmox", map[string]any{"allowControlPlanesOnOneHost": true}) },
	},
}}

// refreshWithoutCA reads a VM from Proxmox VE, with the plugin and without the lab's CA.
func (l *lab) refreshWithoutCA() (string, error) {
	l.t.Helper()
	return l.try("env", "SSL_CERT_FILE=/dev/null", "pulumi", "--non-interactive", "--color=never", "refresh", "--yes", "--skip-preview",
		"--stack", "infra", "--target", "**infra-worker-1-vm")
}

// keptSecret is what must stay the same of a Secret that Sealed Secrets has made.
func keptSecret(l *lab) string {
	l.t.Helper()
	return l.kubectl("get", "--namespace=default", "secret/kept", "--output=jsonpath={.metadata.uid} {.data.value}")
}

// servicesRemoved takes cert-manager and the provider away.
var servicesRemoved = run{
	rows: []row{
		{
			cell: "`certManager.enabled: false`", does: "cert-manager is removed with its namespace",
			edit: func(s settings) { s.set("certManager", map[string]any{"enabled": false}) },
			arrived: func(l *lab) bool {
				return l.kubectl("get", "namespace/cert-manager", "--ignore-not-found", "--output=name") == ""
			},
			stays: func(l *lab) string { // so that certificates stay
				return l.kubectl("get", "crd/certificates.cert-manager.io", "--output=jsonpath={.metadata.uid}")
			},
		},
		{
			cell: "`secrets`: a provider added or removed, a version", does: "rollout of that provider; Secrets that exist stay",
			before: func(l *lab) { // what is sealed with the key cannot be decrypted any more
				l.unseals("infra", sealed(l.t, l.sealingCertificate("infra"), "default", "kept", "value", "word"), "word")
				l.unprotect("secrets-sealing-key-1")
			},
			edit: func(s settings) { s["slipway:secrets"] = map[string]any{} },
			arrived: func(l *lab) bool {
				return l.kubectl("get", "--namespace=kube-system", "deployment/sealed-secrets-controller", "--ignore-not-found", "--output=name") == ""
			},
			stays: keptSecret,
		},
	},
	effect: effect{replaced: []string{`^cert-manager/`, `^kube-system/sealed-secrets-`}},
}

// fewerCopies keeps two copies of everything in Ceph, although a third worker has a disk. The other keys of its row are of no cluster that
// changes.
var fewerCopies = run{rows: []row{
	{
		cell: "`storage.role`, `storage.provider`, `storage.vault`, `storage.replicas`, `storage.local`", does: "nothing on pods by `up`",
		edit: func(s settings) { s.set("storage", map[string]any{"replicas": 2}) },
		arrived: func(l *lab) bool {
			return l.ceph("cephblockpool/block", "{.spec.replicated.size}") == "2"
		},
		stays: func(l *lab) string {
			return l.kubectl("get", "--namespace=default", "pvc/kept", "--output=jsonpath={.metadata.uid}")
		},
	},
	{
		cell: "`storage.classes`, `storage.drivers`", does: "nothing: the next gate of the storage waits for them",
		edit: func(s settings) {
			s.set("storage", map[string]any{"drivers": []any{"rook-ceph.rbd.csi.ceph.com"}})
			delete(s["slipway:storage"].(map[string]any), "classes")
		},
		arrived: func(l *lab) bool {
			report := l.pulumi("stack", "output", "--stack", "infra", "storageReport")
			return strings.Contains(report, `"outcome":"open"`) && !strings.Contains(report, "ceph-block")
		},
	},
}}

// otherNamespace gives a consumer that exists a RADOS namespace, and a vault of its own, as a new one would have it.
var otherNamespace = row{
	cell: "`storage.radosNamespace`", does: "refused for a consumer that stays one, if the cluster runs",
	edit: func(s settings) {
		s.set("storage", map[string]any{"radosNamespace": "apps", "vault": "storage-apps"})
	},
	says:  `storage\.radosNamespace: the cluster has none, and apps is declared; remove it`,
	stays: func(l *lab) string { return l.volumesOf("apps") },
}

// volumesOf is what the volumes of a consumer need: the class, the driver's users, where they come from, and what runs.
func (l *lab) volumesOf(stack string) string {
	l.t.Helper()
	const pods = "{range .items[*]}{.metadata.uid} {.status.containerStatuses[*].restartCount} {end}"
	get := []string{"kubectl", "--context=admin@" + stack, "get"}
	var all strings.Builder
	for _, object := range [][]string{
		{"storageclass/ceph-block", "{.metadata.uid} {.parameters.clusterID}"},
		{"clustersecretstore/onepassword-storage", "{.spec.provider.onepassword.vaults}"},
		{"clientprofiles", "{.items[*].metadata.name}", "rook-ceph"},
		{"configmap/cluster-settings", "{.data}", "flux-system"},
		{"pvc/kept", "{.metadata.uid} {.spec.volumeName} {.status.phase}", "default"},
		{"pods", pods, "rook-ceph"}, {"pods", pods, "default"},
		{"nodes", "{.items[*].status.nodeInfo.bootID}"},
	} {
		args := append(get[:len(get):len(get)], object[0], "--output=jsonpath="+object[1])
		if len(object) > 2 {
			args = append(args, "--namespace="+object[2])
		}
		fmt.Fprintln(&all, object[0], strings.TrimSpace(l.in(args...)))
	}
	for _, part := range []string{"node", "provisioner"} {
		key := l.secret("kubectl", "--context=admin@"+stack, "get", "--namespace=rook-ceph", "secret/rook-csi-rbd-"+part,
			"--output=jsonpath={.data.userID} {.data.userKey}")
		fmt.Fprintf(&all, "%s %x\n", part, sha256.Sum256([]byte(key)))
	}
	return all.String()
}

// newerFlux is the next minor release of Flux, with the next one of its operator. What Flux has applied stays.
var newerFlux = run{
	rows: []row{{
		cell: "`gitops.flux`, `gitops.operator`", does: "rollout of Flux; workloads go on",
		edit: func(s settings) {
			s.set("gitops", map[string]any{"flux": map[string]any{"version": "2.9.5"}, "operator": map[string]any{"version": "0.59.0"}})
		},
		arrived: func(l *lab) bool {
			return strings.HasPrefix(l.kubectl("get", "--namespace=flux-system", "fluxinstance/flux",
				"--output=jsonpath={.status.lastAppliedRevision}"), "v2.9.5@") &&
				strings.HasSuffix(l.kubectl("get", "--namespace=flux-system", "deployment/flux-operator",
					"--output=jsonpath={.spec.template.spec.containers[0].image} {.status.updatedReplicas}"), ":v0.59.0 1")
		},
		stays: func(l *lab) string { return l.greeting("{.metadata.uid} {.data.words}") + l.balancer("stays") },
	}},
	effect: effect{replaced: []string{`^flux-system/`}},
}

// noGitOps removes Flux, and keeps what it has applied.
var noGitOps = run{
	rows: []row{{
		cell: "`gitops.enabled: false`", does: "[Flux is removed]",
		edit: func(s settings) { s.set("gitops", map[string]any{"enabled": false}) },
		arrived: func(l *lab) bool {
			return !strings.Contains(l.kubectl("get", "crds", "--output=name"), "fluxcd") &&
				l.kubectl("get", "--namespace=flux-system", "pods", "--output=name") == ""
		},
		stays: func(l *lab) string { return l.greeting("{.metadata.uid} {.data.words}") + l.balancer("stays") },
	}},
	// Pulumi shows the warnings of Kubernetes about what it deletes; flux-operator may end while it acts.
	says:   `^warning: Reconciliation(Disabled: |Failed: reconciliation failed: .*context canceled)`,
	effect: effect{replaced: []string{`^flux-system/`}},
}

// waitsForCheck declares a check that does not hold, beside more memory of a node: the node keeps running until the check holds.
func waitsForCheck(l *lab) {
	const name, word = "infra-spare-1", "the queue is empty"
	l.kubectl("create", "configmap", "queue", "--namespace=default", "--from-literal=open=3")
	editStackFile(l.t, l.stackFile("infra"), func(s settings) {
		checks, _ := s["slipway:checks"].([]any) // a part before has declared one
		s["slipway:checks"] = append(checks, map[string]any{
			"name": word, "expression": "object.data.open == '0'",
			"objects": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "queue"},
		})
		s.pool(2)["memory"] = "17GiB"
	})
	before := l.boots()
	up := l.up("infra")
	up.reaches("the node waits for the check", func() bool { return strings.Contains(up.said(), word) })
	up.lasts(10 * time.Second) // the time in which a node begins its turn
	require.Equal(l.t, before, l.boots(), "nodes that have rebooted")
	require.Empty(l.t, l.field("nodes", "{.items[?(@.spec.unschedulable==true)].metadata.name}"), "nodes that are cordoned")
	l.kubectl("patch", "configmap", "queue", "--namespace=default", "--type=merge", `--patch={"data": {"open": "0"}}`)
	said, err := up.end(longest)
	require.NoError(l.t, err, "%s", end(said))
	after := l.boots()
	require.NotEqual(l.t, before[name], after[name])
	after[name] = before[name]
	require.Equal(l.t, before, after, "nodes that have rebooted, beside "+name)
}
