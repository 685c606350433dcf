package machineconfig

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

// keyless are the rendered parts that no key declares. What patches add to them is checked in additions.go.
var keyless = []string{"version", "machine.certSANs", "machine.features.hostDNS", "machine.features.kubePrism", "machine.files"}

// renderedParts returns the paths of all values of a tree.
func renderedParts(tree any, path ...string) [][]string {
	fields, is := tree.(map[string]any)
	if !is || len(fields) == 0 {
		return [][]string{path}
	}
	var all [][]string
	for key, value := range fields {
		all = append(all, renderedParts(value, append(slices.Clone(path), key)...)...)
	}
	return all
}

func TestOwned_NamesTheKeyOfEachRenderedPart(t *testing.T) {
	looked := map[string]bool{}
	for _, c := range []*cluster.Cluster{sample(t, everything), sample(t, dualStack, disks), sample(t, kubeletAndExtensions)} {
		for _, role := range []cluster.Role{cluster.ControlPlane, cluster.Worker} {
			_, rendered, err := withoutUserPatches(model{*c}, machineOf(c, role))
			require.NoError(t, err)
			for _, path := range renderedParts(rendered) {
				looked[strings.Join(path, ".")] = true
				named := isOwned(path) || remedyFor(path) != removeIt
				none := slices.ContainsFunc(keyless, func(part string) bool { return holds(part, path) })
				assert.NotEqual(t, named, none, "%s: write a line into owned.txt, or a part without a key into keyless", strings.Join(path, "."))
			}
		}
	}
	assert.Greater(t, len(looked), 30)
}
