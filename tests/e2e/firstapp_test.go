//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/tests/docs"
)

// addFirstApp adds the application of docs/first-app.md to a stack, and waits until all of it is there as the page says. A commit of the
// project is what its Git host serves. In the place of kubeseal, the test itself seals the Secret.
func (l *lab) addFirstApp(stack string, app docs.App) {
	t := l.t
	t.Helper()
	const password = "example"
	secret, err := yaml.Marshal(sealed(t, l.sealingCertificate(stack), "notes", "notes", "password", password))
	require.NoError(t, err)
	app.Secret = string(secret)
	l.writesFirstApp(app)
	line := filepath.Join(l.project, app.Cluster, "kustomization.yaml")
	list, err := os.ReadFile(line)
	require.NoError(t, err)
	if !strings.Contains(string(list), "  - notes.yaml\n") {
		require.NoError(t, os.WriteFile(line, append(list, "  - notes.yaml\n"...), 0o600))
	}
	l.commit("Add notes", nil)
	of := func(kind, path string) string {
		return strings.TrimSpace(l.in("kubectl", "--context=admin@"+stack, "--namespace=notes", "get", kind, "--output=jsonpath="+path))
	}
	l.applied(stack, "notes")

	require.Equal(t, "1 1", of("deployment/notes", "{.spec.replicas} {.status.availableReplicas}"))
	require.Equal(t, "restricted public", of("namespace/notes",
		`{.metadata.labels.pod-security\.kubernetes\.io/enforce} {.metadata.labels.gateway}`))
	require.Equal(t, password, l.decoded(stack, "notes", "notes", "password"))
	require.Regexp(t, `^notes\.\w+(\.\w+)+$`, of("httproute/notes", "{.spec.hostnames[0]}"), "the setting is replaced")
	l.eventually("the gateway takes the route, which leads to a Service", func() bool {
		return of("httproute/notes", `{.status.parents[0].conditions[?(@.type=="Accepted")].status} `+
			`{.status.parents[0].conditions[?(@.type=="ResolvedRefs")].status}`) == "True True"
	})
	if app.Volume {
		require.Equal(t, "Bound ceph-block", of("persistentvolumeclaim/notes", "{.status.phase} {.spec.storageClassName}"))
		require.Equal(t, "notes", of("deployment/notes",
			"{.spec.template.spec.volumes[?(@.persistentVolumeClaim)].persistentVolumeClaim.claimName}"))
	}
	if app.Chart {
		require.Equal(t, "True", of("helmrelease/notes", `{.status.conditions[?(@.type=="Ready")].status}`))
		require.Equal(t, "notes", of("deployment/notes", `{.metadata.annotations.meta\.helm\.sh/release-name}`))
	}
}

// writesFirstApp writes the files of the application, and removes those that are no part of it any more.
func (l *lab) writesFirstApp(app docs.App) {
	t := l.t
	t.Helper()
	files, err := app.Files(readDocument(t, docs.FirstAppPage))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(l.project, "kubernetes", "apps", "notes")))
	for name, text := range files {
		path := filepath.Join(l.project, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// applied waits until Flux has applied a Kustomization of the project's commit, and all of it is Ready.
func (l *lab) applied(stack, name string) {
	l.t.Helper()
	want, said := "True refs/heads/main@sha1:"+l.head(), ""
	defer func() {
		if l.t.Failed() {
			l.t.Logf("Kustomization %s: %s", name, said)
		}
	}()
	l.eventually("Flux has applied "+name, func() bool {
		said, _ = l.try("kubectl", "--context=admin@"+stack, "--namespace=flux-system", "get", "kustomization/"+name, "--output=jsonpath="+
			`{.status.conditions[?(@.type=="Ready")].status} {.status.lastAppliedRevision} {.status.conditions[?(@.type=="Ready")].message}`)
		return strings.HasPrefix(said, want)
	})
}
