package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/components/core"
	"github.com/slipway-platform/slipway/components/core/pins"
	"github.com/slipway-platform/slipway/internal/crds"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/internal/step"
)

func newCRDs(t *testing.T, c *chain, mutate func(*core.CRDsArgs)) error {
	t.Helper()
	return c.run(t, func(ctx *pulumi.Context) error {
		args := c.crds()
		if mutate != nil {
			mutate(args)
		}
		phase, err := core.NewCRDs(ctx, "crds", args)
		if err == nil {
			ctx.Export("report", phase.Report)
		}
		return err
	})
}

func TestCRDs_AreOneCommandThatIsToldThePins(t *testing.T) {
	c := &chain{}
	require.NoError(t, newCRDs(t, c, nil))
	apply := c.Resource(t, "crds-apply")
	assert.Equal(t, step.Program+" crds", apply.Input("create"))
	assert.Nil(t, apply.Input("delete"), "deleting definitions deletes all objects of their kinds")
	assert.Equal(t, []any{
		"Gateway API " + pins.GatewayAPI.Version + " " + pins.GatewayAPI.URL(""),
		"CloudNativePG 1.28.1 https://raw.githubusercontent.com/cloudnative-pg/cloudnative-pg/release-1.28/releases/cnpg-1.28.1.yaml",
	}, apply.Input("triggers"))

	assert.True(t, apply.SecretInput("stdin"))
	assert.Empty(t, apply.PlainPaths("c2VjcmV0"))
	assert.Equal(t, []string{"stdin"}, apply.AdditionalSecretOutputs)
	var spec crds.Spec
	require.NoError(t, probe.Read(strings.NewReader(apply.Input("stdin").(string)), &spec))
	assert.Equal(t, kubeconfig, spec.Kubeconfig)
	assert.False(t, spec.Sources[0].Bundle)
	assert.True(t, spec.Sources[1].Bundle)
}

func TestCRDs_WaitForTheirLeavesAndGoWithTheCluster(t *testing.T) {
	c := &chain{}
	require.NoError(t, newCRDs(t, c, nil))
	apply := c.Resource(t, "crds-apply")
	assert.True(t, c.After(apply, c.Resource(t, "gate")))
	assert.Equal(t, c.Resource(t, "bootstrap").URN, apply.DeletedWith)
	assert.Equal(t, c.Resource(t, "command").URN, apply.ProviderURN())
}

func TestCRDs_TakeASourceOfOnesOwn(t *testing.T) {
	c := &chain{}
	sum := strings.Repeat("a", 64)
	require.NoError(t, newCRDs(t, c, func(args *core.CRDsArgs) {
		args.Sources = []core.CRDSource{{Set: pins.CertManager, URL: "https://mirror.example.com/cm.yaml", SHA256: sum}}
	}))
	assert.Equal(t, []any{"cert-manager " + pins.CertManagerVersion + " https://mirror.example.com/cm.yaml sha256:" + sum},
		c.Resource(t, "crds-apply").Input("triggers"))
}

func TestCRDs_RejectArgsBeforeAnythingIsRegistered(t *testing.T) {
	for problem, mutate := range map[string]func(*core.CRDsArgs){
		"cluster: missing":            func(a *core.CRDsArgs) { a.Cluster = "" },
		"kubeconfig: missing":         func(a *core.CRDsArgs) { a.Kubeconfig = nil },
		"commandProvider: missing":    func(a *core.CRDsArgs) { a.CommandProvider = nil },
		"sources: are empty":          func(a *core.CRDsArgs) { a.Sources = nil },
		"timeout: -1s is negative":    func(a *core.CRDsArgs) { a.Timeout = -time.Second },
		"sources[0].name: is empty":   func(a *core.CRDsArgs) { a.Sources = []core.CRDSource{{}} },
		"name: is given twice":        func(a *core.CRDsArgs) { a.Sources = append(a.Sources, a.Sources[0]) },
		"is not 64 hexadecimal digit": func(a *core.CRDsArgs) { a.Sources[0].SHA256 = "abc" },
		"is not an https URL":         func(a *core.CRDsArgs) { a.Sources[0].URL = "http://example.com/x.yaml" },
	} {
		c := &chain{}
		require.ErrorContains(t, newCRDs(t, c, mutate), problem)
		assert.NotContains(t, c.Names(), "crds")
	}
}
