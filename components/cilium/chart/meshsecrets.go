package chart

// MeshSecretType is the type of the Secrets with the mesh's certificates.
const MeshSecretType = "kubernetes.io/tls"

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
