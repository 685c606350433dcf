package graph

import (
	"errors"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/stacks"
	"github.com/slipway-platform/slipway/tests/mocks"
)

func TestChain_BootstrapsOnceAfterEveryApply(t *testing.T) {
	eachStack(t, func(t *testing.T, stack *cluster.Cluster, rec *mocks.Recorder) {
		bootstrap := rec.Resource(t, bootstrapName)
		assert.Empty(t, rec.OfType(typeBootstrap), "the command is the only bootstrap")
		applies := rec.OfType(typeApply)
		assert.Len(t, applies, len(stack.Machines()))
		for _, apply := range applies {
			assert.True(t, rec.After(bootstrap, apply), apply.Name)
		}
	})
}

func TestChain_RunsInOrderFromMachinesToFlux(t *testing.T) {
	eachStack(t, func(t *testing.T, _ *cluster.Cluster, rec *mocks.Recorder) {
		chain := []string{bootstrapName, machinesGate, crds, ciliumRelease, gate, coreDNS, certManager, instance, handover}
		for i, later := range chain {
			for _, earlier := range chain[:i] {
				assert.True(t, rec.After(rec.Resource(t, later), rec.Resource(t, earlier)), "%s after %s", later, earlier)
				assert.False(t, rec.After(rec.Resource(t, earlier), rec.Resource(t, later)), "%s before %s", earlier, later)
			}
		}
	})
}

func TestChain_TheGateIsAfterEverythingItVerifiesAndBeforeEverythingElse(t *testing.T) {
	eachStack(t, func(t *testing.T, _ *cluster.Cluster, rec *mocks.Recorder) {
		probe := rec.Resource(t, gate)
		for _, verified := range append(rec.OfType(typeApply), rec.Resource(t, ciliumRelease)) {
			assert.Contains(t, probe.Dependencies, verified.URN, "a direct edge, not only through other resources")
		}
		later := afterGate(rec)
		require.NotEmpty(t, later)
		for _, reg := range later {
			assert.True(t, rec.After(reg, probe), "%s is registered before the gate has passed", reg.Name)
			// The state must have the edge of everything that is in the cluster. Among the core services only CoreDNS has it itself; the
			// others depend on CoreDNS.
			if strings.HasPrefix(reg.Type, "kubernetes:") && !strings.Contains(reg.URN, "slipway:core:") ||
				reg.Name == coreDNS || reg.Name == handover {
				assert.Contains(t, reg.Dependencies, probe.URN, "%s has no edge to the gate in state", reg.Name)
			}
		}
	})
}

func TestChain_TheKubernetesProviderIsConfiguredOnceTheAPIAnswers(t *testing.T) {
	eachStack(t, func(t *testing.T, stack *cluster.Cluster, rec *mocks.Recorder) {
		provider := rec.Only(t, "pulumi:providers:kubernetes")
		assert.True(t, rec.After(provider, rec.Resource(t, machinesGate)))
		assert.True(t, rec.After(provider, rec.Resource(t, "crds-apply")), "the API server is busy with the schemas until then")
		assert.Equal(t, stack.Identity.Name, provider.Input("clusterIdentifier"))
		assert.Equal(t, true, provider.Input("enableServerSideApply"))
		assert.True(t, provider.SecretInput("kubeconfig"))
	})
}

func TestChain_AFailedGateRegistersNothingAfterIt(t *testing.T) {
	for _, name := range stackNames(t) {
		for _, failing := range []string{machinesGate, gate} {
			t.Run(name+"/"+failing, func(t *testing.T) {
				rec := newRecorder(t, name)
				rec.OnResource = func(reg mocks.Registration) (resource.PropertyMap, error) {
					if reg.Name == failing {
						return nil, errors.New("kubelet of worker-1 is not running")
					}
					return answer(reg)
				}
				require.ErrorContains(t, rec.Run(stacks.Deploy), "kubelet of worker-1 is not running")
				assert.Empty(t, namesOf(afterGate(rec)))
				if failing == machinesGate {
					assert.Empty(t, namesOf(rec.OfType(typeRelease)))
					assert.Empty(t, namesOf(rec.Find(func(reg mocks.Registration) bool { return reg.Name == gate })))
				}
			})
		}
	}
}

func TestChain_APreviewRegistersTheSameResources(t *testing.T) {
	for _, name := range stackNames(t) {
		t.Run(name, func(t *testing.T) {
			preview := newRecorder(t, name)
			preview.DryRun = true
			require.NoError(t, preview.Run(stacks.Deploy))
			assert.Equal(t, up(t, name).Names(), preview.Names())
		})
	}
}

func TestChain_WrongConfigurationRegistersNothing(t *testing.T) {
	const identity = "slipway:gitIdentity"
	for problem, mutate := range map[string]func(rec *mocks.Recorder){
		"gitPassword: is missing":           func(rec *mocks.Recorder) { delete(rec.Secrets, "slipway:gitPassword") },
		"gitPassword: begins or":            func(rec *mocks.Recorder) { rec.Secrets["slipway:gitPassword"] += " " },
		"gitIdentity: is for SSH":           func(rec *mocks.Recorder) { rec.Secrets[identity] = secretValues()[identity] },
		"sopsAgeKey: is a public key":       func(rec *mocks.Recorder) { rec.Secrets["slipway:sopsAgeKey"] = "age1qqqqqqqqqqqqqqqq" },
		"cluster.id: 0":                     func(rec *mocks.Recorder) { rec.Config["slipway:cluster"] = `{"name":"Infra","id":0}` },
		"network: is missing":               func(rec *mocks.Recorder) { delete(rec.Config, "slipway:network") },
		"cilium.chartVersion: is not a key": func(rec *mocks.Recorder) { rec.Config["slipway:cilium"] = `{"chartVersion":"1"}` },
	} {
		t.Run(problem, func(t *testing.T) {
			rec := newRecorder(t, "infra")
			mutate(rec)
			err := rec.Run(stacks.Deploy)
			require.ErrorContains(t, err, problem)
			assert.NotContains(t, err.Error(), gitPassword)
			assert.Empty(t, rec.Names())
		})
	}
}
