package chart

// MeshSecretType is the type of the Secrets with the mesh's certificates.
const MeshSecretType = "kubernetes.io/tls"

// firstWithoutSecrets is the minor release of Cilium 1 whose chart makes no Secret of the mesh's certificates any more.
const firstWithoutSecrets = 20

// enableSecrets returns the value that keeps the chart from making Secrets of the mesh's certificates; nil if it never makes them.
func (v Values) enableSecrets() *bool {
	if v.isFrom(firstWithoutSecrets) {
		return nil
	}
	return new(bool)
}

// meshSecrets returns the Secrets with the mesh's certificates, with placeholders.
func (v Values) meshSecrets() (secrets []map[string]any) {
	for _, what := range v.MeshCertificates() {
		secrets = append(secrets, map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": MeshSecretType,
			"metadata": map[string]any{"name": what.Secret, "namespace": ReleaseNamespace},
			"data": map[string]any{
				"ca.crt":  base64Of(placeholder(PathCA)),
				"tls.crt": base64Of(placeholder(what.Path + ".cert")),
				"tls.key": base64Of(placeholder(what.Path + ".key")),
			},
		})
	}
	return secrets
}
