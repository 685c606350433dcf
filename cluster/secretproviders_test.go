package cluster_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

// sealingPair returns a private key and a certificate of it that is valid from a time.
func sealingPair(t *testing.T, from time.Time) (key, certificate string) {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: from.Add(time.Hour)}
	bytes, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	return asPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(private)), asPEM("CERTIFICATE", bytes)
}

func sealing(c *cluster.Cluster) *cluster.SealedSecrets {
	c.Providers.SealedSecrets = &cluster.SealedSecrets{}
	cluster.SetDefaults(c.Providers.SealedSecrets)
	return c.Providers.SealedSecrets
}

func onepassword(c *cluster.Cluster) *cluster.OnePassword {
	c.Providers.OnePassword = &cluster.OnePassword{}
	cluster.SetDefaults(c.Providers.OnePassword)
	c.Providers.OnePassword.Vaults = []string{"infra"}
	return c.Providers.OnePassword
}

func TestSecretProviders_AreNoneUnlessDeclared(t *testing.T) {
	assert.Empty(t, problemsOf(t, func(c *cluster.Cluster) { assert.Empty(t, c.Providers.Services()) }))
}

func TestSealedSecrets_TheStackMakesAKeyUnlessOneIsGiven(t *testing.T) {
	key, certificate := sealingPair(t, time.Now())
	for want, change := range map[int]func(*cluster.Cluster){
		1: func(*cluster.Cluster) {},
		0: func(c *cluster.Cluster) {
			c.SealedSecretsKey, c.SealedSecretsCert = cluster.NewSecret(key), cluster.NewSecret(certificate)
		},
		3: func(c *cluster.Cluster) { three := 3; c.Providers.SealedSecrets.KeyPairs = &three },
	} {
		var model *cluster.Cluster
		assert.Empty(t, problemsOf(t, func(c *cluster.Cluster) { model = c; sealing(c); change(c) }))
		assert.Equal(t, want, *model.Providers.SealedSecrets.KeyPairs)
	}
}

func TestSealedSecrets_GivenKeysAreCheckedTogether(t *testing.T) {
	now := time.Now()
	key, certificate := sealingPair(t, now)
	oldKey, oldCertificate := sealingPair(t, now.Add(-time.Hour))
	newKey, newCertificate := sealingPair(t, now.Add(time.Hour))
	given := func(c *cluster.Cluster, key, certificate, old string) {
		sealing(c)
		for text, secret := range map[string]*cluster.Secret{
			key: &c.SealedSecretsKey, certificate: &c.SealedSecretsCert, old: &c.SealedSecretsOldKeys,
		} {
			if text != "" {
				*secret = cluster.NewSecret(text)
			}
		}
	}
	for name, test := range map[string]struct {
		key, certificate, old string
		problems              []string
	}{
		"a pair and an old one":               {key, certificate, oldKey + oldCertificate, nil},
		"an old pair beside one of the stack": {"", "", oldKey + oldCertificate, nil},
		"no certificate": {key, "", "", []string{"sealedSecretsKey: has no certificate: sealedSecretsCert is missing; " +
			"set that with: pulumi config set --secret slipway:sealedSecretsCert"}},
		"no key": {"", certificate, "", []string{"sealedSecretsCert: has no key: sealedSecretsKey is missing; " +
			"set that, or run: pulumi config rm slipway:sealedSecretsCert"}},
		"another key's certificate, and an old key without one": {key, oldCertificate, oldKey, []string{
			"sealedSecretsCert: belongs to another key; set the certificate of sealedSecretsKey",
			"sealedSecretsOldKeys: has a key without its certificate; " +
				"set the files of all earlier keys and of their certificates, one after the other",
		}},
		"no PEM": {"hunter2", certificate, "", []string{
			"sealedSecretsKey: is not a key in PEM; write the whole text, from -----BEGIN to the last -----END line, with its line breaks",
		}},
		"an old pair that is newer": {key, certificate, newKey + newCertificate, []string{
			"sealedSecretsOldKeys: has a certificate that is not older than sealedSecretsCert, so that the controller would offer it for " +
				"sealing; make a new pair, and set that as sealedSecretsKey",
		}},
		"the same pair": {key, certificate, oldKey + oldCertificate + key + certificate, []string{
			"sealedSecretsOldKeys: has the key of sealedSecretsKey; remove it there",
		}},
	} {
		problems := problemsOf(t, func(c *cluster.Cluster) { given(c, test.key, test.certificate, test.old) })
		assert.Equal(t, test.problems, problems, name)
	}
	none := 0
	assert.Equal(t, []string{"secrets.sealedSecrets.keyPairs: 0 leaves the controller without a key; write 1, or set sealedSecretsKey"},
		problemsOf(t, func(c *cluster.Cluster) { sealing(c).KeyPairs = &none }))
	assert.Empty(t, problemsOf(t, func(c *cluster.Cluster) {
		sealing(c)
		c.SealedSecretsKey, c.SealedSecretsCert = cluster.EncryptedSecret(), cluster.EncryptedSecret()
	}), "an encrypted secret is not checked")
}

func TestSealingKeys_PairsHaveTheOneForSealingFirst(t *testing.T) {
	key, certificate := sealingPair(t, time.Now())
	oldKey, oldCertificate := sealingPair(t, time.Now().Add(-time.Hour))
	pairs := cluster.ProviderSecrets{
		SealedSecretsKey: cluster.NewSecret(key), SealedSecretsCert: cluster.NewSecret(certificate),
		SealedSecretsOldKeys: cluster.NewSecret(oldCertificate + oldKey),
	}.Sealing().Pairs()
	require.Len(t, pairs, 2)
	assert.Equal(t, key, pairs[0].Key)
	assert.Equal(t, oldKey, pairs[1].Key)
	assert.Empty(t, cluster.SealingKeys{}.Pairs())
}

func TestOnePassword_SecretsAndCRDsFitTheSection(t *testing.T) {
	problems := problemsOf(t, func(c *cluster.Cluster) {
		c.OnePasswordCredentials, c.OnePasswordToken = cluster.NewSecret("aHVudGVyMg=="), cluster.NewSecret("hunter2")
		c.SealedSecretsKey = cluster.EncryptedSecret()
	})
	assert.Equal(t, []string{
		"onepasswordCredentials: is not JSON of 1Password Connect; " +
			"set the file 1password-credentials.json that 1Password made for the Connect server, as it is",
		"onepasswordToken: is not a JWT; make one with: op connect token create NAME --server SERVER --vault VAULT; and set what it prints",
		"sealedSecretsKey: is for secrets.sealedSecrets, which is missing; add it, or run: pulumi config rm slipway:sealedSecretsKey",
		"onepasswordCredentials: is for secrets.onepassword, which is missing; add it, or run: pulumi config rm slipway:onepasswordCredentials",
		"onepasswordToken: is for secrets.onepassword, which is missing; add it, or run: pulumi config rm slipway:onepasswordToken",
	}, problems)
	assert.Equal(t, []string{
		"crds.externalSecrets.skip: true leaves out what External Secrets Operator needs before it starts; " +
			"remove it, or remove secrets.onepassword",
	}, problemsOf(t, func(c *cluster.Cluster) { onepassword(c); c.CRDs.ExternalSecrets.Skip = true }))
	assert.Equal(t, []string{"secrets.onepassword.vaults: is empty; declare one"},
		problemsOf(t, func(c *cluster.Cluster) { onepassword(c).Vaults = []string{} }))
}

func TestSets_OfExternalSecretsFollowItsChart(t *testing.T) {
	assert.Equal(t, "https://raw.githubusercontent.com/external-secrets/external-secrets/v0.20.3/deploy/crds/bundle.yaml",
		manifests(func(c *cluster.Cluster) { onepassword(c).Operator.Version = "0.20.3" })["externalSecrets"])
}

func TestSecretProviders_ChartsComeFromServersOutsideTheClusterAndKeepSlipwaysValues(t *testing.T) {
	assert.Equal(t, []string{
		"secrets.sealedSecrets.repository: 10.25.11.10 is network.vip, which exists only once the cluster does; " +
			"write a server outside the cluster",
		"secrets.onepassword.connect.repository: 10.25.11.10 is network.vip, which exists only once the cluster does; " +
			"write a server outside the cluster",
	}, problemsOf(t, func(c *cluster.Cluster) {
		sealing(c).Repository = "https://" + c.Network.VIP.String() + "/charts"
		onepassword(c).Connect.Repository = "https://" + c.Network.VIP.String() + "/charts"
	}))
	assert.Equal(t, []string{
		"secrets.onepassword.operator.values.installCRDs: is a value of the chart that Slipway sets; remove it",
		"secrets.sealedSecrets.values.keyrenewperiod: is a value of the chart that Slipway sets; remove it",
	}, problemsOf(t, func(c *cluster.Cluster) {
		sealing(c).Values = cluster.ChartValues(`{"keyrenewperiod":"720h","podAnnotations":{"a":"b"}}`)
		onepassword(c).Operator.Values = cluster.ChartValues(`{"installCRDs":true,"replicaCount":2}`)
	}))
}

func TestSealedSecrets_TheImageIsReplacedOnlyInTheChartWhoseOwnDecryptsForEveryPod(t *testing.T) {
	for _, one := range []struct {
		version, values string
		image           any
	}{
		{"2.19.3", `{"image":{"registry":"mirror.example.com"}}`, map[string]any{"registry": "mirror.example.com", "tag": "0.40.0"}},
		{"2.19.3", `{"image":{"tag":"0.41.0"}}`, map[string]any{"tag": "0.41.0"}},
		{"2.20.0", `{}`, nil},
	} {
		service := cluster.SealedSecrets{Version: one.version, Values: cluster.ChartValues(one.values)}.Service()
		values, err := service.UserValues.MergedInto(service.Values)
		require.NoError(t, err)
		assert.Equal(t, one.image, values["image"], one.version+one.values)
	}
}
