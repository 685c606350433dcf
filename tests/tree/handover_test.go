package tree

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// waits says why a layer with the object becomes Ready only after something that no run brings: a volume, which a consumer of storage
// has only once it is connected, or a secret that a person puts into a vault or into DNS. It is "" if it does not wait.
//
// Other objects with volumes do not make Flux wait: the status of VMSingle and VLSingle has no condition Ready, nor has that of a
// CephCluster before Ceph is up.
func waits(object Object) string {
	const volume = "is not Ready without its volumes"
	switch {
	case object.Is("postgresql.cnpg.io", "Cluster"), object.Is("", "PersistentVolumeClaim"):
		return volume
	case object.Is("apps", "StatefulSet") && len(object.List("spec", "volumeClaimTemplates")) > 0:
		return volume
	case object.Is("external-secrets.io", "ExternalSecret"), object.Is("bitnami.com", "SealedSecret"):
		return "is not Ready without a secret that a person makes"
	case object.Is("cert-manager.io", "ClusterIssuer") && len(object.List("spec", "acme", "solvers")) > 0:
		return "is not Ready without an account of the ACME server"
	}
	if w, found := read(object); found {
		for _, pod := range w.pod.Spec.Volumes {
			if pod.PersistentVolumeClaim != nil {
				return volume
			}
		}
	}
	return ""
}

// waiting lists what the layers of a tree wait for, as LAYER: OBJECT, including what the charts make that can be rendered.
func waiting(t *testing.T, layers []Layer) (found []string) {
	t.Helper()
	for _, layer := range layers {
		if of := layer.Declaration.Unstructured; of != nil {
			if wait, _, _ := unstructured.NestedBool(of.Object, "spec", "wait"); !wait {
				continue // such a layer waits for its healthChecks only
			}
		}
		for _, object := range layer.Objects {
			objects := []Object{object}
			if object.Is(helmGroup, "HelmRelease") {
				made, _, err := Render(object)
				require.NoError(t, err, object.Title())
				objects = append(objects, made...)
			}
			for _, one := range objects {
				if why := waits(one); why != "" {
					found = append(found, layer.Name+": "+one.Title()+" "+why)
				}
			}
		}
	}
	return found
}

// The handover waits for all layers, and whatever must be done by hand comes after it.
func TestTree_AsDeclaredComesUpWithoutHands(t *testing.T) {
	for cluster, layers := range clusters(t) {
		switch {
		case strings.HasSuffix(cluster, " with a database"):
			assert.Equal(t, []string{"database: Cluster database/database is not Ready without its volumes"}, waiting(t, layers), cluster)
		case strings.HasSuffix(cluster, " with bgp, acme and dns"):
			assert.Len(t, waiting(t, layers), 5, "%s: two issuers, the key of the name server in two layers, and those of the bucket", cluster)
		case strings.HasSuffix(cluster, withMetrics):
			assert.Len(t, waiting(t, layers), 6, "%s: two issuers, and the token and the address of alerts in two layers each", cluster)
		case strings.HasSuffix(cluster, " with keys in Git"), strings.HasSuffix(cluster, withMetrics+", keys in Git"):
			assert.Len(t, waiting(t, layers), 2, "%s: two issuers", cluster)
		default:
			assert.Empty(t, waiting(t, layers), cluster)
		}
	}
}

// longest returns the longest time until Flux gives up on a layer for the first time: all that it waits for comes first.
func longest(t *testing.T, layers []Layer, name string) time.Duration {
	t.Helper()
	at := slices.IndexFunc(layers, func(layer Layer) bool { return layer.Name == name })
	require.GreaterOrEqual(t, at, 0, name)
	own, err := time.ParseDuration(layers[at].Declaration.Text("spec", "timeout"))
	require.NoError(t, err, name)
	var before time.Duration
	for _, on := range layers[at].Declaration.List("spec", "dependsOn") {
		before = max(before, longest(t, layers, on["name"].(string)))
	}
	return before + own
}

// Otherwise `up` gives up on a layer that Flux still waits for.
func TestTree_AsDeclaredHasTheTimeThatItsLayersMayTake(t *testing.T) {
	timeouts := map[string]time.Duration{}
	for _, stack := range stacks(t) {
		timeouts[stack.Identity.Name] = stack.GitOps.Timeout.Duration
	}
	trees := clusters(t)
	for _, cluster := range slices.Sorted(maps.Keys(timeouts)) {
		require.NotEmpty(t, trees[cluster+asDeclared])
		for _, layer := range trees[cluster+asDeclared] {
			if layer.Name != rootName {
				assert.LessOrEqual(t, longest(t, trees[cluster+asDeclared], layer.Name), timeouts[cluster],
					"%s: %s and what it waits for may take longer than gitops.timeout", cluster, layer.Name)
			}
		}
	}
}
