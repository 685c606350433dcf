package chart_test

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/components/cilium/chart"
)

func TestManifests_AreTheObjectsAsHelmWouldCreateThem(t *testing.T) {
	values := validValues(t)
	values.Cilium.Hubble = hubble(true, false, false)
	blank, err := values.Blank()
	require.NoError(t, err)
	server := blank["hubble"].(map[string]any)["tls"].(map[string]any)["server"].(map[string]any)
	plain, err := base64.StdEncoding.DecodeString(server["cert"].(string))
	require.NoError(t, err)
	objects := []map[string]any{
		{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "elsewhere", "annotations": map[string]any{"why": "so"}}},
		{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "certs", "namespace": "home"}, "data": map[string]any{
			"both": server["key"].(string) + "," + server["cert"].(string),
		}},
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"name": "trust", "namespace": "home", "labels": map[string]any{"app.kubernetes.io/managed-by": "somebody"},
		}, "data": map[string]any{"plain": string(plain), "number": 4240.0, "list": []any{true, string(plain)}}},
	}
	manifests, err := values.Check(objects)
	require.NoError(t, err)
	stream, err := manifests.Fill(map[string]string{
		chart.PathCA: "", "hubble.tls.server.cert": "CERT\nTWO\n", "hubble.tls.server.key": "KEY",
	})
	require.NoError(t, err)
	assert.Equal(t, `---
apiVersion: v1
kind: Namespace
metadata:
  annotations:
    meta.helm.sh/release-name: cilium
    meta.helm.sh/release-namespace: kube-system
    why: so
  labels:
    app.kubernetes.io/managed-by: Helm
  name: elsewhere
---
apiVersion: v1
data:
  both: S0VZ,Q0VSVApUV08K
kind: Secret
metadata:
  annotations:
    meta.helm.sh/release-name: cilium
    meta.helm.sh/release-namespace: kube-system
  labels:
    app.kubernetes.io/managed-by: Helm
  name: certs
  namespace: home
---
apiVersion: v1
data:
  list:
  - true
  - |
    CERT
    TWO
  number: 4240
  plain: |
    CERT
    TWO
kind: ConfigMap
metadata:
  annotations:
    meta.helm.sh/release-name: cilium
    meta.helm.sh/release-namespace: kube-system
  labels:
    app.kubernetes.io/managed-by: Helm
  name: trust
  namespace: home
`, stream)
}
