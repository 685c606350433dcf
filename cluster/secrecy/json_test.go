package secrecy

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestInJSON_FindsValuesByNameAndTextButNotWhereASecretIsNamed(t *testing.T) {
	assert.Equal(t, []string{"a.adminPassword", "args[1]", "key"}, InJSON([]byte(`{
  "a": {"adminPassword": "x", "existingSecret": "grafana", "secretName": "tls", "passwordLength": "12", "token": ""},
  "args": ["--v=2", "--token=abc"],
  "key": "-----BEGIN PRIVATE KEY-----",
  "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]}`)))
}
