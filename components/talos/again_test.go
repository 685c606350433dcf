package talos

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// The provider gives a configuration once: a machine whose installation fails has it in memory only.
func TestGiveAgain_OnlyAMachineThatNeverWasPartOfTheClusterGetsItsConfigurationAgain(t *testing.T) {
	all := turn.NodesOf(allMachines(t))
	without := func(name string) []turn.Node {
		return slices.DeleteFunc(slices.Clone(all), func(node turn.Node) bool { return node.Name == name })
	}
	away := errors.New("connection refused")
	for name, one := range map[string]struct {
		on     *calm
		change func(*cluster.Cluster)
		dryRun bool
		gets   []string
	}{
		"a worker": {on: &calm{nodes: without("infra-worker-2"), fresh: "infra-worker-2"},
			gets: []string{"infra-worker-2"}},
		"a worker that has joined":              {on: &calm{nodes: all, fresh: "infra-worker-2"}},
		"a control plane":                       {on: &calm{nodes: without("infra-cp-3"), fresh: "infra-cp-3"}, gets: []string{"infra-cp-3"}},
		"a control plane that etcd has":         {on: &calm{nodes: all, fresh: "infra-cp-3", strange: "infra-cp-3"}},
		"one with a configuration":              {on: &calm{nodes: without("infra-worker-2")}},
		"nobody answers":                        {on: &calm{nodes: all, fresh: "infra-worker-2", silent: away}},
		"the first run":                         {on: &calm{bare: true, noAPI: away}, gets: strings.Split(turn.Names(all), ", ")},
		"the first run, one is installed":       {on: &calm{fresh: "infra-cp-2", noAPI: away, unbootstraps: true}, gets: []string{"infra-cp-2"}},
		"the API is away":                       {on: &calm{fresh: "infra-cp-2", noAPI: away}},
		"a control plane with etcd is left out": {on: &calm{bare: true, noAPI: away}, change: skip("infra-cp-3")},
		"a preview":                             {on: &calm{bare: true, noAPI: away}, dryRun: true},
	} {
		changes := []func(*cluster.Cluster){}
		if one.change != nil {
			changes = append(changes, one.change)
		}
		args := arguments(t, changes...)
		args.dial = func(context.Context) (access, error) { return one.on, nil }
		require.NoError(t, answers(&mocks.Recorder{DryRun: one.dryRun}).Run(program(args, nil)), name)
		var got []string
		for _, line := range one.on.log {
			if node, is := strings.CutPrefix(line, "configure "); is {
				got = append(got, node)
			}
		}
		assert.ElementsMatch(t, one.gets, got, name)
	}
}

// By the creation of the resource, or by its update, such as after another mirror was declared.
func TestGiveAgain_AMachineThatGetsItInThisRunIsLeftAlone(t *testing.T) {
	updated := map[string]resource.PropertyMap{}
	for _, node := range allMachines(t) {
		updated["infra-"+node.Name+"-apply"] = resource.PropertyMap{}
	}
	for _, former := range []map[string]resource.PropertyMap{nil, updated} {
		on := &calm{bare: true, noAPI: errors.New("connection refused")}
		api, _ := emptyProxmox(t)
		args := arguments(t, api)
		args.Cluster.Talos.Factory, _ = factory(t)
		args.dial = func(context.Context) (access, error) { return on, nil }
		args.knock = func(context.Context, string) error { return nil }
		require.NoError(t, answers(&mocks.Recorder{RunHooks: true, Former: former}).Run(program(args, nil)))
		assert.NotContains(t, strings.Join(on.log, "\n"), "configure ", "it may not have left maintenance mode yet")
	}
}
