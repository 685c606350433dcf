//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// TestGitOps_EverySourceIsFetchedOrItsRefusalIsNamed lets Flux sync from every kind of source in the lab, one after the other in one
// cluster, each also with access that its host refuses. Then Flux is uninstalled, and one of `flux bootstrap` is refused and adopted.
func TestGitOps_EverySourceIsFetchedOrItsRefusalIsNamed(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "sources", func(s settings) {
		oneNode(s)
		delete(s, "slipway:secrets")
	})
	for _, part := range []struct {
		name string
		test func(*lab)
	}{
		{"a public repository", publicRepository},
		{"a CA of one's own", ownCA},
		{"a GitHub App", gitHubApp},
		{"an OCI artifact", ociArtifact},
		{"a bucket", bucket},
		{"a Flux of flux bootstrap", bootstrapped},
	} {
		l.part(part.name, part.test)
	}
	unprotectAndDestroy(l)
}

// part runs a part of a test as a sub-test, for which those before it may be needed. The test ends if it fails.
func (l *lab) part(name string, test func(*lab)) {
	whole := l.t
	defer func() { l.t = whole }()
	if !whole.Run(name, func(t *testing.T) {
		l.t = t
		test(l)
	}) {
		whole.FailNow()
	}
}

const (
	repository   = "https://git.home.arpa/platform/slipway.git"
	privateHost  = "git.home.arpa:8443"
	privateURL   = "https://" + privateHost + "/platform/slipway.git"
	untrusted    = `x509: certificate signed by unknown authority`
	gitRefuses   = `GitRepository flux-system/flux-system: .*`
	ociRefuses   = `OCIRepository flux-system/flux-system: .*`
	s3Refuses    = `Bucket flux-system/flux-system: .*`
	sourceSecret = "gitPassword gitIdentity githubAppPrivateKey ociConfig bucketAccessKey bucketSecretKey"
)

// publicRepository lets Flux read a repository without credentials, on a new cluster, and then one that asks for some.
func publicRepository(l *lab) {
	const public = "https://git.home.arpa/public/platform/slipway.git"
	l.pulumi("config", "get", "--stack", "infra", "--path", "slipway:gitops.url") // the lab copies the stack file
	l.source(map[string]any{"url": public, "public": true}, nil)
	l.syncs("GitRepository", public)
	l.source(map[string]any{"url": repository, "public": true}, nil)
	l.refuses(gitRefuses + "authentication required")
}

// ownCA lets Flux read from a host whose certificate is of a CA that the cluster does not trust, until it is declared.
func ownCA(l *lab) {
	password := map[string]string{"gitPassword": l.password()}
	l.source(map[string]any{"url": privateURL}, password)
	l.refuses(gitRefuses + untrusted)
	l.source(map[string]any{"url": privateURL, "ca": l.privateCA()}, password)
	l.syncs("GitRepository", privateURL)
}

// gitHubApp gives Flux access by a GitHub App: with a key of another one, with an installation that does not exist, by the installation's
// id, and by its owner at a host with a CA of its own.
func gitHubApp(l *lab) {
	t := l.t
	text, err := os.ReadFile(filepath.Join(l.home(), "git", "git.home.arpa-app", "private-key.pem"))
	require.NoError(t, err)
	key := map[string]string{"githubAppPrivateKey": string(text)}
	other, _ := newSealingPair(t, 0)
	byID := func(installation int) map[string]any {
		app := map[string]any{"id": 123456, "installationId": installation, "baseURL": "https://git.home.arpa/api/v3"}
		return map[string]any{"url": repository, "githubApp": app}
	}
	l.source(byID(78901234), map[string]string{"githubAppPrivateKey": other})
	l.refuses(gitRefuses + "401 A JSON web token could not be decoded")
	l.source(byID(1), key)
	l.refuses(gitRefuses + "404 Not Found")
	l.source(byID(78901234), key)
	l.syncs("GitRepository", repository)
	l.source(map[string]any{"url": privateURL, "ca": l.privateCA(), "githubApp": map[string]any{
		"id": 123456, "owner": "platform", "baseURL": "https://" + privateHost + "/api/v3",
	}}, key)
	l.syncs("GitRepository", privateURL)
}

// ociArtifact lets Flux sync from a registry: with a wrong password, without its CA, with both, and without a login.
func ociArtifact(l *lab) {
	t := l.t
	login := func(host, password string) map[string]string {
		text, err := json.Marshal(map[string]any{"auths": map[string]any{host: map[string]string{"username": "flux", "password": password}}})
		require.NoError(t, err)
		return map[string]string{"ociConfig": string(text)}
	}
	artifact := func(path string) map[string]any { return map[string]any{"url": "oci://" + path} }
	const host, private = "registry.home.arpa", "registry.home.arpa:8443"
	l.source(map[string]any{"oci": artifact(host + "/platform/slipway")}, login(host, "not "+l.password()))
	l.refuses(ociRefuses + "UNAUTHORIZED: authentication required")
	l.source(map[string]any{"oci": artifact(private + "/platform/slipway")}, login(private, l.password()))
	l.refuses(ociRefuses + untrusted)
	l.source(map[string]any{"oci": artifact(private + "/platform/slipway"), "ca": l.privateCA()}, login(private, l.password()))
	l.syncs("OCIRepository", "oci://"+private+"/platform/slipway")
	require.Regexp(t, `^latest@sha256:[0-9a-f]{64}$`, l.revision("OCIRepository"))
	l.source(map[string]any{"oci": artifact(host + "/public/slipway"), "public": true}, nil)
	l.syncs("OCIRepository", "oci://"+host+"/public/slipway")
}

// bucket lets Flux sync from a bucket: with a wrong secret key, with the right one at a host with a CA of its own, and without keys.
func bucket(l *lab) {
	keys := func(secret string) map[string]string {
		return map[string]string{"bucketAccessKey": "LABACCESSKEYOFBUCKET", "bucketSecretKey": secret}
	}
	private := map[string]any{"bucket": map[string]any{"endpoint": "s3.home.arpa:8443", "name": "platform"}, "ca": l.privateCA()}
	l.source(private, keys("not-"+l.password()))
	l.refuses(s3Refuses + "The request signature we calculated does not match the signature you provided")
	l.source(private, keys(l.password()))
	l.syncs("Bucket", "s3.home.arpa:8443")
	require.Regexp(l.t, `^sha256:[0-9a-f]{64}$`, l.revision("Bucket"))
	l.source(map[string]any{"bucket": map[string]any{"endpoint": "s3.home.arpa", "name": "public"}, "public": true}, nil)
	l.syncs("Bucket", "s3.home.arpa")
}

// password is that of every source of the lab.
func (l *lab) password() string {
	l.t.Helper()
	return labSettings(l.t, l).GitPassword
}

// privateCA is the certificate of the CA that nothing in the lab trusts by itself.
func (l *lab) privateCA() string {
	l.t.Helper()
	text, err := os.ReadFile(filepath.Join(l.home(), "private-ca.crt"))
	require.NoError(l.t, err)
	return string(text)
}

// source declares what infra syncs from, with its secrets and no others.
func (l *lab) source(declared map[string]any, secrets map[string]string) {
	l.t.Helper()
	editStackFile(l.t, l.stackFile("infra"), func(s settings) {
		gitops, _ := s["slipway:gitops"].(map[string]any)
		for _, key := range []string{"url", "oci", "bucket", "ca", "public", "githubApp"} {
			delete(gitops, key)
		}
		s.set("gitops", declared)
		for _, key := range strings.Fields(sourceSecret) {
			delete(s, "slipway:"+key)
		}
	})
	for key, value := range secrets {
		l.setSecret("infra", key, value)
	}
}

// timeout sets how long the handover waits for Flux.
func (l *lab) timeout(timeout string) {
	l.t.Helper()
	editStackFile(l.t, l.stackFile("infra"), func(s settings) { s.set("gitops", map[string]any{"timeout": timeout}) })
}

// refuses runs `pulumi up`, which must fail and say why the source is not fetched.
func (l *lab) refuses(pattern string) {
	l.t.Helper()
	l.timeout("40s")
	l.fails(pattern)
}

// syncs runs `pulumi up`, after which Flux has applied the tree from a source of a kind, and has no source of another kind.
func (l *lab) syncs(kind, url string) {
	t := l.t
	t.Helper()
	l.timeout("4m")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	const path = `{.spec.url}{.spec.endpoint} {.status.conditions[?(@.type=="Ready")].status}`
	require.Equal(t, url+" True", l.fluxField(kind, path))
	require.Equal(t, kind+" True", l.fluxField("Kustomization", `{.spec.sourceRef.kind} {.status.conditions[?(@.type=="Ready")].status}`))
	require.Equal(t, l.revision(kind), l.fluxField("Kustomization", "{.status.lastAppliedRevision}"))
	sources := strings.Fields(l.kubectl("get", "--namespace=flux-system", "gitrepositories,ocirepositories,buckets", "--output=name"))
	require.Len(t, sources, 1, "the sources that were declared before are gone")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
}

// revision returns what Flux has fetched from its source.
func (l *lab) revision(kind string) string {
	l.t.Helper()
	return l.fluxField(kind, "{.status.artifact.revision}")
}

// fluxField returns a field of Flux's source or root Kustomization.
func (l *lab) fluxField(kind, path string) string {
	l.t.Helper()
	return l.kubectl("get", "--namespace=flux-system", kind, "flux-system", "--output=jsonpath="+path)
}

// bootstrapped removes Flux, makes one as `flux bootstrap git` of an older Flux does, and lets Slipway take it over. It is refused with
// another path than its own. Then its files are removed from the repository.
func bootstrapped(l *lab) {
	t := l.t
	l.enable(false)
	const folder = "kubernetes/clusters/home"
	l.bootstraps("v2.8.8", folder)
	deployment := func(path string) string {
		return l.kubectl("get", "--namespace=flux-system", "deployment/source-controller", "--output=jsonpath="+path)
	}
	const version = `{.metadata.labels.app\.kubernetes\.io/version}`
	require.Equal(t, "v2.8.8", deployment(version))
	// The Secret of the bootstrap has another password than the stack.
	l.kubectl("patch", "--namespace=flux-system", "secret/flux-system", "--field-manager=flux", "--type=merge",
		`--patch={"stringData":{"password":"former"}}`)
	workload := func() string { return l.kubectl("get", "deployment/kept", "--output=jsonpath={.metadata.uid}") }
	controller, root, kept := deployment("{.metadata.uid}"), l.fluxField("Kustomization", "{.metadata.uid}"), workload()

	l.source(map[string]any{"url": repository, "enabled": true}, map[string]string{"gitPassword": l.password()})
	l.fails(`Kustomization flux-system/flux-system belongs to a Flux that this stack did not make, and would remove what it has applied: ` +
		`its path is \./` + folder + ` and not kubernetes/clusters/infra; declare in gitops what it syncs`)
	require.Equal(t, "v2.8.8", deployment(version), "a refusal changes nothing")
	require.Equal(t, "deployment.apps/helm-controller deployment.apps/kustomize-controller deployment.apps/source-controller",
		strings.Join(strings.Fields(l.kubectl("get", "--namespace=flux-system", "deployments", "--output=name")), " "))

	l.source(map[string]any{"url": repository, "path": folder}, map[string]string{"gitPassword": l.password()})
	adopted := func() {
		t.Helper()
		require.Equal(t, []string{controller, root, kept},
			[]string{deployment("{.metadata.uid}"), l.fluxField("Kustomization", "{.metadata.uid}"), workload()}, "nothing was made again")
		require.Equal(t, "v2.9.5", deployment(version), "flux-operator has upgraded it")
	}
	l.syncs("GitRepository", repository)
	adopted()

	require.NoError(t, os.RemoveAll(filepath.Join(l.project, folder, "flux-system")))
	l.change("without-gotk", nil)
	commit := l.head()
	l.eventually("Flux applies the repository without the files of the bootstrap", func() bool {
		return strings.HasSuffix(l.fluxField("Kustomization", "{.status.lastAppliedRevision}"), commit)
	})
	adopted()
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
	l.enable(false)
	require.Equal(t, kept, workload(), "what Flux has applied stays")
}

// enable turns GitOps on or off with a run.
func (l *lab) enable(yes bool) {
	l.t.Helper()
	l.pulumi("config", "set", "--stack", "infra", "--path", "slipway:gitops.enabled", fmt.Sprint(yes))
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
}

// head returns the commit of the project.
func (l *lab) head() string {
	l.t.Helper()
	return strings.TrimSpace(l.in("git", "-c", "safe.directory=*", "-C", l.project, "rev-parse", "HEAD"))
}

// bootstraps does what `flux bootstrap git --components=source-controller,kustomize-controller,helm-controller --token-auth --path=FOLDER`
// does: it commits the manifests of that Flux and of what it syncs, and applies them. The manifests are those that flux-operator has of
// that version, with the names and labels of `flux install`. The folder has a workload, too.
func (l *lab) bootstraps(version, folder string) {
	t := l.t
	t.Helper()
	write := func(name string, objects ...map[string]any) string {
		path := filepath.Join(l.project, folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, documents(t, objects), 0o600))
		return path
	}
	components := write("flux-system/gotk-components.yaml", l.fluxManifests(version)...)
	meta := map[string]any{"name": "flux-system", "namespace": "flux-system"}
	sync := write("flux-system/gotk-sync.yaml",
		map[string]any{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": meta, "spec": map[string]any{
			"interval": "1m0s", "ref": map[string]any{"branch": "main"}, "secretRef": map[string]any{"name": "flux-system"}, "url": repository,
		}},
		map[string]any{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": meta, "spec": map[string]any{
			"interval": "10m0s", "path": "./" + folder, "prune": true,
			"sourceRef": map[string]any{"kind": "GitRepository", "name": "flux-system"},
		}},
	)
	write("flux-system/kustomization.yaml", map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
		"resources": []any{"gotk-components.yaml", "gotk-sync.yaml"},
		// As docs/gitops.md says: Flux's own CRDs quote variables, which the cluster settings do not have.
		"commonAnnotations": map[string]any{"kustomize.toolkit.fluxcd.io/substitute": "disabled"}})
	pod := map[string]any{"containers": []any{map[string]any{"name": "kept", "image": "registry.k8s.io/pause:3.10"}}}
	labels := map[string]any{"app": "kept"}
	write("kept.yaml", map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "kept", "namespace": "default"},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pod}}})
	l.commit("bootstrap", nil)

	// As flux does; the namespace is still flux-operator's, which has left it.
	apply := []string{"apply", "--server-side", "--force-conflicts", "--field-manager=flux", "--filename"}
	l.kubectl(append(apply, components)...)
	l.kubectl("wait", "--for=condition=Established", "--timeout=1m", "crds", "--selector=app.kubernetes.io/part-of=flux")
	c := l.cmd(t.Context(), "exec", "--", "kubectl", "--context=admin@infra", "create", "--field-manager=flux", "--filename=-")
	c.Stdin = strings.NewReader(string(documents(t, []map[string]any{{"apiVersion": "v1", "kind": "Secret", "metadata": meta,
		"stringData": map[string]any{"username": "flux", "password": l.password()}}})))
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	l.kubectl(append(apply, sync)...)
	l.kubectl("wait", "--namespace=flux-system", "--for=condition=Ready", "--timeout=3m", "kustomization/flux-system")
}

// fluxManifests returns the manifests of a Flux with the three controllers that Slipway installs.
func (l *lab) fluxManifests(version string) []map[string]any {
	t := l.t
	t.Helper()
	var tools struct{ Data map[string]string }
	readJSON(t, filepath.Join(l.home(), "tools.json"), &tools)
	all := []map[string]any{{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "flux-system"}}}
	for _, file := range []string{"rbac", "policies", "source-controller", "kustomize-controller", "helm-controller"} {
		text, err := os.ReadFile(filepath.Join(tools.Data["flux-operator"], "flux", version, file+".yaml"))
		require.NoError(t, err)
		for _, document := range regexp.MustCompile(`(?m)^---$`).Split(string(text), -1) {
			var object map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(document), &object))
			if object != nil {
				all = append(all, object)
			}
		}
	}
	for _, object := range all {
		meta := object["metadata"].(map[string]any)
		labels, _ := meta["labels"].(map[string]any)
		if labels == nil {
			labels = map[string]any{}
		}
		labels["app.kubernetes.io/instance"], labels["app.kubernetes.io/part-of"] = "flux-system", "flux"
		labels["app.kubernetes.io/version"], meta["labels"] = version, labels
		switch object["kind"] {
		case "CustomResourceDefinition", "Namespace":
		case "ClusterRole", "ClusterRoleBinding":
			meta["name"] = meta["name"].(string) + "-flux-system"
			if role, bound := object["roleRef"].(map[string]any); bound && role["name"] != "cluster-admin" {
				role["name"] = role["name"].(string) + "-flux-system"
			}
		default:
			meta["namespace"] = "flux-system"
		}
		if object["kind"] == "Deployment" {
			pod := object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
			container := pod["containers"].([]any)[0].(map[string]any)
			container["image"] = "ghcr.io/" + container["image"].(string)
		}
	}
	require.Greater(t, len(all), 20)
	return all
}

// documents returns objects as YAML.
func documents(t *testing.T, objects []map[string]any) []byte {
	t.Helper()
	var text []byte
	for _, object := range objects {
		one, err := yaml.Marshal(object)
		require.NoError(t, err)
		text = append(append(text, "---\n"...), one...)
	}
	return text
}
