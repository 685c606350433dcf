//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLifecycle_KubernetesCAIsReplacedUnderLoad replaces the CA of the Kubernetes API of a cluster with Flux by its stack file and
// `pulumi up`.
func TestLifecycle_KubernetesCAIsReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "rotatedkube", func(s settings) {
		s.withoutProviders()
	})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	load := startLoad(l)
	load.during(l, []change{
		{"a pod that nothing restarts is named", barePodRefused},
		{"the CA of Kubernetes, with a kill in the middle", kubernetesCAReplaced},
	})
}

func barePodRefused(l *lab) {
	l.kubectl("run", "bare", "--image=registry.k8s.io/pause:3.10")
	roots := l.rootCAs()
	l.caGeneration("kubernetes", 2)
	l.fails(`(?s)this run has changed nothing: these pods read Kubernetes' CA when they start.*default/bare has no controller`)
	require.Equal(l.t, roots, l.rootCAs())
	l.kubectl("delete", "pod", "bare")
	l.pulumi("state", "unprotect", "--all", "--yes", "--stack", "infra")
	l.caGeneration("kubernetes", 1)
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
}

// kubernetesCAReplaced kills the run when the API server of the first control plane has a certificate of the new CA. The next one goes on.
func kubernetesCAReplaced(l *lab) {
	t := l.t
	before, boots, talosconfig := l.kubeconfigFile("before"), l.boots(), l.output("talosconfig")
	l.caGeneration("kubernetes", 2)
	preview := l.pulumiSays(otherKubeconfig, "preview", "--stack", "infra")
	require.Contains(t, preview, "generation 2 of Kubernetes's CA replaces the former one")
	require.Contains(t, preview, "Every Deployment, DaemonSet and StatefulSet whose pods use the Kubernetes API is restarted")
	require.NotRegexp(t, `\+-\s*(kubernetes|proxmoxve):`, preview, "a preview replaces nothing for credentials that it does not know")

	saved := l.snapshots()
	up := l.up("infra")
	up.reaches("the first API server has a certificate of the new CA", func() bool {
		said, err := l.askAPI(before, "10.25.11.11") // an API server that starts again does not answer
		return err != nil && strings.Contains(said, "certificate signed by unknown authority")
	})
	require.True(t, l.apiAnswers(before, "10.25.11.12"), "the API servers change one after the other")
	up.kill("infra")
	require.NotEqual(t, saved, l.snapshots(), "etcd was not saved before the new CA")
	require.Equal(t, "II true", l.rootCAs()["flux-system"], "pods trust both CAs")
	out := l.pulumiSays(pendingOperations, "up", "--yes", "--skip-preview", "--stack", "infra")
	require.Contains(t, out, "generation 2 of Kubernetes's CA")
	l.pulumiSays(pendingOperations, "refresh", "--clear-pending-creates", "--yes", "--skip-preview", "--stack", "infra")

	after := l.kubeconfigFile("after")
	for _, node := range []string{"10.25.11.11", "10.25.11.12", "10.25.11.13"} {
		require.True(t, l.apiAnswers(after, node), "%s refuses the new kubeconfig", node)
		said, err := l.try("kubectl", "--kubeconfig="+before, "--server=https://"+node+":6443", "--insecure-skip-tls-verify", "get", "nodes")
		require.Error(t, err, "%s takes the former kubeconfig", node)
		require.Contains(t, said, "must be logged in")
	}
	l.in("sh", "-c", `KUBECONFIG="$1:$KUBECONFIG" kubectl config view --flatten --raw >"$1.all" && cp "$1.all" "$KUBECONFIG"`, "merge", after)
	for namespace, root := range l.rootCAs() {
		require.Equal(t, "I", root, namespace)
	}
	require.Equal(t, boots, l.boots(), "a node has rebooted")
	require.Equal(t, talosconfig, l.output("talosconfig"), "Talos has its own CA")
	for workload, namespace := range map[string]string{
		"daemonset/cilium": "kube-system", "deployment/source-controller": "flux-system", "deployment/steady": "default",
	} {
		l.kubectl("rollout", "status", "--timeout=2m", "--namespace="+namespace, workload)
		require.NotEmpty(t, l.kubectl("get", "--namespace="+namespace, workload,
			`--output=jsonpath={.spec.template.metadata.annotations.kubectl\.kubernetes\.io/restartedAt}`), "%s was not restarted", workload)
	}
	l.kubectl("wait", "--for=condition=Ready", "--timeout=2m", "nodes", "--all")
	asked := time.Now().UTC().Format(time.RFC3339)
	l.kubectl("annotate", "--overwrite", "--namespace=flux-system", "kustomization/flux-system", "gitrepository/flux-system",
		"reconcile.fluxcd.io/requestedAt="+asked)
	for _, object := range []string{"gitrepository/flux-system", "kustomization/flux-system"} {
		l.kubectl("wait", "--namespace=flux-system", "--for=jsonpath={.status.lastHandledReconcileAt}="+asked, "--timeout=2m", object)
		l.kubectl("wait", "--namespace=flux-system", "--for=condition=Ready", "--timeout=2m", object)
	}
	l.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
}

// otherKubeconfig is a preview's message when the kubeconfig will change: it compares no object in the cluster.
const otherKubeconfig = `generation 2 of Kubernetes's CA|The provider for this resource has inputs that are not known during preview|` +
	`may not correctly represent the changes`

// rootCAs returns, by namespace, how many certificates pods trust API servers by, and whether the ConfigMap is immutable. The API server
// that is asked may have a certificate of either CA: a killed run may have changed it a moment before.
func (l *lab) rootCAs() map[string]string {
	l.t.Helper()
	found := map[string]string{}
	text := l.in("kubectl", "--kubeconfig="+l.kubeconfigFile("roots"), "--server=https://10.25.11.12:6443",
		"--insecure-skip-tls-verify", "get", "configmaps", "--all-namespaces", "--field-selector=metadata.name=kube-root-ca.crt",
		`--output=jsonpath={range .items[*]}{.metadata.namespace}={.immutable}={.data}{"\n"}{end}`)
	for line := range strings.Lines(text) {
		words := strings.SplitN(line, "=", 3)
		require.Len(l.t, words, 3, line)
		count := strings.Count(words[2], "BEGIN CERTIFICATE")
		require.Positive(l.t, count)
		found[words[0]] = strings.TrimSpace(strings.Repeat("I", count) + " " + words[1])
	}
	require.NotEmpty(l.t, found)
	return found
}

// kubeconfigFile writes the kubeconfig of infra to a file, and returns its path.
func (l *lab) kubeconfigFile(name string) string {
	l.t.Helper()
	file := filepath.Join(l.t.TempDir(), name)
	require.NoError(l.t, os.WriteFile(file, []byte(l.output("kubeconfig")), 0o600))
	return file
}

// askAPI asks a node's API server for its version with a kubeconfig, and returns what kubectl says.
func (l *lab) askAPI(kubeconfig, node string) (string, error) {
	return l.try("kubectl", "--kubeconfig="+kubeconfig, "--server=https://"+node+":6443", "--request-timeout=5s", "get", "--raw=/version")
}

// apiAnswers tells whether a node's API server takes the credentials of a kubeconfig, and is trusted by it.
func (l *lab) apiAnswers(kubeconfig, node string) bool {
	_, err := l.askAPI(kubeconfig, node)
	return err == nil
}
