package secrecy

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInJSON_FindsValuesByNameAndTextButNotWhereASecretIsNamed(t *testing.T) {
	assert.Equal(t, []string{"a.adminPassword", "args[1]", "clientSecret", "key"}, InJSON([]byte(`{
  "clientSecret": "Hunter_2hunter", "createSecret": "True", "oidc": {"clientSecret": "$oidc:CLIENT_SECRET"}, "existingSecret": "ns/oidc.v1",
  "argo": {"clientSecret": "vault:secret/data/argo#CLIENT_SECRET"}, "dex": {"clientSecret": "op://Infra/Dex/CLIENT_SECRET"},
  "flux": {"clientSecret": "${CLIENT_SECRET}"}, "env": {"clientSecret": {"secretKeyRef": {"name": "oidc", "key": "CLIENT_SECRET"}}},
  "a": {"adminPassword": "x", "existingSecret": "grafana", "secretName": "tls", "passwordLength": "12", "token": ""},
  "args": ["--v=2", "--token=abc"],
  "key": "-----BEGIN PRIVATE KEY-----",
  "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]}`)))
}

func TestInJSON_FindsTheSecretsOfPluginsOfCoreDNS(t *testing.T) {
	for block, is := range map[string]bool{
		"secret key.home.arpa. c2VjcmV0c2VjcmV0": true, "ttl 30\n  credentials dns hunter2": true, "aws_access_key AKIA x": true,
		"secrets /etc/coredns/keys": false, "secret {$TSIG}": false, "lameduck 5s\nprefer_udp": false,
	} {
		document, err := json.Marshal(map[string]any{"servers": []any{map[string]any{"plugins": []any{map[string]any{"configBlock": block}}}}})
		require.NoError(t, err)
		var paths []string
		if is {
			paths = []string{"servers[0].plugins[0].configBlock"}
		}
		assert.Equal(t, paths, InJSON(document), block)
	}
}
