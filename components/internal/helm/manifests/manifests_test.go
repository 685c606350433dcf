package manifests_test

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/components/internal/helm/manifests"
)

func TestDifferentValues_NamesEachLeafThatDiffersAndNoSecret(t *testing.T) {
	secret := base64.StdEncoding.EncodeToString([]byte(manifests.Masked + "0a1b2c"))
	other := base64.StdEncoding.EncodeToString([]byte(manifests.Masked + "3d4e5f"))
	before := manifests.Chart{Chart: "cilium", Version: "1.18.7", Repository: "https://helm.cilium.io/", Values: map[string]any{
		"MTU": 1450, "hubble": map[string]any{"relay": map[string]any{"enabled": true}}, "tls": secret, "same": []any{"a"}, "number": 2,
	}}
	after := manifests.Chart{Chart: "cilium", Version: "1.18.8", Repository: "https://helm.cilium.io", Values: map[string]any{
		"MTU": 1400, "hubble": map[string]any{"ui": map[string]any{"enabled": true}}, "tls": other, "same": []any{"a"}, "number": 2.0,
	}}
	assert.Equal(t, []string{
		"version: \"1.18.7\" → \"1.18.8\"",
		"values.MTU: 1450 → 1400",
		"values.hubble.relay.enabled: true → nothing",
		"values.hubble.ui.enabled: nothing → true",
		"values.tls: (secret) → (secret)",
	}, manifests.DifferentValues(before, after))
	assert.Empty(t, manifests.DifferentValues(before, before))
}

func TestDifferentObjects_ComparesObjectByObject(t *testing.T) {
	object := func(kind, name string, replicas int) map[string]any {
		return map[string]any{"kind": kind, "metadata": map[string]any{"namespace": "kube-system", "name": name},
			"spec": map[string]any{"replicas": replicas}}
	}
	assert.Equal(t, []string{
		"ConfigMap kube-system/old: is not there any more",
		"Deployment kube-system/operator.spec.replicas: 1 → 2",
		"Service kube-system/new: is new",
	}, manifests.DifferentObjects(
		[]map[string]any{object("Deployment", "operator", 1), object("ConfigMap", "old", 0), object("DaemonSet", "agent", 0)},
		[]map[string]any{object("DaemonSet", "agent", 0), object("Deployment", "operator", 2), object("Service", "new", 0)}))
}
