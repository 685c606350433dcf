package cluster_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/slipway-platform/slipway/cluster"
)

const (
	sshURL   = "ssh://git@git.home.arpa:2222/platform/slipway.git"
	httpsURL = "https://git.home.arpa/platform/slipway.git"
)

// credentials are valid values of every secret and setting of an access.
type credentials struct {
	identity, appKey, ageKey cluster.Secret
	knownHosts, ca           cluster.Text
}

func newCredentials(t *testing.T) credentials {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	identity, err := ssh.MarshalPrivateKey(key, "")
	require.NoError(t, err)
	host, err := ssh.NewPublicKey(public)
	require.NoError(t, err)
	appKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	ageKey, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	ca, err := x509.CreateCertificate(rand.Reader, template, template, caKey.Public(), caKey)
	require.NoError(t, err)
	return credentials{
		identity:   cluster.NewSecret(string(pem.EncodeToMemory(identity))),
		appKey:     cluster.NewSecret(asPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(appKey))),
		ageKey:     cluster.NewSecret(ageKey.String()),
		knownHosts: cluster.Text("[git.home.arpa]:2222 " + string(ssh.MarshalAuthorizedKey(host))),
		ca:         cluster.Text(asPEM("CERTIFICATE", ca)),
	}
}

func asPEM(kind string, bytes []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
}

// The access follows from what is declared, so that the simple case is a URL and a password.
func TestGitOps_TheAccessFollowsFromTheURLAndItsSettings(t *testing.T) {
	for want, git := range map[cluster.SourceAccess]cluster.GitOps{
		cluster.GitByPassword: {URL: httpsURL},
		cluster.GitBySSH:      {URL: sshURL},
		cluster.GitByApp:      {URL: httpsURL, GitHubApp: &cluster.GitHubApp{}},
		cluster.Public:        {URL: httpsURL, Public: true},
		cluster.OCIByLogin:    {OCI: &cluster.OCIArtifact{URL: "oci://registry.example.com/a"}},
		cluster.BucketByKeys:  {Bucket: &cluster.Bucket{Endpoint: "s3.example.com"}},
	} {
		assert.Equal(t, want, git.Access())
	}
}

func TestGitOps_EveryAccessIsValidWithWhatItNeeds(t *testing.T) {
	all, number := newCredentials(t), 78901234
	for name, change := range map[string]func(*cluster.Cluster){
		"password":            func(*cluster.Cluster) {},
		"password and own CA": func(c *cluster.Cluster) { c.GitOps.CA = all.ca },
		"ssh": func(c *cluster.Cluster) {
			c.GitOps.URL, c.GitOps.KnownHosts, c.GitIdentity, c.GitPassword = sshURL, all.knownHosts, all.identity, cluster.Secret{}
		},
		"encrypted identity": func(c *cluster.Cluster) {
			c.GitOps.URL, c.GitOps.KnownHosts, c.GitPassword = sshURL, all.knownHosts, cluster.Secret{}
			c.GitIdentity = cluster.EncryptedSecret()
		},
		"app": func(c *cluster.Cluster) {
			c.GitOps.URL, c.GitOps.GitHubApp = "https://github.com/a/b", &cluster.GitHubApp{ID: 1, InstallationID: &number}
			c.GitHubAppPrivateKey, c.GitPassword = all.appKey, cluster.Secret{}
		},
		"app of GitHub Enterprise": func(c *cluster.Cluster) {
			c.GitOps.CA = all.ca
			c.GitOps.GitHubApp = &cluster.GitHubApp{ID: 1, Owner: "ops", BaseURL: "https://git.home.arpa/api/v3"}
			c.GitHubAppPrivateKey, c.GitPassword = all.appKey, cluster.Secret{}
		},
		"public":         func(c *cluster.Cluster) { c.GitOps.Public, c.GitPassword = true, cluster.Secret{} },
		"public, own CA": func(c *cluster.Cluster) { c.GitOps.Public, c.GitPassword, c.GitOps.CA = true, cluster.Secret{}, all.ca },
		"artifact": func(c *cluster.Cluster) {
			c.GitOps.URL, c.GitPassword, c.GitOps.CA = "", cluster.Secret{}, all.ca
			c.GitOps.OCI, c.OCIConfig = artifact(), cluster.NewSecret(`{"auths": {"registry.example.com": {"username": "a", "password": "b"}}}`)
		},
		"public artifact": func(c *cluster.Cluster) {
			c.GitOps.URL, c.GitPassword, c.GitOps.OCI, c.GitOps.Public = "", cluster.Secret{}, artifact(), true
		},
		"bucket": func(c *cluster.Cluster) {
			c.GitOps.URL, c.GitPassword, c.GitOps.Bucket = "", cluster.Secret{}, &cluster.Bucket{Endpoint: "s3.example.com:9000", Name: "platform"}
			c.BucketAccessKey, c.BucketSecretKey = cluster.NewSecret("id"), cluster.NewSecret("key")
		},
		"keys of age": func(c *cluster.Cluster) { c.SOPSAgeKey = all.ageKey },
	} {
		assert.Empty(t, problemsOf(t, func(c *cluster.Cluster) { change(c); assert.Empty(t, c.MissingSecrets(), name) }), name)
	}
}

func TestGitOps_RefusesSettingsAndSecretsOfAnotherAccess(t *testing.T) {
	all, number := newCredentials(t), 78901234
	const scan = "write what this prints, and compare it with what the host publishes: ssh-keyscan -p 2222 git.home.arpa"
	for name, test := range map[string]struct {
		change func(*cluster.Cluster)
		want   []string
	}{
		"https with what is for SSH": {func(c *cluster.Cluster) {
			c.GitIdentity, c.GitOps.KnownHosts = all.identity, all.knownHosts
		}, []string{
			"gitops.knownHosts: is for SSH, and gitops.url is an https URL; remove it, or write an ssh URL",
			"gitIdentity: is for SSH, and gitops.url is an https URL; write an ssh URL, or run: pulumi config rm slipway:gitIdentity",
		}},
		"ssh with what is for https": {func(c *cluster.Cluster) {
			c.GitOps.URL, c.GitIdentity, c.GitOps.CA, c.GitOps.Public = sshURL, all.identity, all.ca, true
		}, []string{
			"gitops.public: is for https, and gitops.url is an ssh URL; remove it, or write an https URL",
			"gitops.ca: is for https, and gitops.url is an ssh URL; remove it, or write an https URL",
			"gitPassword: is for https, and gitops.url is an ssh URL; write an https URL, or run: pulumi config rm slipway:gitPassword",
			"gitops.knownHosts: is missing; " + scan,
		}},
		"artifact with what is for Git, and a bucket": {func(c *cluster.Cluster) {
			c.GitOps.OCI, c.GitOps.Bucket = artifact(), &cluster.Bucket{Endpoint: "s3.example.com", Name: "platform"}
			c.GitOps.KnownHosts, c.GitOps.GitHubApp = all.knownHosts, &cluster.GitHubApp{ID: 1, Owner: "a"}
			c.BucketAccessKey, c.BucketSecretKey = cluster.NewSecret("id"), cluster.NewSecret("key")
			c.OCIConfig = cluster.NewSecret(`{"auths": {"registry.example.com": {}}, "credsStore": "desktop"}`)
		}, []string{
			"gitops.bucket: is given beside gitops.oci, and Flux syncs from one source; keep one",
			"gitops.url: is given beside gitops.oci, and Flux syncs from one source; keep one of the two",
			"gitops.githubApp: is for a Git repository, and gitops.oci is given; keep one of the two",
			"gitops.knownHosts: is for a Git repository, and gitops.oci is given; keep one of the two",
			"gitPassword: is for a Git repository, and gitops.oci is given; run: pulumi config rm slipway:gitPassword",
			`ociConfig: has no password for registry.example.com: docker login put it into a store of its machine; ` +
				`set a config.json with {"auths": {"HOST": {"username": "…", "password": "…"}}}`,
		}},
		"Git with what is for others": {func(c *cluster.Cluster) {
			c.OCIConfig, c.BucketSecretKey = cluster.EncryptedSecret(), cluster.NewSecret("key\n")
		}, []string{
			"ociConfig: is for gitops.oci, which is missing; add it, or run: pulumi config rm slipway:ociConfig",
			"bucketSecretKey: is for gitops.bucket, which is missing; add it, or run: pulumi config rm slipway:bucketSecretKey",
			"bucketSecretKey: has a space, a line break or another control character in it; " +
				"set it without, for instance with printf instead of echo",
		}},
		"public artifact with a login": {func(c *cluster.Cluster) {
			c.GitOps.URL, c.GitPassword, c.GitOps.OCI, c.GitOps.Public = "", cluster.Secret{}, artifact(), true
			c.OCIConfig = cluster.EncryptedSecret()
		}, []string{"ociConfig: is not used with gitops.public; remove one of the two; the secret with: pulumi config rm slipway:ociConfig"}},
		"no source": {func(c *cluster.Cluster) { c.GitOps.URL, c.GitPassword = "", cluster.Secret{} }, []string{
			"gitops.url: is missing; write the URL of a Git repository, or add gitops.oci or gitops.bucket",
		}},
		"ssh with keys of another host": {func(c *cluster.Cluster) {
			c.GitOps.URL, c.GitIdentity, c.GitPassword = sshURL, all.identity, cluster.Secret{}
			c.GitOps.KnownHosts = "other.home.arpa " + all.knownHosts[len("[git.home.arpa]:2222 "):]
		}, []string{"gitops.knownHosts: has no key of [git.home.arpa]:2222, the host in gitops.url; " + scan}},
		"app over ssh": {func(c *cluster.Cluster) {
			c.GitOps.URL, c.GitIdentity, c.GitOps.KnownHosts, c.GitPassword = sshURL, all.identity, all.knownHosts, cluster.Secret{}
			c.GitOps.GitHubApp = &cluster.GitHubApp{ID: 1, Owner: "ops"}
		}, []string{"gitops.githubApp: is for https, and gitops.url is an ssh URL; remove it, or write an https URL"}},
		"app without what says which": {func(c *cluster.Cluster) {
			c.GitOps.GitHubApp, c.GitHubAppPrivateKey = &cluster.GitHubApp{ID: 1}, all.appKey
		}, []string{
			"gitPassword: is not used with gitops.githubApp; remove one of the two; the password with: pulumi config rm slipway:gitPassword",
			"gitops.githubApp: has neither installationId nor owner; add one of the two",
			"gitops.githubApp.baseURL: is missing, and git.home.arpa is not github.com; write the URL of its API, such as " +
				"https://git.home.arpa/api/v3",
		}},
		"app with both": {func(c *cluster.Cluster) {
			c.GitOps.GitHubApp = &cluster.GitHubApp{ID: 1, Owner: "ops", InstallationID: &number, BaseURL: "https://git.home.arpa/api/v3"}
			c.GitHubAppPrivateKey, c.GitPassword = all.appKey, cluster.Secret{}
		}, []string{"gitops.githubApp.owner: is given beside installationId, and each says which installation it is; keep one"}},
		"app's key alone": {func(c *cluster.Cluster) { c.GitHubAppPrivateKey = all.appKey }, []string{
			"githubAppPrivateKey: is the key of a GitHub App, and gitops.githubApp is missing; add it, or run: " +
				"pulumi config rm slipway:githubAppPrivateKey",
		}},
		"public with a password": {func(c *cluster.Cluster) { c.GitOps.Public = true }, []string{
			"gitPassword: is not used with gitops.public; remove one of the two; the password with: pulumi config rm slipway:gitPassword",
		}},
		"public with an app": {func(c *cluster.Cluster) {
			c.GitOps.Public, c.GitPassword, c.GitHubAppPrivateKey = true, cluster.Secret{}, all.appKey
			c.GitOps.GitHubApp = &cluster.GitHubApp{ID: 1, Owner: "ops", BaseURL: "https://git.home.arpa/api/v3"}
		}, []string{"gitops.public: true says that no credentials are needed, and gitops.githubApp gives some; remove one of the two"}},
	} {
		assert.Equal(t, test.want, problemsOf(t, test.change), name)
	}
}

// All shapes are checked, whatever else is wrong, and no problem has a part of the text.
func TestSecrets_OfWrongShapeAreReportedTogether(t *testing.T) {
	problems := problemsOf(t, func(c *cluster.Cluster) {
		c.GitPassword = cluster.NewSecret(password + "\n")
		wrong := cluster.NewSecret(password)
		c.GitIdentity, c.GitHubAppPrivateKey, c.SOPSAgeKey = wrong, wrong, wrong
		c.GitOps.CA = password
	})
	for _, problem := range problems {
		assert.NotContains(t, problem, password)
	}
	assert.Equal(t, []string{
		"gitIdentity: is for SSH, and gitops.url is an https URL; write an ssh URL, or run: pulumi config rm slipway:gitIdentity",
		"gitops.ca: is not a certificate in PEM; write the whole text, from -----BEGIN to the last -----END line, with its line breaks",
		"githubAppPrivateKey: is the key of a GitHub App, and gitops.githubApp is missing; add it, or run: " +
			"pulumi config rm slipway:githubAppPrivateKey",
		"gitPassword: has a line break or another control character in it; set it without, for instance with printf instead of echo",
		"gitIdentity: is not an SSH private key that can be read; make one with: ssh-keygen -t ed25519 -N '' -f FILE; " +
			"and set the file without .pub",
		"githubAppPrivateKey: is not a key in PEM; write the whole text, from -----BEGIN to the last -----END line, with its line breaks",
		"sopsAgeKey: has no key that begins with AGE-SECRET-KEY-1; make one with: age-keygen -o FILE; and set the file",
	}, problems)
}

func TestCluster_NamesTheSecretThatIsMissing(t *testing.T) {
	for want, git := range map[string]cluster.GitOps{
		"gitPassword":         {URL: httpsURL},
		"gitIdentity":         {URL: sshURL},
		"githubAppPrivateKey": {URL: httpsURL, GitHubApp: &cluster.GitHubApp{}},
	} {
		assert.Empty(t, (&cluster.Cluster{GitOps: git}).MissingSecrets(), "nothing is handed over")
		git.Enabled = true
		assert.Equal(t, []string{want}, (&cluster.Cluster{GitOps: git}).MissingSecrets())
	}
	bucket := cluster.GitOps{Enabled: true, Bucket: &cluster.Bucket{}}
	assert.Equal(t, []string{"bucketAccessKey", "bucketSecretKey"}, (&cluster.Cluster{GitOps: bucket}).MissingSecrets())
	public := cluster.GitOps{URL: httpsURL, Public: true}
	assert.Empty(t, (&cluster.Cluster{GitOps: public}).MissingSecrets())
	assert.Equal(t, []string{"onepasswordCredentials", "onepasswordToken"},
		(&cluster.Cluster{GitOps: public, Providers: cluster.SecretProviders{OnePassword: &cluster.OnePassword{}}}).MissingSecrets())
}

func artifact() *cluster.OCIArtifact {
	return &cluster.OCIArtifact{URL: "oci://registry.example.com/platform/slipway", Tag: "latest"}
}

func TestGitOps_SaysWhatFluxSyncsFrom(t *testing.T) {
	assert.Equal(t, cluster.Source{Kind: "GitRepository", URL: httpsURL, Ref: "refs/heads/main"},
		cluster.GitOps{URL: httpsURL, Branch: "main"}.Source())
	assert.Equal(t, cluster.Source{Kind: "OCIRepository", URL: "oci://registry.example.com/platform/slipway", Ref: "latest"},
		cluster.GitOps{Branch: "main", OCI: artifact()}.Source())
	assert.Equal(t, cluster.Source{Kind: "Bucket", URL: "s3.example.com", Ref: "platform"},
		cluster.GitOps{Bucket: &cluster.Bucket{Endpoint: "s3.example.com", Name: "platform"}}.Source())
}
