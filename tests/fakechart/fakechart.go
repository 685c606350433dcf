// Package fakechart makes Helm charts in memory, for tests that render one and must not download it.
package fakechart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"slices"
)

// Cilium is the archive of a chart with the name of Cilium's. It takes the certificates and the names from the values as
// the real one does and renders three objects with them; all else of Cilium is not modelled.
func Cilium(version string) []byte {
	return Pack("cilium", map[string]string{
		"Chart.yaml": fmt.Sprintf("{apiVersion: v2, name: cilium, version: %s, kubeVersion: \">=1.21.0-0\"}", version),
		"templates/config.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: cilium-config}
data:
  cluster-name: {{ .Values.cluster.name }}
  cluster-id: {{ .Values.cluster.id | quote }}
  kubernetes: {{ .Capabilities.KubeVersion.Version }}
  gateway-api: {{ .Capabilities.APIVersions.Has "gateway.networking.k8s.io/v1/GatewayClass" | quote }}
`,
		"templates/server.yaml": `
{{- with .Values.hubble.tls.server }}
apiVersion: v1
kind: Secret
metadata: {name: hubble-server-certs}
data:
  ca.crt: {{ $.Values.tls.ca.cert }}
  tls.crt: {{ .cert | required "missing hubble.tls.server.cert" }}
  tls.key: {{ .key | required "missing hubble.tls.server.key" }}
{{- end }}
`,
		"templates/operator.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: cilium-operator}
spec: {replicas: {{ .Values.operator.replicas }}}
`,
	})
}

// Pack is the archive of a chart, as a chart repository serves it, from its files by path.
func Pack(name string, files map[string]string) []byte {
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	tape := tar.NewWriter(zipped)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		// Writing to memory, within the sizes just given, does not fail.
		_ = tape.WriteHeader(&tar.Header{Name: name + "/" + path, Mode: 0o644, Size: int64(len(files[path]))})
		_, _ = tape.Write([]byte(files[path]))
	}
	_ = tape.Close()
	_ = zipped.Close()
	return archive.Bytes()
}
