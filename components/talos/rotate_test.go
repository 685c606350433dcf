package talos

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/rotate"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// generation declares generations of the CAs.
func generation(talos, kubernetes, etcd int) func(*cluster.Cluster) {
	return func(c *cluster.Cluster) {
		c.Lifecycle.CertificateAuthorities = cluster.CertificateAuthorities{
			Talos: talos, Kubernetes: kubernetes, Etcd: etcd, LeaveNamespaces: []string{"databases"},
		}
	}
}

// pem is base64 of PEM with key material.
func pem(name string) string {
	return base64.StdEncoding.EncodeToString([]byte("-----BEGIN " + name + "-----\naGk=\n-----END " + name + "-----\n"))
}

// rotated records the registration of a cluster of generations. Its machine secrets differ by the resources' names.
func rotated(t *testing.T, talos, kubernetes, etcd int, change ...func(*cluster.Cluster)) *mocks.Recorder {
	t.Helper()
	r := answers(&mocks.Recorder{})
	others := r.OnResource
	r.OnResource = func(one mocks.Registration) (resource.PropertyMap, error) {
		if one.Type != typeSecrets {
			return others(one)
		}
		secrets := machineSecrets()
		secrets["certs"].(map[string]any)["os"] = map[string]any{"cert": pem(one.Name), "key": pem("KEY " + one.Name)}
		secrets["certs"].(map[string]any)["k8s"] = map[string]any{"cert": pem("K8S " + one.Name), "key": pem("K8S KEY " + one.Name)}
		secrets["certs"].(map[string]any)["etcd"] = map[string]any{"cert": pem("ETCD " + one.Name), "key": pem("ETCD KEY " + one.Name)}
		secrets["trustdinfo"] = map[string]any{"token": "token of " + one.Name}
		return resource.NewPropertyMapFromMap(map[string]any{
			"machineSecrets": secrets,
			"clientConfiguration": map[string]any{
				"caCertificate": pem(one.Name), "clientCertificate": pem("CLIENT " + one.Name), "clientKey": pem("CLIENT KEY " + one.Name),
			},
		}), nil
	}
	require.NoError(t, r.Run(program(arguments(t, append(change, generation(talos, kubernetes, etcd))...), nil)))
	return r
}

func TestTalosCluster_OfTheFirstGenerationHasNoRotation(t *testing.T) {
	r := up(t)
	r.Only(t, typeSecrets)
	for _, command := range r.OfType(typeCommand) {
		assert.NotEqual(t, "infra-rotate", command.Name)
	}
}

func TestTalosCluster_ReplacesTheCABeforeEverythingElse(t *testing.T) {
	r := rotated(t, 3, 1, 1)
	run := r.Resource(t, "infra-rotate")
	require.Len(t, r.OfType(typeSecrets), 3)
	for _, secrets := range r.OfType(typeSecrets) {
		assert.True(t, r.After(run, secrets), secrets.Name)
		assert.True(t, secrets.Protect, secrets.Name)
		assert.Equal(t, []string{"talosVersion"}, secrets.IgnoreChanges, secrets.Name)
		assert.ElementsMatch(t, []string{"machineSecrets", "clientConfiguration"}, secrets.RPC.GetAdditionalSecretOutputs(), secrets.Name)
	}
	assert.True(t, r.After(run, r.Resource(t, "infra-hosts")), "a refused run replaces nothing")
	later := append(r.OfType(typeVM), r.OfType(typeApply)...)
	for _, later := range append(later, r.Resource(t, "infra-retire"), r.Resource(t, "infra-upgrade"), r.Resource(t, "infra-bootstrap")) {
		assert.True(t, r.After(later, run), later.Name)
	}
}

// machineSecretsOf returns the machine secrets from which each machine's configuration is made, as JSON.
func machineSecretsOf(t *testing.T, r *mocks.Recorder) (all []string) {
	t.Helper()
	for _, call := range r.Calls() {
		if call.Token != callConfiguration {
			continue
		}
		secrets := call.Args["machineSecrets"]
		if secrets.IsSecret() {
			secrets = secrets.SecretValue().Element
		}
		text, err := json.Marshal(secrets.Mappable())
		require.NoError(t, err)
		all = append(all, string(text))
	}
	require.Len(t, all, len(allMachines(t)))
	return all
}

func TestTalosCluster_TakesOnlyTheCAFromALaterGeneration(t *testing.T) {
	r := rotated(t, 3, 1, 1)
	for _, text := range machineSecretsOf(t, r) {
		assert.Contains(t, text, pem("infra-secrets-3"))
		assert.Contains(t, text, "token of infra-secrets\"")
		assert.NotContains(t, text, pem("infra-secrets"))
	}
	for _, apply := range r.OfType(typeApply) {
		assert.Equal(t, pem("CLIENT infra-secrets-3"), apply.Input("clientConfiguration.clientCertificate"))
	}
	assert.Equal(t, pem("infra-secrets-3"), r.Only(t, typeKubeconfig).Input("clientConfiguration.caCertificate"))
}

func TestTalosCluster_RotatesOnceForEachGeneration(t *testing.T) {
	run := rotated(t, 3, 1, 1).Resource(t, "infra-rotate")
	assert.Equal(t, probe.Program+" rotate", run.Input("create"))
	assert.Equal(t, probe.Program+" rotate --done", run.Input("update"), "another node, or a renewed client certificate, needs no rotation")
	text, err := json.Marshal(run.Input("triggers"))
	require.NoError(t, err)
	assert.JSONEq(t, `[{"talos": 3}]`, string(text), "a preview shows the generation")
	spec := specOf(t, run)
	assert.Equal(t, rotate.Talos, spec.Of)
	require.Len(t, spec.Authorities, 3)
	for i, name := range []string{"infra-secrets", "infra-secrets-2", "infra-secrets-3"} {
		assert.Equal(t, rotate.Authority{
			Certificate: pem(name), Key: pem("KEY " + name), ClientCertificate: pem("CLIENT " + name), ClientKey: pem("CLIENT KEY " + name),
		}, spec.Authorities[i])
	}
}

func TestTalosCluster_ANewClusterBeginsWithTheFirstGeneration(t *testing.T) {
	for _, preview := range []bool{true, false} {
		r := answers(&mocks.Recorder{RunHooks: true, DryRun: preview})
		err := r.Run(program(arguments(t, generation(2, 3, 4)), nil))
		require.ErrorContains(t, err, "lifecycle.certificateAuthorities.talos: is 2, and the cluster is new; remove the key")
		require.ErrorContains(t, err, "lifecycle.certificateAuthorities.kubernetes: is 3, and the cluster is new; remove the key")
		require.ErrorContains(t, err, "lifecycle.certificateAuthorities.etcd: is 4, and the cluster is new; remove the key")
		assert.Empty(t, r.OfType(typeVM))
	}
}

// specOf returns the spec of a run, which is valid.
func specOf(t *testing.T, run mocks.Registration) rotate.Spec {
	t.Helper()
	var spec rotate.Spec
	assert.True(t, run.SecretInput("stdin"))
	require.NoError(t, json.Unmarshal([]byte(run.Input("stdin").(string)), &spec))
	require.NoError(t, spec.Validate())
	assert.Len(t, spec.Nodes, len(allMachines(t)))
	return spec
}

func TestTalosCluster_ReplacesKubernetesCAAfterThatOfTalos(t *testing.T) {
	r := rotated(t, 2, 3, 1)
	run := r.Resource(t, "infra-kubernetes-rotate")
	assert.True(t, r.After(run, r.Resource(t, "infra-rotate")), "it has the new credentials")
	for _, later := range append(r.OfType(typeVM), r.Resource(t, "infra-retire"), r.Resource(t, "infra-upgrade")) {
		assert.True(t, r.After(later, run), later.Name)
	}
	text, err := json.Marshal(run.Input("triggers"))
	require.NoError(t, err)
	assert.JSONEq(t, `[{"kubernetes": 3}]`, string(text), "a preview shows the generation")
	spec := specOf(t, run)
	assert.Equal(t, rotate.Kubernetes, spec.Of)
	assert.Equal(t, []string{"databases"}, spec.LeaveNamespaces)
	assert.NotEmpty(t, spec.Talosconfig)
	require.Len(t, spec.Authorities, 3)
	for i, name := range []string{"infra-secrets", "infra-kubernetes-secrets-2", "infra-kubernetes-secrets-3"} {
		assert.Equal(t, rotate.Authority{Certificate: pem("K8S " + name), Key: pem("K8S KEY " + name)}, spec.Authorities[i])
	}
	for _, secrets := range r.OfType(typeSecrets) {
		assert.True(t, secrets.Protect, secrets.Name)
	}
}

func TestTalosCluster_HasAKubeconfigForEachGeneration(t *testing.T) {
	r := rotated(t, 1, 3, 1)
	kubeconfig := r.Only(t, typeKubeconfig)
	assert.Equal(t, "infra-kubeconfig-3", kubeconfig.Name, "a provider fetches one once")
	assert.True(t, r.After(kubeconfig, r.Resource(t, "infra-kubernetes-rotate")))
	for _, text := range machineSecretsOf(t, r) {
		assert.Contains(t, text, pem("K8S infra-kubernetes-secrets-3"))
		assert.Contains(t, text, pem("infra-secrets"), "Talos has its own CA")
		assert.NotContains(t, text, pem("K8S infra-secrets"))
	}
	assert.Equal(t, "infra-kubeconfig", up(t).Only(t, typeKubeconfig).Name)
}

func TestTalosCluster_ReplacesEtcdsCAAfterTheOthers(t *testing.T) {
	r := rotated(t, 2, 2, 3, func(c *cluster.Cluster) { c.NodePools[0].Nodes[2].Generation = 2 })
	run := r.Resource(t, "infra-etcd-rotate")
	assert.True(t, r.After(run, r.Resource(t, "infra-kubernetes-rotate")), "it drains by the Kubernetes API")
	for _, later := range append(r.OfType(typeVM), r.Resource(t, "infra-retire"), r.Resource(t, "infra-upgrade")) {
		assert.True(t, r.After(later, run), later.Name)
	}
	spec := specOf(t, run)
	assert.Equal(t, rotate.Etcd, spec.Of)
	assert.NotEmpty(t, spec.Talosconfig)
	assert.Empty(t, spec.LeaveNamespaces)
	assert.Positive(t, spec.Limits.DrainTimeout.Duration)
	for _, node := range spec.Nodes {
		assert.Zero(t, node.Generation, "a machine that is made anew after this run holds up no turn")
	}
	require.Len(t, spec.Authorities, 3)
	for i, name := range []string{"infra-secrets", "infra-etcd-secrets-2", "infra-etcd-secrets-3"} {
		assert.Equal(t, rotate.Authority{Certificate: pem("ETCD " + name), Key: pem("ETCD KEY " + name)}, spec.Authorities[i])
	}
	for _, text := range machineSecretsOf(t, r) {
		assert.Contains(t, text, pem("ETCD infra-etcd-secrets-3"))
		assert.NotContains(t, text, pem("ETCD infra-secrets"))
		assert.Contains(t, text, pem("K8S infra-kubernetes-secrets-2"), "Kubernetes has its own CA")
	}
}
