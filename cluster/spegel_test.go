package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mirrored returns the values of Spegel's chart with these mirrors.
func mirrored(t *testing.T, mirrors map[string][]string) map[string]any {
	t.Helper()
	values, _, err := Spegel{}.service(mirrors).Trees()
	require.NoError(t, err)
	return values
}

// Spegel gives back what Talos has written for the registries of its list only, and serves others only if _default is in it. Spegel's
// folder of a registry with a port is not Talos's.
func TestSpegel_KeepsTheDeclaredMirrors(t *testing.T) {
	mirrors := []string{"https://mirror.home.arpa"}
	values := mirrored(t, map[string][]string{
		"docker.io": mirrors, "*": mirrors, "a.io": {"http://b"}, "c.io:5000": mirrors, "[fd00::1]": mirrors,
	})
	assert.Equal(t, true, ValueAt(values, "spegel.prependExisting"))
	assert.Equal(t, []any{"_default", "https://a.io", "https://docker.io"}, ValueAt(values, "spegel.mirroredRegistries"))

	values = mirrored(t, map[string][]string{"docker.io": mirrors})
	assert.Equal(t, []any{"_default", "https://docker.io"}, ValueAt(values, "spegel.mirroredRegistries"))
}

func TestSpegel_WithoutMirrorsItServesEveryRegistryByDefault(t *testing.T) {
	assert.Equal(t, map[string]any{"spegel": map[string]any{"containerdRegistryConfigPath": "/etc/cri/conf.d/hosts"}}, mirrored(t, nil))
}

// Talos removes what Spegel has written when the mirrors change, and a pod of Spegel writes it only when it starts.
func TestSpegel_ItsPodsStartAgainForEachChangeOfTheMirrors(t *testing.T) {
	read := func(mirrors map[string][]string) any {
		annotations, _ := mirrored(t, mirrors)["podAnnotations"].(map[string]any)
		return annotations[AnnotationReads]
	}
	one := map[string][]string{"docker.io": {"https://mirror.home.arpa"}, "a.io": {"https://b"}}
	assert.NotEmpty(t, read(one))
	assert.Equal(t, read(one), read(map[string][]string{"a.io": {"https://b"}, "docker.io": {"https://mirror.home.arpa"}}))
	assert.NotEqual(t, read(one), read(map[string][]string{"docker.io": {"https://other.home.arpa"}, "a.io": {"https://b"}}))
}

// The service of a cluster has the cluster's mirrors.
func TestCluster_PassesItsMirrorsToSpegel(t *testing.T) {
	c := New("infra")
	c.Talos.RegistryMirrors = map[string][]string{"docker.io": {"https://mirror.home.arpa"}}
	services := c.allServices()
	require.Equal(t, "spegel", services[1].Key)
	values, own, err := services[1].Trees()
	require.NoError(t, err)
	for _, tree := range []map[string]any{values, own} {
		assert.Equal(t, []any{"_default", "https://docker.io"}, ValueAt(tree, "spegel.mirroredRegistries"))
		assert.Equal(t, true, ValueAt(tree, "spegel.prependExisting"))
	}
}
