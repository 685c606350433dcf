package chart

// LocalSecret is the Secret with the certificate by which agents and operator read the copy of the peers' state in their own cluster.
// The chart mounts it, and creates it only where it makes certificates itself; it has no values for this one.
const LocalSecret = "clustermesh-apiserver-local-cert"

// LocalSecretType is the Secret's type.
const LocalSecretType = "kubernetes.io/tls"

// pathLocal is the path of the certificate among the documents of inline manifests. It is no path of the chart's values.
const pathLocal = "slipway.local"

// LocalCertificate returns the certificate of LocalSecret, or false without a mesh.
func (v Values) LocalCertificate() (Certificate, bool) {
	return Certificate{
		Name: "mesh-local", Path: pathLocal, Use: "client_auth", CommonName: "local-" + v.Identity.Name,
	}, v.Mesh.IsMember()
}

// localSecret returns LocalSecret with placeholders.
func localSecret() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": LocalSecretType,
		"metadata": map[string]any{"name": LocalSecret, "namespace": ReleaseNamespace},
		"data": map[string]any{
			"ca.crt":  base64Of(placeholder(PathCA)),
			"tls.crt": base64Of(placeholder(pathLocal + ".cert")),
			"tls.key": base64Of(placeholder(pathLocal + ".key")),
		},
	}
}
