package cluster

import (
	"encoding/json"
	"slices"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// SecretProviders are what gives workloads their secrets, beside the files that SOPS has encrypted. A stack has none, one or several.
type SecretProviders struct {
	// Sealed Secrets: whoever has the certificate can encrypt a Secret for the repository, and only the cluster decrypts it. `{}`
	// declares it with all defaults.
	SealedSecrets *SealedSecrets `json:"sealedSecrets"`
	// 1Password: a Connect server in the cluster, and External Secrets Operator, which makes Secrets of its items.
	OnePassword *OnePassword `json:"onepassword"`
}

// ProviderSecrets are the secret keys that belong to the providers.
type ProviderSecrets struct {
	// Private key of sealed-secrets: RSA in PEM. Without it, the stack makes one. Set it to restore a cluster, or to share a key with
	// another cluster, together with `sealedSecretsCert`.
	SealedSecretsKey Secret `json:"sealedSecretsKey" example:"-----BEGIN RSA PRIVATE KEY-----…"`
	// Certificate of `sealedSecretsKey`, in PEM. It is not secret, and becomes the stack's output `sealedSecretsCert`.
	SealedSecretsCert Secret `json:"sealedSecretsCert" example:"-----BEGIN CERTIFICATE-----…"`
	// Earlier private keys of sealed-secrets, each with its certificate, in PEM, one after the other. What was sealed for them stays
	// readable.
	SealedSecretsOldKeys Secret `json:"sealedSecretsOldKeys" example:"-----BEGIN RSA PRIVATE KEY-----…-----BEGIN CERTIFICATE-----…"`
	// Credentials of the 1Password Connect server: the file `1password-credentials.json`. Required with `secrets.onepassword`.
	OnePasswordCredentials Secret `json:"onepasswordCredentials" example:"{\"verifier\": …, \"version\": \"2\"}"`
	// Token for the 1Password Connect server, with read access to `secrets.onepassword.vaults`. Required with `secrets.onepassword`.
	OnePasswordToken Secret `json:"onepasswordToken" example:"eyJ…"`
	// Token for the 1Password Connect server, with access to `storage.vault` alone: a provider's writes, a consumer's reads. Required with
	// `storage.vault`, unless the operator is older than 2.5.
	OnePasswordStorageToken Secret `json:"onepasswordStorageToken" example:"eyJ…"`
}

// SealedSecrets is the controller of Sealed Secrets.
type SealedSecrets struct {
	Owned

	// Number of key pairs that the stack makes and keeps in its state. The newest one is for sealing; the others stay readable. A higher
	// number makes another pair.
	KeyPairs *int `json:"keyPairs" range:"0-99" follows:"1, or 0 with sealedSecretsKey" example:"2"`
	// Version of the chart.
	//
	// renovate: datasource=helm depName=sealed-secrets registryUrl=https://bitnami.github.io/sealed-secrets
	Version string `json:"version" form:"chart-version" default:"2.19.3"`
	// Chart repository.
	Repository string `json:"repository" form:"https-url" default:"https://bitnami.github.io/sealed-secrets" example:"https://charts.example.com/sealed-secrets"`
	// Values of one's own for the chart, under its own keys. They are merged last, and must not set what Slipway sets. They must
	// contain no secrets. For the minor release of the default, keys that the chart does not know, and values of another kind, are refused.
	Values ChartValues `json:"values" example:"{priorityClassName: system-cluster-critical}"`
}

// OnePassword is a 1Password Connect server, and External Secrets Operator with a ClusterSecretStore for it.
type OnePassword struct {
	// Vaults that the cluster reads, by name or id. An item is taken from the first vault with it.
	Vaults []string `json:"vaults" config:"required" form:"onepassword-name" items:"1-" example:"[infra, shared]"`
	// Namespaces whose ExternalSecrets and PushSecrets may use the ClusterSecretStore `onepassword`, beside those of the manifests:
	// `cert-manager`, `etcd-backup`, `external-dns` and `external-secrets`. Whoever may create such objects in one of these namespaces reads
	// all items of the vaults.
	Namespaces []string `json:"namespaces" form:"label" items:"1-" example:"[shop]"`
	// The item that is read to verify the whole way from 1Password to a Secret.
	Probe OnePasswordProbe `json:"probe"`
	// The Connect server.
	Connect Connect `json:"connect"`
	// External Secrets Operator.
	Operator ExternalSecrets `json:"operator"`
}

// treeNamespaces are the namespaces of the GitOps tree and of the probe that read items.
var treeNamespaces = []string{"cert-manager", "etcd-backup", "external-dns", ExternalSecretsNamespace}

// Readers returns the namespaces that may use the ClusterSecretStore, sorted. The operator refuses objects of all others.
func (o OnePassword) Readers() []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(treeNamespaces, o.Namespaces))))
}

// OneClient reports whether the operator has one client for all stores, with the token and the vaults of the store that was used last:
// before 2.5. All stores must have the same then.
func (o OnePassword) OneClient() bool { return olderThan(o.Operator.Version, 2, 5) }

// OnePasswordProbe is an item whose field is read as a probe. Its value does not matter, but it must not be empty.
type OnePasswordProbe struct {
	// Title or id of the item.
	Item string `json:"item" form:"onepassword-name" default:"slipway-probe" example:"infra-probe"`
	// Label of the item's field.
	Field string `json:"field" form:"onepassword-name" default:"password" example:"credential"`
}

// Connect is the chart of 1Password Connect.
type Connect struct {
	Owned

	// Version of the chart, 2.3 or newer.
	//
	// renovate: datasource=helm depName=connect registryUrl=https://1password.github.io/connect-helm-charts
	Version string `json:"version" form:"chart-version" default:"2.4.1"`
	// Chart repository.
	Repository string `json:"repository" form:"https-url" default:"https://1password.github.io/connect-helm-charts" example:"https://charts.example.com/1password"`
	// Values of one's own for the chart, under its own keys. They are merged last, and must not set what Slipway sets. They must
	// contain no secrets. For the minor release of the default, keys that the chart does not know, and values of another kind, are refused.
	Values ChartValues `json:"values" example:"{connect: {priorityClassName: system-cluster-critical}}"`
}

// ExternalSecrets is the chart of External Secrets Operator.
type ExternalSecrets struct {
	Owned

	// Version of the chart and of the CRDs. The project supports its newest minor release only.
	//
	// renovate: datasource=helm depName=external-secrets registryUrl=https://charts.external-secrets.io
	Version string `json:"version" form:"chart-version" default:"2.9.0"`
	// Chart repository.
	Repository string `json:"repository" form:"https-url" default:"https://charts.external-secrets.io" example:"https://charts.example.com/external-secrets"`
	// Values of one's own for the chart, under its own keys. They are merged last, and must not set what Slipway sets. They must
	// contain no secrets. For the minor release of the default, keys that the chart does not know, and values of another kind, are refused.
	Values ChartValues `json:"values" example:"{replicaCount: 2, leaderElect: true}"`
}

// SealedSecretsNamespace is the namespace of the controller and of its keys. kubeseal looks for the controller there.
const SealedSecretsNamespace = "kube-system"

// values returns the part of the chart's values that Slipway sets. kubeseal looks for the controller under this name. The controller makes
// no keys of its own: nothing outside the cluster would have them.
func (s SealedSecrets) values() mapping {
	values := mapping{"fullnameOverride": "sealed-secrets-controller", "keyrenewperiod": "0"}
	// The controller before 0.40.0 decrypts for every pod that asks its Service often enough. Chart 2.19.3 has 0.39.1, and no chart with
	// 0.40.0 was known on 2026-11-24.
	users, _ := s.Values.Tree()
	if given, _ := users["image"].(map[string]any); s.Version == "2.19.3" && given["tag"] == nil {
		values["image"] = mapping{"tag": "0.40.0"}
	}
	return values
}

// advise adds what should be changed in the controller.
func (s SealedSecrets) advise(findings *Findings) {
	old := olderThan(s.Version, 2, 19) || slices.Contains([]string{"2.19.0", "2.19.1", "2.19.2"}, s.Version)
	if values, _ := s.Values.Tree(); old && values["image"] == nil {
		findings.Found("secrets.sealedSecrets.version", "write 2.19.3, with which Slipway sets the image of 0.40.0",
			"%s installs a controller that decrypts for every pod that asks often enough", s.Version)
	}
}

// Service returns the controller's service.
func (s SealedSecrets) Service() Service {
	return Service{
		Key: "secrets.sealedSecrets", Name: "sealed-secrets", Namespace: SealedSecretsNamespace, Chart: "sealed-secrets",
		Version: s.Version, Repository: s.Repository, UserValues: s.Values, Owner: s.Owner, Values: s.values(),
		Needed: []Needed{
			{"createController", true, "leaves nobody who decrypts SealedSecrets"}, {"namespace", "", elsewhere},
			{"rbac.create", true, "leaves the controller without rights"},
		},
		Accepts: &Sample{Resource: "sealedsecrets", Object: json.RawMessage(`{
  "apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret", "metadata": {"namespace": "kube-system", "name": "slipway-dry-run"},
  "spec": {"encryptedData": {}}}`)},
	}
}

// ExternalSecretsNamespace is the namespace of External Secrets Operator, of the Connect server and of their Secrets.
const ExternalSecretsNamespace = "external-secrets"

// Names in ExternalSecretsNamespace that the Connect server's chart and its users have in common.
const (
	ConnectName           = "onepassword-connect"        // Deployment and Service
	ConnectCredentials    = "op-credentials"             // Secret
	ConnectCredentialsKey = "1password-credentials.json" // its key
	ConnectPort           = 8080
)

// Service returns the Connect server's service.
func (c Connect) Service() Service {
	return Service{
		Key: "secrets.onepassword.connect", Name: "connect", Namespace: ExternalSecretsNamespace, Chart: "connect",
		Version: c.Version, Repository: c.Repository, UserValues: c.Values, Owner: c.Owner,
		Values: mapping{
			"connect": mapping{
				"applicationName": ConnectName, "credentialsName": ConnectCredentials, "credentialsKey": ConnectCredentialsKey,
				"api": mapping{"httpPort": ConnectPort}, "tls": mapping{"enabled": false},
			},
			"operator": mapping{"create": false}, // External Secrets Operator is the one that makes Secrets
		},
		Needed: []Needed{
			{"connect.create", true, "leaves External Secrets Operator without a server"}, {"connect.replicas", 1, "leaves no pod of the server"},
		},
	}
}

const (
	noOperator = "leaves nobody who makes Secrets of ExternalSecrets"
	noStore    = "makes the operator pass over the ClusterSecretStore onepassword"
)

// Service returns the operator's service.
func (e ExternalSecrets) Service() Service {
	return Service{
		Key: "secrets.onepassword.operator", Name: "external-secrets", Namespace: ExternalSecretsNamespace, Chart: "external-secrets",
		Version: e.Version, Repository: e.Repository, UserValues: e.Values, Owner: e.Owner,
		// The CRDs are installed in their own phase. Since 2.9, the operator's cert-controller sees only CRDs with the label
		// external-secrets.io/component, which all CRDs of the project's manifest have.
		Values: mapping{"installCRDs": false},
		Needed: []Needed{
			{"createOperator", true, noOperator}, {"replicaCount", 1, noOperator}, {"rbac.create", true, "leaves the operator without rights"},
			{"webhook.replicaCount", 1, "leaves the API without the webhook, so that it accepts no ExternalSecret"},
			{"certController.replicaCount", 1, "leaves the webhook without a certificate"},
			{"scopedNamespace", "", noStore}, {"scopedRBAC", false, noStore}, {"processClusterStore", true, noStore},
			{"controllerClass", "", noStore}, {"namespaceOverride", "", elsewhere},
		},
		// The API accepts an ExternalSecret only if it reaches the webhook and trusts it.
		Accepts: &Sample{Resource: "externalsecrets", Object: json.RawMessage(`{
  "apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret",
  "metadata": {"namespace": "external-secrets", "name": "slipway-dry-run"},
  "spec": {"secretStoreRef": {"kind": "ClusterSecretStore", "name": "slipway-dry-run"},
    "data": [{"secretKey": "value", "remoteRef": {"key": "slipway-dry-run"}}]}}`)},
	}
}

// secretProvider is a provider of secrets, declared or not.
type secretProvider struct {
	key      string         // its section in the stack file
	services []Service      // none if it is not declared
	secrets  []formedSecret // that belong to it alone
	required bool           // it needs all of its secrets
}

// all returns all providers, with their secrets.
func (p SecretProviders) all(s ProviderSecrets) []secretProvider {
	sealed := secretProvider{key: "secrets.sealedSecrets", secrets: []formedSecret{
		{NamedSecret{"sealedSecretsKey", s.SealedSecretsKey}, syntax.SealingKey},
		{NamedSecret{"sealedSecretsCert", s.SealedSecretsCert}, nil},
		{NamedSecret{"sealedSecretsOldKeys", s.SealedSecretsOldKeys}, nil},
	}}
	if p.SealedSecrets != nil {
		sealed.services = []Service{p.SealedSecrets.Service()}
	}
	onepassword := secretProvider{key: "secrets.onepassword", required: true, secrets: []formedSecret{
		{NamedSecret{"onepasswordCredentials", s.OnePasswordCredentials}, syntax.ConnectCredentials},
		{NamedSecret{"onepasswordToken", s.OnePasswordToken}, syntax.ConnectToken},
	}}
	if p.OnePassword != nil {
		onepassword.services = []Service{p.OnePassword.Connect.Service(), p.OnePassword.Operator.Service()}
	}
	return []secretProvider{sealed, onepassword}
}

// advise adds what should be changed in the operator.
func (e ExternalSecrets) advise(findings *Findings) {
	const section = "secrets.onepassword.operator"
	if olderThan(e.Version, 1, 1) { // the chart of 1.1.0 is the first with images of ghcr.io
		findings.Found(section+".version", "raise it; the default is "+SecretProviders{}.operator().Version,
			"the chart %s takes the images from oci.external-secrets.io, which the project gave up", e.Version)
	}
	values, _ := e.Values.Tree()
	if replicas, _ := values["replicaCount"].(float64); replicas > 1 && values["leaderElect"] != true {
		findings.Found(section+".values.replicaCount", "add leaderElect: true",
			"%v operators without leaderElect are all active, and several may make the same item in 1Password", replicas)
	}
}

// Services returns the services of all declared providers.
func (p SecretProviders) Services() []Service {
	return xslices.FlatMap(p.all(ProviderSecrets{}), func(provider secretProvider) []Service { return provider.services })
}

// operator returns the operator's chart: the declared one, otherwise the default.
func (p SecretProviders) operator() ExternalSecrets {
	if p.OnePassword != nil {
		return p.OnePassword.Operator
	}
	var operator ExternalSecrets
	SetDefaults(&operator)
	return operator
}

func (p *SecretProviders) derive(given Secret) {
	if p.SealedSecrets != nil && p.SealedSecrets.KeyPairs == nil {
		pairs := 1
		if given.IsSet() {
			pairs = 0
		}
		p.SealedSecrets.KeyPairs = &pairs
	}
}

// providers checks that the secrets fit the declared providers and each other.
func (c clusterCheck) providers() {
	for _, provider := range c.Providers.all(c.ProviderSecrets) {
		for _, one := range provider.secrets {
			if len(provider.services) == 0 {
				c.unused(provider.key, one.NamedSecret)
			}
		}
	}
	if c.Providers.SealedSecrets != nil {
		c.sealingKeys()
	}
	// Older charts have them in the variable OP_SESSION, in which the server reads base64 (connect-deployment.yaml of the chart).
	if one := c.Providers.OnePassword; one != nil && olderThan(one.Connect.Version, 2, 3) {
		c.Found("secrets.onepassword.connect.version", "write 2.3.0 or newer",
			"%s takes the credentials in another form than that of their file", one.Connect.Version)
	}
}

// sealingKeys checks that there is a key for sealing, that it belongs to its certificate, and that the older certificates are older.
func (c clusterCheck) sealingKeys() {
	const key, certificate, old = "sealedSecretsKey", "sealedSecretsCert", "sealedSecretsOldKeys"
	switch {
	case c.SealedSecretsKey.IsSet() && !c.SealedSecretsCert.IsSet():
		c.Found(key, "set that with: pulumi config set --secret slipway:"+certificate, "has no certificate: %s is missing", certificate)
	case c.SealedSecretsCert.IsSet() && !c.SealedSecretsKey.IsSet():
		c.Found(certificate, "set that, or run: pulumi config rm slipway:"+certificate, "has no key: %s is missing", key)
	case !c.SealedSecretsKey.IsSet() && *c.Providers.SealedSecrets.KeyPairs == 0 && !c.Unusable("secrets.sealedSecrets.keyPairs"):
		c.Found("secrets.sealedSecrets.keyPairs", "write 1, or set "+key, "0 leaves the controller without a key")
	}
	if text := c.SealedSecretsCert.Reveal(); text != "" {
		c.fault(certificate, syntax.SealingCertificate(text, c.SealedSecretsKey.Reveal()))
	}
	given, fault := c.SealedSecretsOldKeys.pairs()
	c.fault(old, fault)
	sealing := c.Secrets.Sealing().current()
	if len(sealing) == 0 {
		return
	}
	current := sealing[0]
	for _, pair := range given {
		switch {
		case pair.Name() == current.Name():
			c.Found(old, "remove it there", "has the key of %s", key)
		case !pair.NotBefore().Before(current.NotBefore()):
			c.Found(old, "make a new pair, and set that as "+key,
				"has a certificate that is not older than %s, so that the controller would offer it for sealing", certificate)
		}
	}
}

// pairs returns the key pairs in a secret. It has none if the secret is unset or encrypted.
func (s Secret) pairs() ([]syntax.KeyPair, *syntax.Fault) {
	if s.Reveal() == "" {
		return nil, nil
	}
	return syntax.SealingPairs(s.Reveal())
}

// SealingKeys are the given keys of sealed-secrets.
type SealingKeys struct{ Key, Certificate, OldKeys Secret }

// Sealing returns the given keys of sealed-secrets.
func (s ProviderSecrets) Sealing() SealingKeys {
	return SealingKeys{Key: s.SealedSecretsKey, Certificate: s.SealedSecretsCert, OldKeys: s.SealedSecretsOldKeys}
}

// current returns the key for sealing with its certificate, if both can be read.
func (k SealingKeys) current() []syntax.KeyPair {
	key, certificate := k.Key.Reveal(), k.Certificate.Reveal()
	if syntax.SealingKey(key) != nil || syntax.SealingCertificate(certificate, key) != nil {
		return nil
	}
	return []syntax.KeyPair{{Key: key, Certificate: certificate}}
}

// Pairs returns the key pairs, the one for sealing first. It has none if the stack makes all pairs.
func (k SealingKeys) Pairs() []syntax.KeyPair {
	old, _ := k.OldKeys.pairs() // a fault is reported already
	return slices.Concat(k.current(), old)
}
