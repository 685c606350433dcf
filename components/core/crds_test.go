package core_test

import (
	"strings"
	"testing"

	"github.com/pulumi/pulumi-command/sdk/go/command/local"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/core"
	"github.com/slipway-platform/slipway/internal/crds"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/clusters"
)

const crdsType = "slipway:core:CRDs"

func newCRDs(t *testing.T, c *chain, mutate func(*core.CRDsArgs)) error {
	t.Helper()
	return c.run(t, func(ctx *pulumi.Context) error {
		args := c.crds()
		if mutate != nil {
			mutate(args)
		}
		phase, err := core.NewCRDs(ctx, "crds", args)
		if err != nil {
			return err
		}
		phase.Leaves()[0] = nil // the slice is the caller's own
		if err := c.next(ctx, phase.Leaves()); err != nil {
			return err
		}
		// Mocks record inputs and no outputs, so the report is the input of another resource.
		reader := &local.CommandArgs{Environment: pulumi.StringMap{"REPORT": phase.Report}}
		_, err = local.NewCommand(ctx, "reader", reader, pulumi.Provider(c.commands))
		return err
	})
}

func TestCRDs_AreOneCommandForAllSets(t *testing.T) {
	c := &chain{}
	require.NoError(t, newCRDs(t, c, nil))
	apply := c.Resource(t, "crds-apply")
	assert.Equal(t, probe.Program+" crds", apply.Input("create"))
	assert.Nil(t, apply.Input("delete"), "deleting CRDs deletes all objects of their kinds")

	var triggers []any
	var sources []crds.Source
	for _, set := range c.model.CRDs.Sets() {
		triggers = append(triggers, set.Name+" "+set.Source.Version+" "+set.Source.URL)
		sources = append(sources, crds.Source{
			Name: set.Name, Version: set.Source.Version, URL: set.Source.URL, Bundle: set.Key == "cloudnativePG" || set.Key == "gatewayAPI",
		})
	}
	require.NotEmpty(t, triggers)
	assert.Equal(t, triggers, apply.Input("triggers"))

	assert.True(t, apply.SecretInput("stdin"))
	assert.Empty(t, apply.PlainPaths("c2VjcmV0"))
	assert.Equal(t, []string{"stdin"}, apply.AdditionalSecretOutputs)
	var spec crds.Spec
	require.NoError(t, probe.Read(strings.NewReader(apply.Input("stdin").(string)), &spec))
	assert.Equal(t, "infra", spec.Cluster)
	assert.Equal(t, kubeconfig, spec.Kubeconfig)
	assert.Equal(t, sources, spec.Sources)
}

func TestCRDs_WaitForTheirLeavesAndAreDeletedWithTheCluster(t *testing.T) {
	c := &chain{}
	require.NoError(t, newCRDs(t, c, nil))
	apply := c.Resource(t, "crds-apply")
	assert.True(t, c.After(apply, c.Resource(t, "gate")))
	assert.Equal(t, c.Resource(t, "bootstrap").URN, apply.DeletedWith)
	assert.Equal(t, c.Resource(t, "command").URN, apply.ProviderURN())
}

func TestCRDs_TheirLeafIsTheCommand(t *testing.T) {
	c := &chain{}
	require.NoError(t, newCRDs(t, c, nil))
	assert.Contains(t, c.Resource(t, "next").Dependencies, c.Resource(t, "crds-apply").URN)

	var none *core.CRDs
	assert.Empty(t, none.Leaves(), "a cluster without CRDs has no such phase")
}

func TestCRDs_ReportOneLineThatIsNoSecret(t *testing.T) {
	c := &chain{}
	require.NoError(t, newCRDs(t, c, nil))
	reader := c.Resource(t, "reader")
	assert.Equal(t, report, reader.Input("environment.REPORT"))
	assert.False(t, reader.SecretInput("environment.REPORT"))
}

func TestCRDs_UseADeclaredSource(t *testing.T) {
	sum := strings.Repeat("a", 64)
	c := &chain{model: clusters.Infra(t, func(c *cluster.Cluster) {
		for _, set := range c.CRDs.Sets() {
			set.Source.Skip = set.Key == "cloudnativePG"
		}
		c.CRDs.CertManager.URL, c.CRDs.CertManager.SHA256 = "https://mirror.example.com/cm.yaml", sum
	})}
	require.NoError(t, newCRDs(t, c, nil))
	triggers := c.Resource(t, "crds-apply").Input("triggers")
	assert.Len(t, triggers, 7, "a set that is skipped is left out")
	assert.Contains(t, triggers, "cert-manager "+c.model.CertManager.Version+" https://mirror.example.com/cm.yaml sha256:"+sum)
}

func TestCRDs_RejectArgsBeforeAnythingIsRegistered(t *testing.T) {
	for problem, mutate := range map[string]func(*core.CRDsArgs){
		"name: is missing":            func(a *core.CRDsArgs) { a.Name = "" },
		"kubeconfig: is missing":      func(a *core.CRDsArgs) { a.Kubeconfig = nil },
		"commandProvider: is missing": func(a *core.CRDsArgs) { a.CommandProvider = nil },
		"deletedWith: is missing":     func(a *core.CRDsArgs) { a.DeletedWith = nil },
		"sources: are empty":          func(a *core.CRDsArgs) { a.Sets = nil },
		"sources[0].name: is empty":   func(a *core.CRDsArgs) { a.Sets = []cluster.CRDSet{{Source: &cluster.CRDSource{}}} },
		"name: is given twice":        func(a *core.CRDsArgs) { a.Sets = append(a.Sets, a.Sets[0]) },
		"is not 64 hexadecimal digit": func(a *core.CRDsArgs) { a.Sets[0].Source.SHA256 = "abc" },
		"is not an https URL":         func(a *core.CRDsArgs) { a.Sets[0].Source.URL = "http://example.com/x.yaml" },
		`CRDs "crds": `:               func(a *core.CRDsArgs) { *a = core.CRDsArgs{} },
	} {
		c := &chain{}
		require.ErrorContains(t, newCRDs(t, c, mutate), problem)
		assert.Empty(t, c.OfType(crdsType), problem)
	}
}
