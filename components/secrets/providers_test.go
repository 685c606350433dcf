package secrets_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/pulumi/pulumi-command/sdk/go/command"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi-tls/sdk/v5/go/tls"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/secrets"
	"github.com/slipway-platform/slipway/tests/mocks"
)

const (
	credentials = `{"version":"2","uniqueKey":"CREDENTIALS-MARKER"}`
	token       = "eyJ.TOKEN-MARKER.sig"

	storageToken = "eyJ.STORAGE-MARKER.sig"
	kubeconfig   = "client-key-data: KUBECONFIG-MARKER"
	keyMaterial  = "KEY-MATERIAL-MARKER"
)

func in64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// provide registers the foundation with providers. Their pods wait for a resource with the name dns.
func provide(t *testing.T, rec *mocks.Recorder, change func(*secrets.SecretsFoundationArgs)) (made *secrets.SecretsFoundation, err error) {
	t.Helper()
	rec.OnResource = func(reg mocks.Registration) (resource.PropertyMap, error) {
		return resource.NewPropertyMapFromMap(map[string]map[string]any{
			"tls:index/privateKey:PrivateKey":         {"privateKeyPem": &resource.Secret{Element: resource.NewProperty(keyMaterial + reg.Name)}},
			"tls:index/selfSignedCert:SelfSignedCert": {"certPem": certificateOf(t, reg.Name)},
		}[reg.Type]), nil
	}
	err = rec.Run(func(ctx *pulumi.Context) error {
		var providers []pulumi.ProviderResource
		for _, name := range []string{"kube", "gate", "dns"} {
			provider, err := kubernetes.NewProvider(ctx, name, &kubernetes.ProviderArgs{})
			if err != nil {
				return err
			}
			providers = append(providers, provider)
		}
		commands, err := command.NewProvider(ctx, "command", &command.ProviderArgs{})
		if err != nil {
			return err
		}
		keys, err := tls.NewProvider(ctx, "tls", &tls.ProviderArgs{})
		if err != nil {
			return err
		}
		pairs := 1
		sealed, onepassword := cluster.SealedSecrets{KeyPairs: &pairs}, cluster.OnePassword{Vaults: []string{"infra", "Team A"}}
		cluster.SetDefaults(&sealed)
		cluster.SetDefaults(&onepassword)
		args := &secrets.SecretsFoundationArgs{
			InCluster: component.InCluster{
				Lifetime:           component.Lifetime{DependsOn: []pulumi.Resource{providers[1]}, DeletedWith: providers[1]},
				KubernetesProvider: providers[0],
			},
			Steps: component.Steps{
				Name: "infra", Kubeconfig: pulumi.ToSecret(pulumi.String(kubeconfig)).(pulumi.StringOutput), CommandProvider: commands,
			},
			Providers: []secrets.Provider{
				&secrets.SealedSecrets{Settings: sealed, TLSProvider: keys},
				&secrets.OnePassword{
					Settings: onepassword, Credentials: cluster.NewSecret(credentials), Token: cluster.NewSecret(token),
					Storage: &secrets.StorageVault{Vaults: []string{"storage"}, Token: cluster.NewSecret(storageToken), Readers: []string{"rook-ceph"}},
				},
			},
			Services: []pulumi.Resource{providers[2]}, Timeout: 90 * time.Second,
		}
		if args.Namespace, err = secrets.NewNamespace(ctx, "secrets", args.InCluster, pulumi.Composite()); err != nil {
			return err
		}
		if change != nil {
			change(args)
		}
		if made, err = secrets.NewSecretsFoundation(ctx, "secrets", args); err != nil {
			return err
		}
		_, err = kubernetes.NewProvider(ctx, "next", &kubernetes.ProviderArgs{}, pulumi.DependsOn(made.Leaves()))
		return err
	})
	return made, err
}

func sealed(a *secrets.SecretsFoundationArgs) *secrets.SealedSecrets {
	return a.Providers[0].(*secrets.SealedSecrets)
}

func onepassword(a *secrets.SecretsFoundationArgs) *secrets.OnePassword {
	return a.Providers[1].(*secrets.OnePassword)
}

var (
	certificates     = map[string]string{}
	certificatesLock sync.Mutex
)

// certificateOf returns the certificate that the stack has made with a name.
func certificateOf(t *testing.T, name string) string {
	t.Helper()
	certificatesLock.Lock()
	defer certificatesLock.Unlock()
	if certificates[name] == "" {
		_, certificates[name] = sealingPair(t, time.Now())
	}
	return certificates[name]
}

// sealingPair returns a private key and a certificate of it that is valid from a time.
func sealingPair(t *testing.T, from time.Time) (key, certificate string) {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: from.Add(time.Hour)}
	bytes, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	encode := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(private)), encode("CERTIFICATE", bytes)
}

// sealingSecrets returns the Secrets that the controller reads, by name.
func sealingSecrets(rec *mocks.Recorder) map[string]mocks.Registration {
	found := map[string]mocks.Registration{}
	for _, reg := range rec.OfType("kubernetes:core/v1:Secret") {
		if labels, _ := reg.Input("metadata.labels").(map[string]any); labels["sealedsecrets.bitnami.com/sealed-secrets-key"] == "active" {
			found[reg.Input("metadata.name").(string)] = reg
		}
	}
	return found
}

func TestSealedSecrets_TheKeyIsInTheClusterBeforeTheControllerAndProtectedInTheState(t *testing.T) {
	rec := &mocks.Recorder{}
	made, err := provide(t, rec, nil)
	require.NoError(t, err)
	require.NotNil(t, made.SealedSecretsCert)
	key, certificate := rec.Only(t, "tls:index/privateKey:PrivateKey"), rec.Only(t, "tls:index/selfSignedCert:SelfSignedCert")
	assert.Equal(t, "RSA", key.Input("algorithm"))
	assert.Equal(t, 4096.0, key.Input("rsaBits"))
	assert.True(t, key.Protect)
	assert.False(t, certificate.Protect, "a renewed certificate replaces it")
	assert.Empty(t, key.DeletedWith, "a new cluster keeps the key")
	assert.Equal(t, rec.Resource(t, "tls").URN, key.ProviderURN())

	found := sealingSecrets(rec)
	require.Len(t, found, 1)
	secret := found["sealed-secrets-key-1"]
	assert.Equal(t, "kube-system", secret.Input("metadata.namespace"))
	assert.Equal(t, "kubernetes.io/tls", secret.Input("type"))
	assert.Equal(t, in64(keyMaterial+"secrets-sealing-key-1"), secret.Input("data").(map[string]any)["tls.key"])
	release := rec.Resource(t, "secrets-sealed-secrets")
	assert.True(t, rec.After(release, secret))
	assert.True(t, rec.After(release, rec.Resource(t, "dns")))
	assert.False(t, rec.After(secret, rec.Resource(t, "dns")))
	for path, want := range map[string]any{
		"name": "sealed-secrets", "namespace": "kube-system", "chart": "sealed-secrets",
		"values.fullnameOverride": "sealed-secrets-controller", "values.keyrenewperiod": "0",
	} {
		assert.Equal(t, want, release.Input(path), path)
	}
	probe := rec.Resource(t, "secrets-sealed-secrets-probe")
	assert.Contains(t, probe.Dependencies, release.URN)
	sample := rec.Resource(t, "secrets-sealed-secrets-sample")
	assert.Contains(t, sample.Dependencies, probe.URN)
	unsealed := rec.Resource(t, "secrets-sealed-secrets-sample-probe")
	assert.Contains(t, unsealed.Dependencies, sample.URN)
	assert.Contains(t, rec.Resource(t, "next").Dependencies, unsealed.URN)
}

// The next run creates them with another field manager, and the API server has filled in defaults of lists.
func TestSecretsFoundation_TakesOverObjectsThatAKilledRunHasCreated(t *testing.T) {
	rec := &mocks.Recorder{}
	_, err := provide(t, rec, nil)
	require.NoError(t, err)
	for _, name := range []string{"sealed-secrets-sample", "onepassword-store", "onepassword-item"} {
		assert.Equal(t, "true", rec.Resource(t, "secrets-"+name).Input(`metadata.annotations["pulumi.com/patchForce"]`), name)
	}
}

// A key that the controller does not use would show only when a Secret is missing.
func TestSealedSecrets_TheControllerMustDecryptWhatIsSealedWithTheNewestCertificate(t *testing.T) {
	oldKey, oldCertificate := sealingPair(t, time.Now().Add(-time.Hour))
	newKey, newCertificate := sealingPair(t, time.Now())
	given := func(key, certificate string) (value string, probe mocks.Registration) {
		rec, none := &mocks.Recorder{}, 0
		_, err := provide(t, rec, func(a *secrets.SecretsFoundationArgs) {
			sealed(a).Keys = cluster.SealingKeys{Key: cluster.NewSecret(key), Certificate: cluster.NewSecret(certificate)}
			sealed(a).Settings.KeyPairs = &none
		})
		require.NoError(t, err)
		sample := rec.Resource(t, "secrets-sealed-secrets-sample")
		assert.Equal(t, "slipway-probe", sample.Input("metadata.name"))
		assert.Equal(t, "kube-system", sample.Input("metadata.namespace"))
		return sample.Input("spec.encryptedData.value").(string), rec.Resource(t, "secrets-sealed-secrets-sample-probe")
	}
	value, probe := given(oldKey, oldCertificate)
	again, _ := given(oldKey, oldCertificate)
	assert.Equal(t, value, again, "a second up changes nothing")
	assert.Equal(t, "works", unsealed(t, oldKey, value, "kube-system/slipway-probe"))
	spec := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(probe.Input("stdin").(string)), &spec))
	assert.Equal(t, []any{map[string]any{
		"group": "bitnami.com", "version": "v1alpha1", "resource": "sealedsecrets", "kind": "SealedSecret",
		"namespace": "kube-system", "name": "slipway-probe", "condition": "Synced",
	}}, spec["awaits"])
	assert.NotContains(t, spec, "accepts")

	rotated, after := given(newKey, newCertificate)
	assert.Equal(t, "works", unsealed(t, newKey, rotated, "kube-system/slipway-probe"))
	assert.NotEqual(t, probe.Input("triggers"), after.Input("triggers"), "it runs again")
}

// unsealed decrypts a value as the controller of sealed-secrets does.
func unsealed(t *testing.T, key, value, label string) string {
	t.Helper()
	block, _ := pem.Decode([]byte(key))
	private, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	require.NoError(t, err)
	text, err := base64.StdEncoding.DecodeString(value)
	require.NoError(t, err)
	length := int(binary.BigEndian.Uint16(text))
	session, err := rsa.DecryptOAEP(sha256.New(), nil, private, text[2:2+length], []byte(label))
	require.NoError(t, err)
	cipherBlock, err := aes.NewCipher(session)
	require.NoError(t, err)
	gcm, err := cipher.NewGCM(cipherBlock)
	require.NoError(t, err)
	plain, err := gcm.Open(nil, make([]byte, gcm.NonceSize()), text[2+length:], nil)
	require.NoError(t, err)
	return string(plain)
}

func TestSealedSecrets_ARotatedKeyLeavesTheOldOnesAsTheyAre(t *testing.T) {
	oldKey, oldCertificate := sealingPair(t, time.Now().Add(-time.Hour))
	newKey, newCertificate := sealingPair(t, time.Now())
	given := func(stack cluster.SealingKeys, pairs int) (*mocks.Recorder, map[string]mocks.Registration) {
		rec := &mocks.Recorder{}
		_, err := provide(t, rec, func(a *secrets.SecretsFoundationArgs) {
			sealed(a).Keys, sealed(a).Settings.KeyPairs = stack, &pairs
		})
		require.NoError(t, err)
		return rec, sealingSecrets(rec)
	}
	before, first := given(cluster.SealingKeys{
		Key: cluster.NewSecret(oldKey), Certificate: cluster.NewSecret(oldCertificate),
	}, 0)
	require.Len(t, first, 1)
	assert.Empty(t, before.OfType("tls:index/privateKey:PrivateKey"))
	after, second := given(cluster.SealingKeys{
		Key: cluster.NewSecret(newKey), Certificate: cluster.NewSecret(newCertificate),
		OldKeys: cluster.NewSecret(oldKey + oldCertificate),
	}, 0)
	require.Len(t, second, 2)
	for name, secret := range first {
		assert.Equal(t, secret.URN, second[name].URN, "it stays readable without a pause")
		assert.Equal(t, secret.Inputs, second[name].Inputs)
		assert.True(t, secret.SecretInput("data"))
		assert.Empty(t, secret.PlainPaths(in64(oldKey)))
	}
	const reads = "slipway-platform.github.io/reads"
	annotation := func(rec *mocks.Recorder) any {
		return rec.Resource(t, "secrets-sealed-secrets").Input("values.podAnnotations").(map[string]any)[reads]
	}
	assert.NotEqual(t, annotation(before), annotation(after), "the controller reads its keys only when it starts")
	assert.Equal(t, annotation(after), after.Resource(t, "secrets-sealed-secrets-probe").Input("triggers[2]"))

	two, made := given(cluster.SealingKeys{}, 2)
	assert.Len(t, made, 2)
	for _, key := range two.OfType("tls:index/privateKey:PrivateKey") {
		for _, certificate := range two.OfType("tls:index/selfSignedCert:SelfSignedCert") {
			later := key.Name == "secrets-sealing-key-2" && certificate.Name == "secrets-sealing-key-1"
			assert.Equal(t, later, two.After(key, certificate), "%s after %s", key.Name, certificate.Name)
		}
	}
	both, all := given(cluster.SealingKeys{OldKeys: cluster.NewSecret(oldKey + oldCertificate)}, 1)
	assert.Len(t, all, 2, "an old key beside one of the stack")
	assert.Len(t, both.OfType("tls:index/privateKey:PrivateKey"), 1)
}

func TestProviders_ShowNoSecretAndAreDeletedWithTheCluster(t *testing.T) {
	key, certificate := sealingPair(t, time.Now())
	rec := &mocks.Recorder{}
	_, err := provide(t, rec, func(a *secrets.SecretsFoundationArgs) {
		sealed(a).Keys = cluster.SealingKeys{
			Key: cluster.NewSecret(key), Certificate: cluster.NewSecret(certificate),
		}
	})
	require.NoError(t, err)
	for _, reg := range rec.Resources() {
		for _, marker := range []string{
			"CREDENTIALS-MARKER", "TOKEN-MARKER", "KUBECONFIG-MARKER", keyMaterial, key, in64(key), in64(credentials), in64(token),
		} {
			assert.Empty(t, reg.PlainPaths(marker), "%s %s", reg.Name, marker)
		}
		if len(reg.Type) > 11 && reg.Type[:11] == "kubernetes:" {
			assert.Equal(t, rec.Resource(t, "gate").URN, reg.DeletedWith, reg.Name)
			assert.Equal(t, rec.Resource(t, "kube").URN, reg.ProviderURN(), reg.Name)
		}
	}
}

func TestProviders_RejectArgsBeforeAnythingIsRegistered(t *testing.T) {
	none := 0
	for problem, change := range map[string]func(*secrets.SecretsFoundationArgs){
		"sealedSecrets: is incomplete":             func(a *secrets.SecretsFoundationArgs) { sealed(a).Settings.KeyPairs = &none },
		"sealedSecrets.tlsProvider: is missing":    func(a *secrets.SecretsFoundationArgs) { sealed(a).TLSProvider = nil },
		"onePassword: is incomplete; give":         func(a *secrets.SecretsFoundationArgs) { onepassword(a).Token = cluster.Secret{} },
		"onePassword: is incomplete":               func(a *secrets.SecretsFoundationArgs) { onepassword(a).Settings.Vaults = nil },
		"commandProvider: is missing":              func(a *secrets.SecretsFoundationArgs) { a.CommandProvider = nil },
		"kubeconfig: is missing":                   func(a *secrets.SecretsFoundationArgs) { a.Kubeconfig = nil },
		"timeout: 0s is not a wait; pass a durati": func(a *secrets.SecretsFoundationArgs) { a.Timeout = 0 },
	} {
		rec := &mocks.Recorder{}
		_, err := provide(t, rec, change)
		require.ErrorContains(t, err, problem)
		assert.Empty(t, rec.OfType("slipway:secrets:SecretsFoundation"), problem)
		assert.NotContains(t, err.Error(), "TOKEN-MARKER")
	}
}

func TestProviders_TakeTheUsersValuesBesideTheirOwn(t *testing.T) {
	rec := &mocks.Recorder{}
	_, err := provide(t, rec, func(a *secrets.SecretsFoundationArgs) {
		onepassword(a).Settings.Connect.Values = cluster.ChartValues(`{"connect":{"replicas":2,"podAnnotations":{"team":"a"}},"more":1}`)
		sealed(a).Settings.Values = cluster.ChartValues(`{"podAnnotations":{"team":"b"},"replicas":1}`)
	})
	require.NoError(t, err)
	connect := rec.Resource(t, "secrets-connect")
	assert.Equal(t, 2.0, connect.Input("values.connect.replicas"))
	assert.Equal(t, 1.0, connect.Input("values.more"))
	assert.Equal(t, "op-credentials", connect.Input("values.connect.credentialsName"))
	for _, annotations := range []any{
		connect.Input("values.connect.podAnnotations"), rec.Resource(t, "secrets-sealed-secrets").Input("values.podAnnotations"),
	} {
		assert.Len(t, annotations, 2)
		assert.Contains(t, annotations, "team")
		assert.Contains(t, annotations, "slipway-platform.github.io/reads")
	}
}
