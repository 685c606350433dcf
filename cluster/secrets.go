package cluster

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// Secrets are the secret keys of a stack. No committed file contains them: each is set by `pulumi config set --secret`.
type Secrets struct {
	// Password or token of `gitops.username` at the Git host. Read access is enough. Required if `gitops.url` is an https URL, unless
	// `gitops.githubApp` or `gitops.public` is set.
	GitPassword Secret `json:"gitPassword" example:"correct horse battery"`
	// Private SSH key with read access to the repository, a deploy key: the file, without a passphrase. Required if `gitops.url` is an
	// ssh URL.
	GitIdentity Secret `json:"gitIdentity" example:"-----BEGIN OPENSSH PRIVATE KEY-----…"`
	// Private key of the GitHub App: the file that GitHub made. Required with `gitops.githubApp`.
	GitHubAppPrivateKey Secret `json:"githubAppPrivateKey" example:"-----BEGIN RSA PRIVATE KEY-----…"`
	// Login of the registry in `gitops.oci.url`: a `config.json` as `docker login` writes it, with the login in it. Required with
	// `gitops.oci`, unless `gitops.public` is set.
	OCIConfig Secret `json:"ociConfig" example:"{\"auths\": {\"registry.example.com\": {\"auth\": \"…\"}}}"`
	// Access key of the bucket, its id. Required with `gitops.bucket`, unless `gitops.public` is set.
	BucketAccessKey Secret `json:"bucketAccessKey" example:"GK3515373e4c851ebaad366558"`
	// Secret key of the bucket. Required with `gitops.bucket`, unless `gitops.public` is set.
	BucketSecretKey Secret `json:"bucketSecretKey" example:"7d37d093435a41f2aab8f13c19ba067d"`
	// Login of the registry in `gitops.flux.registry`, from which the images of Flux's controllers are pulled: a `config.json` as
	// `docker login` writes it, with the login in it.
	FluxRegistryConfig Secret `json:"fluxRegistryConfig" example:"{\"auths\": {\"registry.example.com\": {\"auth\": \"…\"}}}"`
	// Private keys of age: the file that `age-keygen` wrote. With it, Flux decrypts what SOPS has encrypted in the cluster's folder.
	SOPSAgeKey Secret `json:"sopsAgeKey" example:"AGE-SECRET-KEY-1…"`
	ProviderSecrets
	// Certificate and private key of the mesh's CA, in PEM, one after the other: what `slipway mesh-ca` prints. All clusters of a mesh have
	// the same. Required with `mesh.peers`.
	MeshCA Secret `json:"meshCA" example:"-----BEGIN CERTIFICATE-----…-----BEGIN PRIVATE KEY-----…"`
	// Token for the Proxmox VE API, `USER@REALM!TOKENID=UUID`. Without it, the environment variable `PROXMOX_VE_API_TOKEN` is read.
	ProxmoxAPIToken Secret `json:"proxmoxApiToken" form:"api-token" example:"slipway@pve!pulumi=0c5a8d6e-1111-2222-3333-444455556666"`
	// Patches to machine configurations that contain secrets, such as the password of a registry: YAML text of the same form as
	// `talos.patches`. They are applied after `talos.patches`.
	TalosSecretPatches Secret `json:"talosSecretPatches" example:"{all: [{machine: {registries: {config: {registry.example.com: {auth: {password: …}}}}}}]}"`
	// Private keys of age that decrypt the snapshot in `lifecycle.snapshots.recoverFrom`: the file that `age-keygen` wrote. Set it for the
	// restore only.
	SnapshotIdentity Secret `json:"snapshotIdentity" example:"AGE-SECRET-KEY-1…"`
	// Access key, its id, with which `up` copies its snapshots of etcd to the bucket of `lifecycle.snapshots.scheduled`. It may write
	// objects there. To restore snapshots, and to be warned of old ones, it must also read and list them. Without it, `up` uses no bucket.
	SnapshotAccessKey Secret `json:"snapshotAccessKey" example:"GK3515373e4c851ebaad366558"`
	// Secret key of `snapshotAccessKey`.
	SnapshotSecretKey Secret `json:"snapshotSecretKey" example:"7d37d093435a41f2aab8f13c19ba067d"`

	// SecretPatches is TalosSecretPatches, decoded. It is not a key of the file.
	SecretPatches SecretPatches `json:"-"`
}

// SecretPatchesKey is the key of TalosSecretPatches.
const SecretPatchesKey = "talosSecretPatches"

// SecretPatches are patches that must not be displayed. However they are printed, the output is a placeholder.
type SecretPatches struct{ Patches }

// Format writes a placeholder, for every verb of fmt.
func (SecretPatches) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, redacted) }

// MarshalText returns a placeholder, for JSON and YAML.
func (SecretPatches) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Secret is a value that must not be displayed. However it is printed or encoded, the output is a placeholder; only Reveal returns
// the value. The zero Secret is unset.
type Secret struct {
	// A pointer: fmt calls no methods on values in unexported fields, but prints only the address of a pointer.
	value     *string
	encrypted bool
}

// redacted is printed in place of a secret.
const redacted = "[secret]"

// NewSecret returns a secret with a value.
func NewSecret(value string) Secret { return Secret{value: &value} }

// EncryptedSecret returns a secret that was read from a stack file and is not decrypted: only its presence is known.
func EncryptedSecret() Secret { return Secret{encrypted: true} }

// IsSet reports whether the key was given.
func (s Secret) IsSet() bool { return s.encrypted || s.value != nil }

// Reveal returns the value. It is empty when the secret is unset, and when it is encrypted.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// String returns a placeholder, or "" if the secret is unset.
func (s Secret) String() string {
	if s.IsSet() {
		return redacted
	}
	return ""
}

// Format writes String, for every verb of fmt.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.String()) }

// MarshalText returns String, for JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// NamedSecret is a secret with its key in the stack file.
type NamedSecret struct {
	Key    string
	Secret Secret
}

// formedSecret is a secret with the check of its form.
type formedSecret struct {
	NamedSecret
	form func(string) *syntax.Fault // nil if the form is checked together with other secrets
}

// SourceSecret is a secret of the access to Flux's source.
type SourceSecret struct {
	NamedSecret
	FluxKey string // the key that Flux reads in its Secret
}

// Knowing returns the cluster with these secrets only, for a component that needs no more.
func (c *Cluster) Knowing(secrets Secrets) *Cluster {
	reduced := *c
	reduced.Secrets = secrets
	return &reduced
}

// OfMachines returns the secrets that machines need: of the hypervisor, of their configurations, and of a restore.
func (s Secrets) OfMachines() Secrets {
	return Secrets{
		ProxmoxAPIToken: s.ProxmoxAPIToken, TalosSecretPatches: s.TalosSecretPatches, SecretPatches: s.SecretPatches,
		SnapshotIdentity: s.SnapshotIdentity, SnapshotAccessKey: s.SnapshotAccessKey, SnapshotSecretKey: s.SnapshotSecretKey,
	}
}

// OfNetwork returns the secret that the network needs.
func (s Secrets) OfNetwork() Secrets { return Secrets{MeshCA: s.MeshCA} }

// OfSource returns the secrets that an access to Flux's source needs; none if it needs none.
func (s Secrets) OfSource(access SourceAccess) []SourceSecret {
	switch access {
	case GitByPassword:
		return []SourceSecret{{NamedSecret{"gitPassword", s.GitPassword}, "password"}}
	case GitBySSH:
		return []SourceSecret{{NamedSecret{"gitIdentity", s.GitIdentity}, "identity"}}
	case GitByApp:
		return []SourceSecret{{NamedSecret{"githubAppPrivateKey", s.GitHubAppPrivateKey}, "githubAppPrivateKey"}}
	case OCIByLogin:
		return []SourceSecret{{NamedSecret{"ociConfig", s.OCIConfig}, ".dockerconfigjson"}}
	case BucketByKeys:
		return []SourceSecret{
			{NamedSecret{"bucketAccessKey", s.BucketAccessKey}, "accesskey"}, {NamedSecret{"bucketSecretKey", s.BucketSecretKey}, "secretkey"},
		}
	case Public:
	}
	return nil
}

// FluxSecrets are the names of the Secrets in Flux's namespace that must exist before Flux starts; "" for each that it does not need.
type FluxSecrets struct {
	Source     string // access to the source
	CA         string // CA of a registry or a bucket; that of a Git host is in Source
	Images     string // login for the images of Flux's controllers
	Decryption string // keys of age that SOPS has encrypted for
}

// AccessToSource returns all texts that Flux's access to its source consists of; some are secret.
func (c *Cluster) AccessToSource() []string {
	git := c.GitOps
	texts := []string{string(git.Access()), git.Username, string(git.CA), string(git.KnownHosts)}
	if app := git.GitHubApp; app != nil {
		texts = append(texts, fmt.Sprint(app.ID, app.Owner, app.BaseURL))
		if app.InstallationID != nil {
			texts = append(texts, fmt.Sprint(*app.InstallationID))
		}
	}
	for _, one := range c.Secrets.OfSource(git.Access()) {
		texts = append(texts, one.Secret.Reveal())
	}
	return texts
}

// MissingSecrets returns the keys of the secrets that are required and not set: for Flux's access to its source, and for the
// providers of secrets.
func (c *Cluster) MissingSecrets() []string {
	var required []NamedSecret
	if c.GitOps.Enabled {
		for _, one := range c.Secrets.OfSource(c.GitOps.Access()) {
			required = append(required, one.NamedSecret)
		}
	}
	for _, provider := range c.Providers.all(c.ProviderSecrets) {
		if provider.required && len(provider.services) > 0 {
			for _, one := range provider.secrets {
				required = append(required, one.NamedSecret)
			}
		}
	}
	if one := c.Providers.OnePassword; one != nil && c.Storage.Vault != "" && !one.OneClient() {
		required = append(required, NamedSecret{storageToken, c.OnePasswordStorageToken})
	}
	if c.Mesh.IsMember() {
		required = append(required, NamedSecret{MeshAuthorityKey, c.MeshCA})
	}
	var missing []string
	for _, one := range required {
		if !one.Secret.IsSet() {
			missing = append(missing, one.Key)
		}
	}
	return missing
}

// secrets checks the forms of the secrets. Problems never contain their values.
func (c clusterCheck) secrets() {
	c.gitPassword()
	secrets := []formedSecret{
		{NamedSecret{"gitIdentity", c.GitIdentity}, syntax.SSHKey},
		{NamedSecret{"githubAppPrivateKey", c.GitHubAppPrivateKey}, syntax.RSAKey},
		{NamedSecret{"bucketAccessKey", c.BucketAccessKey}, syntax.BucketKey},
		{NamedSecret{"bucketSecretKey", c.BucketSecretKey}, syntax.BucketKey},
		{NamedSecret{"sopsAgeKey", c.SOPSAgeKey}, syntax.AgeKeys},
		{NamedSecret{"snapshotIdentity", c.SnapshotIdentity}, syntax.AgeKeys},
		{NamedSecret{snapshotAccessKey, c.SnapshotAccessKey}, syntax.BucketKey},
		{NamedSecret{snapshotSecretKey, c.SnapshotSecretKey}, syntax.BucketKey},
		{NamedSecret{storageToken, c.OnePasswordStorageToken}, syntax.ConnectToken},
		{NamedSecret{MeshAuthorityKey, c.MeshCA}, func(text string) *syntax.Fault { _, fault := syntax.MeshAuthority(text); return fault }},
	}
	for _, provider := range c.Providers.all(c.ProviderSecrets) {
		secrets = append(secrets, provider.secrets...)
	}
	for _, one := range secrets {
		if text := one.Secret.Reveal(); text != "" && one.form != nil {
			c.fault(one.Key, one.form(text))
		}
	}
	c.providers()
}

func (c clusterCheck) gitPassword() {
	const path = "gitPassword"
	switch password := c.GitPassword.Reveal(); {
	case strings.ContainsFunc(password, unicode.IsControl):
		c.Found(path, "set it without, for instance with printf instead of echo", "has a line break or another control character in it")
	case strings.TrimSpace(password) != password:
		c.Found(path, "set it without, for instance with printf instead of echo", "begins or ends with white space")
	case strings.Contains(password, "://"):
		c.Found(path, "give the password or token alone", "is a URL")
	}
}
