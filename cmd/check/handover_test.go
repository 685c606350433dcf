package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
)

func TestHandOver_WritesTheFileOfAComponentThatFluxOwnsAlready(t *testing.T) {
	file := fixtures.Write(t, fixtures.Minimal, "home")
	declared := fixtures.Get(fixtures.Minimal).Text + "  slipway:certManager: {owner: flux, values: {replicaCount: 2}}\n" +
		"  slipway:coreDNS: {owner: flux}\n"
	require.NoError(t, os.WriteFile(file, []byte(declared), 0o600))
	code, _, problems := checked(t, filepath.Dir(file), "home")
	assert.Equal(t, invalid, code)
	assert.Contains(t, problems, "certManager.owner: flux needs kubernetes/clusters/home/platform/cert-manager.yaml in the repository, "+
		"which does not exist; write it with: slipway handover-file home cert-manager\n")
	assert.NotContains(t, problems, "certManager.values", "the file takes them over")

	code, _, problems = handedOver(t, filepath.Dir(file), "home", "cert-manager")
	require.Equal(t, valid, code, problems)
	written, err := os.ReadFile(filepath.Join(filepath.Dir(file), "kubernetes", "clusters", "home", "platform", "cert-manager.yaml"))
	require.NoError(t, err)
	assert.Contains(t, string(written), "replicaCount: 2")

	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(declared, ", values: {replicaCount: 2}", "", 1)), 0o600))
	code, _, problems = handedOver(t, filepath.Dir(file), "home", "coredns", "coredns")
	require.Equal(t, valid, code, problems)
	code, _, problems = checked(t, filepath.Dir(file), "home")
	assert.Equal(t, valid, code, problems)
}

func TestHandOver_WritesTheFileOfAComponentThatFluxOwnsAlreadyOnlyIfItCan(t *testing.T) {
	file := fixtures.Write(t, fixtures.Minimal, "home")
	declared := fixtures.Get(fixtures.Minimal).Text + "  slipway:certManager: {owner: flux}\n"
	require.NoError(t, os.WriteFile(file, []byte(declared), 0o600))
	write(t, file, "clusters/home/platform/cert-manager.yaml", "kind: HelmRelease\n")
	code, _, problems := handedOver(t, filepath.Dir(file), "home", "cert-manager")
	assert.Equal(t, invalid, code)
	assert.Contains(t, problems, "kubernetes/clusters/home/platform/cert-manager.yaml: has 0 objects of kind HelmRepository")
}

func TestHandOver_WritesAFileThatIsAccepted(t *testing.T) {
	file := fixtures.Write(t, fixtures.Minimal, "home")
	code, out, problems := handedOver(t, filepath.Dir(file), "home", "cert-manager")
	require.Equal(t, valid, code, problems)
	written := filepath.Join("kubernetes", "clusters", "home", "platform", "cert-manager.yaml")
	assert.Contains(t, out, written+": written\n")
	assert.Contains(t, out, "write owner: flux below certManager")

	code, _, problems = checked(t, filepath.Dir(file), "home")
	assert.Equal(t, invalid, code, "it has two owners")
	assert.Contains(t, problems, "certManager.owner: pulumi, and kubernetes/clusters/home/platform/cert-manager.yaml declares a HelmRelease")

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append(text, "  slipway:certManager: {owner: flux}\n"...), 0o600))
	code, _, problems = checked(t, filepath.Dir(file), "home")
	assert.Equal(t, valid, code, problems)

	code, _, problems = handedOver(t, filepath.Dir(file), "home", "cert-manager")
	assert.Equal(t, invalid, code)
	assert.Contains(t, problems, "exists already")
	code, _, problems = handedOver(t, filepath.Dir(file), "home", "coredns", "cert-manager", "certmanager")
	assert.Equal(t, invalid, code)
	assert.Contains(t, problems, "exists already", "all problems are named")
	assert.NoFileExists(t, filepath.Join(filepath.Dir(file), "kubernetes", "clusters", "home", "platform", "coredns.yaml"), "all or none")
	assert.Contains(t, problems, `"certmanager" is no component of this stack with a Helm release; write one of cilium, coredns`)
}

// A repository of `slipway new` has a kustomization in the folder that Flux applies.
func TestHandOver_SaysWhichFilesToNameInTheKustomization(t *testing.T) {
	file := fixtures.Write(t, fixtures.Minimal, "home")
	write(t, file, "clusters/home/apps.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: apps}\n")
	write(t, file, "clusters/home/kustomization.yaml", "resources: [apps.yaml]\n")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append(text, "  slipway:certManager: {owner: flux}\n"...), 0o600))
	code, out, problems := handedOver(t, filepath.Dir(file), "home", "cert-manager", "cert-manager")
	require.Equal(t, valid, code, problems)
	const name = "name platform/cert-manager.yaml in the resources of kubernetes/clusters/home/kustomization.yaml"
	assert.Equal(t, 1, strings.Count(out, "Also "+name+".\n"), out)

	code, _, problems = checked(t, filepath.Dir(file), "home")
	assert.Equal(t, valid, code, problems)
	assert.Contains(t, problems, "warning: certManager.owner: flux, and Flux does not apply "+
		"kubernetes/clusters/home/platform/cert-manager.yaml; "+name)

	write(t, file, "clusters/home/kustomization.yaml", "resources: [apps.yaml, platform/cert-manager.yaml, platform/coredns.yaml]\n")
	_, _, problems = checked(t, filepath.Dir(file), "home")
	assert.NotContains(t, problems, "does not apply")
	require.NoError(t, os.WriteFile(file, append(text, "  slipway:certManager: {owner: flux}\n  slipway:coreDNS: {owner: flux}\n"...), 0o600))
	code, out, problems = handedOver(t, filepath.Dir(file), "home", "coredns")
	require.Equal(t, valid, code, problems)
	assert.NotContains(t, out, "Also")
}

func TestHandOver_WritesTheApplicationForArgoCDOnce(t *testing.T) {
	file := fixtures.Write(t, "argocd", "home")
	code, out, problems := handedOver(t, filepath.Dir(file), "home", "cert-manager")
	require.Equal(t, valid, code, problems)
	application := filepath.Join("kubernetes", "clusters", "home", "platform.yaml")
	assert.Contains(t, out, application+": is the Application; name it in the resources of the kustomization beside it\n")
	assert.Contains(t, out, "write owner: argocd below certManager")
	text, err := os.ReadFile(filepath.Join(filepath.Dir(file), application))
	require.NoError(t, err)
	assert.Contains(t, string(text), "path: kubernetes/clusters/home/platform\n")
	file = fixtures.Write(t, "argocd", "home")
	own := filepath.Join(filepath.Dir(file), application)
	require.NoError(t, os.MkdirAll(filepath.Dir(own), 0o700))
	require.NoError(t, os.WriteFile(own, []byte("# own\n"), 0o600))
	code, _, problems = handedOver(t, filepath.Dir(file), "home", "cert-manager", "argocd")
	require.Equal(t, valid, code, problems)
	text, err = os.ReadFile(own)
	require.NoError(t, err)
	assert.Equal(t, "# own\n", string(text), "it stays as it is")
}
