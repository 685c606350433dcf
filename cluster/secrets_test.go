package cluster_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
)

const password = "correct-horse-battery-staple"

// problemsOf returns the problems that Complete finds in the cluster of Pulumi.infra.yaml after the change. Keys that follow others
// keep the values derived before the change; those that the change empties are derived again. A test that needs a provider of secrets
// declares it.
func problemsOf(t *testing.T, change func(*cluster.Cluster)) []string {
	t.Helper()
	c := clusters.Infra(t)
	c.Providers, c.Storage.Vault = cluster.SecretProviders{}, ""
	change(c)
	var findings cluster.Findings
	c.Complete(&findings)
	var list []string
	for _, problem := range findings.All() {
		list = append(list, problem.Error())
	}
	return list
}

func TestGitPassword_MustHaveTheFormOfAPasswordAndIsNeverShown(t *testing.T) {
	const (
		control = "has a line break or another control character in it; " +
			"set it without, for instance with printf instead of echo"
		space = "begins or ends with white space; set it without, for instance with printf instead of echo"
	)
	for given, problem := range map[string]string{
		password + "\n":               control,
		"\t" + password:               control,
		password + "\n" + password:    control,
		password + "\x00":             control,
		password + " ":                space,
		" " + password:                space,
		"\u00a0" + password:           space,
		"https://x:" + password + "@": "is a URL; give the password or token alone",
	} {
		problems := problemsOf(t, func(c *cluster.Cluster) { c.GitPassword = cluster.NewSecret(given) })
		require.Equal(t, []string{"gitPassword: " + problem}, problems, "%q", given)
		assert.NotContains(t, problems[0], password)
	}
}

func TestGitPassword_MayContainAnythingElse(t *testing.T) {
	for name, given := range map[string]cluster.Secret{
		"words":                     cluster.NewSecret("correct horse battery"),
		"punctuation":               cluster.NewSecret(`p:a/s@s"w'ö%`),
		"encrypted in a stack file": cluster.EncryptedSecret(),
		"not given yet":             {},
	} {
		assert.Empty(t, problemsOf(t, func(c *cluster.Cluster) { c.GitPassword = given }), name)
	}
}

func TestSecretPatchesKey_IsTheKeyInTheFile(t *testing.T) {
	field, known := reflect.TypeFor[cluster.Secrets]().FieldByName("TalosSecretPatches")
	require.True(t, known)
	assert.Equal(t, cluster.SecretPatchesKey, field.Tag.Get("json"))
}

func TestSecrets_AComponentKnowsThoseThatItNeedsOnly(t *testing.T) {
	var all cluster.Secrets
	set := func(of reflect.Value) (names []string) {
		for field := range cluster.Keys(of.Type()) {
			if secret, is := of.FieldByIndex(field.Index).Interface().(cluster.Secret); is && secret.IsSet() {
				names = append(names, field.Name)
			}
		}
		return names
	}
	of := reflect.ValueOf(&all).Elem()
	for field := range cluster.Keys(of.Type()) {
		of.FieldByIndex(field.Index).Set(reflect.ValueOf(cluster.NewSecret("x")))
	}
	require.Greater(t, len(set(of)), 10)
	declared := &cluster.Cluster{Secrets: all}
	assert.Equal(t, []string{"ProxmoxAPIToken", "TalosSecretPatches", "SnapshotIdentity", "SnapshotAccessKey", "SnapshotSecretKey"},
		set(reflect.ValueOf(declared.Knowing(declared.OfMachines()).Secrets)))
	assert.Equal(t, []string{"MeshCA"}, set(reflect.ValueOf(declared.Knowing(declared.OfNetwork()).Secrets)))
	assert.Equal(t, all, declared.Secrets)
}
