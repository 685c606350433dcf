package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
)

// engine returns configuration values as *pulumi.Context does.
type engine struct {
	values  map[string]string
	secrets map[string]bool
}

func (e engine) Stack() string { return "home" }

func (e engine) GetConfig(key string) (string, bool) {
	value, ok := e.values[key]
	return value, ok
}

func (e engine) IsConfigSecret(key string) bool { return e.secrets[key] }

// engineOf returns an engine with a valid fixture, in the engine's form: objects as JSON, secrets decrypted.
func engineOf(t *testing.T) engine {
	t.Helper()
	source, err := sourceOf(fixtures.Get("minimal").Text)
	require.NoError(t, err)
	e := engine{values: map[string]string{"slipway:gitPassword": "hunter2"}, secrets: map[string]bool{"slipway:gitPassword": true}}
	for key, value := range source.Values {
		e.values[key] = value.Text()
	}
	return e
}

func TestFromEngine_LooksUpTheModelsKeysWhereThereIsNoEngine(t *testing.T) {
	source, err := FromEngine(engineOf(t), "")
	require.NoError(t, err)
	stack, err := Load(source)
	require.NoError(t, err)
	assert.Equal(t, "home", stack.Stack)
	assert.Equal(t, "hunter2", stack.GitPassword.Reveal())
	assert.Equal(t, 101, stack.Machines()[0].VMID)
}

func TestFromEngine_SeesUnknownKeysInTheEnvironment(t *testing.T) {
	e := engineOf(t)
	e.values["slipway:netwrok"] = "{}"
	e.values["pulumi:tags"] = "{}"
	source, err := FromEngine(e, `{"slipway:netwrok":"{}","pulumi:tags":"{}","slipway:cluster":"{}"}`)
	require.NoError(t, err)
	_, err = Load(source)
	assert.EqualError(t, err, "netwrok: is not a key; remove it, or move its value to network")
}

func TestFromEngine_RefusesAnEnvironmentThatIsNoList(t *testing.T) {
	_, err := FromEngine(engineOf(t), "nonsense")
	assert.ErrorContains(t, err, "PULUMI_CONFIG: not the list of keys that Pulumi passes to a program")
}

func TestLoad_RequiresTheGitPasswordInAProgram(t *testing.T) {
	e := engineOf(t)
	delete(e.values, "slipway:gitPassword")
	source, err := FromEngine(e, "")
	require.NoError(t, err)
	_, err = Load(source)
	assert.EqualError(t, err, "gitPassword: is missing; set it with: pulumi config set --secret slipway:gitPassword")
}

func TestLoad_ChecksTheFormOfSecretsWithoutShowingThem(t *testing.T) {
	e := engineOf(t)
	e.values["slipway:gitPassword"] = "hunter2\n"
	e.values["slipway:proxmoxApiToken"] = "PVEAPIToken=root@pam!x=hunter2"
	e.secrets["slipway:proxmoxApiToken"] = true
	source, err := FromEngine(e, "")
	require.NoError(t, err)
	_, err = Load(source)
	assert.EqualError(t, err, "proxmoxApiToken: the value begins with what its HTTP header begins with; remove PVEAPIToken= before the user\n"+
		"gitPassword: has a line break or another control character in it; set it without, for instance with printf instead of echo")

	e.values["slipway:gitPassword"] = "hunter2"
	e.values["slipway:proxmoxApiToken"] = "slipway@pve!pulumi=0c5a8d6e-1111-2222-3333-444455556666"
	source, err = FromEngine(e, "")
	require.NoError(t, err)
	stack, err := Load(source)
	require.NoError(t, err)
	assert.True(t, stack.ProxmoxAPIToken.IsSet())
}

func TestLoad_ReportsAKeyTheEngineWasGivenTwice(t *testing.T) {
	e := engineOf(t)
	e.values["slipway:cluster"] = `{"name":"home","id":1,"id":2}`
	source, err := FromEngine(e, "")
	require.NoError(t, err)
	_, err = Load(source)
	assert.EqualError(t, err, "cluster.id: is given twice; keep one")
}
