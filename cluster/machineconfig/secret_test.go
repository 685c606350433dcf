package machineconfig

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSecretsIn_FindsWhatMayBeASecret(t *testing.T) {
	for name, test := range map[string]struct {
		patch string
		want  []string
	}{
		"registry login": {
			"machine: {registries: {config: {ghcr.io: {auth: {username: flux, password: x}}}}}",
			[]string{"machine.registries.config.ghcr.io.auth.password", "machine.registries.config.ghcr.io.auth.username"},
		},
		"registry document": {
			document("RegistryAuthConfig", "name: ghcr.io\nusername: flux\npassword: x\n"),
			[]string{"RegistryAuthConfig ghcr.io.password"},
		},
		"client key of a registry": {
			"machine: {registries: {config: {ghcr.io: {tls: {clientIdentity: {crt: eA==, key: eA==}}}}}}",
			[]string{"machine.registries.config.ghcr.io.tls.clientIdentity.key"},
		},
		"WireGuard, by document": {
			document("WireguardConfig", "name: wg0\nprivateKey: x\n"+
				"peers: [{publicKey: uKXHEhXQhPgJ8bXCZnTRsSxF0Qx3tkgs3bVXjDTDfUk=, presharedKey: y}]\n"),
			[]string{"WireguardConfig wg0.peers[0].presharedKey", "WireguardConfig wg0.privateKey"},
		},
		"keys of a topology": {
			"cluster: {scheduler: {config: {profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: " +
				"[{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}]}}]}]}}}", nil,
		},
		"machine CA":    {"machine: {ca: {crt: eA==, key: eA==}}", []string{"machine.ca.key"}},
		"machine token": {"machine: {token: x}", []string{"machine.token"}},
		"environment": {
			"machine: {env: {http_proxy: 'http://proxy.home.arpa:3128', https_proxy: 'http://u:p@proxy.home.arpa:3128', GRPC_TOKEN: y}}",
			[]string{"machine.env.GRPC_TOKEN", "machine.env.https_proxy"},
		},
		"environment of a service": {
			document("ExtensionServiceConfig", "name: x\nenvironment: ['TS_ROUTES=10.0.0.0/8', 'TS_AUTHKEY=tskey-auth-x']\n"),
			[]string{"ExtensionServiceConfig x.environment[1]"},
		},
		"file": {
			"machine: {files: [{path: /var/x, content: 'server = a.home.arpa'}, {path: /var/y, content: 'password = y'}]}",
			[]string{"machine.files[1].content"},
		},
		"file with a certificate": {
			"machine: {files: [{path: /var/x, content: \"-----BEGIN CERTIFICATE-----\\nMIIB0123456789abcdefABCDEF0123456789abcdefABCDEF\\n" +
				"-----END CERTIFICATE-----\\n\"}]}", nil,
		},
		"inline manifest": {
			"cluster: {inlineManifests: [{name: x, contents: 'kind: Namespace'}, {name: y, contents: \"kind: Secret\\nstringData: {a: b}\"}]}",
			[]string{"cluster.inlineManifests[1].contents"},
		},
		"static pod": {
			"machine: {pods: [{kind: Pod, spec: {containers: [{name: a, env: [{name: A, value: b}, {name: A_PASSWORD, value: b}, " +
				"{name: C, valueFrom: {secretKeyRef: {name: c, key: d}}}]}]}}]}",
			[]string{
				"machine.pods[0].spec.containers[0].env[1].name", "machine.pods[0].spec.containers[0].env[1].value",
			},
		},
		"login of a registry in a file": {
			`machine: {files: [{path: /var/x, content: '{"auths": {"a.example.com": {"auth": "Ym90Omh1bnRlcjI="}}}'}]}`,
			[]string{"machine.files[0].content"},
		},
		"netrc": {
			"machine: {files: [{path: /var/x, content: machine a login b password hunter2}]}", []string{"machine.files[0].content"},
		},
		"key in TOML": {
			`machine: {files: [{path: /var/x, content: 'key = "9f86d081884c7d659a2feaa0c55ad015"'}]}`, []string{"machine.files[0].content"},
		},
		"id of a role": {
			`machine: {files: [{path: /var/x, content: 'secret_id: 6c0ad1d5-7a4c-4c1e-9d5b-0f3c2f7b8a11'}]}`, []string{"machine.files[0].content"},
		},
		"short names": {
			"machine: {env: {DB_PASS: hunter2, MYSQL_PWD: hunter2, A_PINE: b}}", []string{"machine.env.DB_PASS", "machine.env.MYSQL_PWD"},
		},
		"short name of a service": {
			document("ExtensionServiceConfig", "name: x\nenvironment: ['DB_PASS=hunter2']\n"), []string{"ExtensionServiceConfig x.environment[0]"},
		},
		"value after its flag": {
			"machine: {pods: [{kind: Pod, spec: {containers: [{name: a, args: [--requirepass, hunter2, --v, '2']}]}}]}",
			[]string{"machine.pods[0].spec.containers[0].args[1]"},
		},
		"numbers in a Secret": {
			"cluster: {inlineManifests: [{name: y, contents: \"kind: Secret\\nstringData: {pin: 123456}\"}]}",
			[]string{"cluster.inlineManifests[0].contents"},
		},
		"manifest that names Secrets": {
			"cluster: {inlineManifests: [{name: y, contents: 'spec: {secretName: a, automountServiceAccountToken: false, tokens: 3}'}]}", nil,
		},
		"token for logs": {
			"machine: {logging: {destinations: [{endpoint: 'tcp://a.home.arpa:1/', extraTags: {token: hunter2, env: prod}}]}}",
			[]string{"machine.logging.destinations[0].extraTags.token"},
		},
		"headers": {"cluster: {extraManifestHeaders: {X-Team: platform}}", []string{"cluster.extraManifestHeaders.X-Team"}},
		"credential provider": {
			"machine: {kubelet: {credentialProviderConfig: {providers: [{name: x, args: [get, --token=y]}]}}}",
			[]string{"machine.kubelet.credentialProviderConfig.providers[0].args[1]"},
		},
		"passphrase": {
			document("VolumeConfig", "name: STATE\nencryption: {provider: luks2, keys: [{slot: 0, static: {passphrase: x}}]}\n"),
			[]string{"VolumeConfig STATE.encryption.keys[0].static.passphrase"},
		},
		"API token": {
			document("HCloudVIPConfig", "name: 1.2.3.4\nlink: eth0\napiToken: x\n"),
			[]string{"HCloudVIPConfig 1.2.3.4.apiToken"},
		},
		"password in a URL": {document("KmsgLogConfig", "name: x\nurl: 'https://u:p@logs/'\n"), []string{"KmsgLogConfig x.url"}},
		"flag": {
			"cluster: {apiServer: {extraArgs: {oidc-client-secret: x}}}",
			[]string{"cluster.apiServer.extraArgs.oidc-client-secret"},
		},
		"private key":      {"machine: {sysctls: {x: '-----BEGIN PRIVATE KEY-----'}}", []string{"machine.sysctls.x"}},
		"in JSON":          {`{"machine": {"token": "x"}}`, []string{"machine.token"}},
		"second document":  {"machine: {type: worker}\n---\nmachine: {token: x}\n", []string{"machine.token"}},
		"unknown to Talos": {"machine: {nonsense: {password: x}}", []string{"machine.nonsense.password"}},
		"with a deletion":  {"machine: {token: x, env: {$patch: delete}}", []string{"machine.token"}},
		"certificate": {
			"machine: {registries: {config: {ghcr.io: {tls: {ca: " +
				inBase64("-----BEGIN CERTIFICATE-----\nabcdefgh\n-----END CERTIFICATE-----\n") + "}}}}}", nil,
		},
		"certificate with its key": {
			"machine: {registries: {config: {ghcr.io: {tls: {ca: " +
				inBase64("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n") + "}}}}}",
			[]string{"machine.registries.config.ghcr.io.tls.ca"},
		},
		"switches named like secrets": {
			"cluster: {apiServer: {extraArgs: {anonymous-auth: 'false', enable-bootstrap-token-auth: 'true', " +
				"feature-gates: 'ServiceAccountTokenPodNodeInfo=true,MemoryQoS=true'}}}", nil,
		},
		"cipher suites": {
			"machine: {kubelet: {extraConfig: {tlsCipherSuites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]}}}", nil,
		},
		"id of a client": {"cluster: {apiServer: {extraArgs: {oidc-client-id: 6f9619ff-8b86-d011-b42d-00cf4fc964ff}}}", nil},
		"labels": {
			"machine: {nodeLabels: {example.com/env: prod, example.com/ssh-key: none}, logging: {destinations: [{extraTags: {env: a}}]}}",
			nil,
		},
		"token in an annotation": {
			"machine: {nodeAnnotations: {example.com/a: ghp_0123456789abcdefghij}}", []string{"machine.nodeAnnotations.example.com/a"},
		},
		"selector": {
			"cluster: {scheduler: {config: {profiles: [{pluginConfig: [{args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " +
				"{nodeSelectorTerms: [{matchExpressions: [{key: example.com/a, operator: Exists}]}]}}}}]}]}}}", nil,
		},
		"document named like a secret": {
			document("UserVolumeConfig", "name: key\nprovisioning: {minSize: 1GiB, diskSelector: {match: system_disk}}\n"), nil,
		},
		"number as password": {
			"machine: {registries: {config: {ghcr.io: {auth: {password: 12345}}}}}", []string{"machine.registries.config.ghcr.io.auth.password"},
		},
		"harmless": {"machine: {sysctls: {a.b: '1'}, nodeLabels: {a: b}, kubelet: {extraArgs: {v: '2'}}, certSANs: [a.b]}", nil},
		"empty":    {"", nil},
		"text":     {"x", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := secretsIn(test.patch)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func inBase64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func TestSecretsIn_SaysNothingOfATextThatItCannotRead(t *testing.T) {
	for _, patch := range []string{"SENSITIVE: [", "SENSITIVE: &x [*x]", strings.Repeat("SENSITIVE", maxPatchBytes/8)} {
		_, err := secretsIn(patch)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "SENSITIVE")
	}
}
