package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/stacks/config"
)

// matrixKey matches a key at the beginning of a code span; a row about it is about those below it, too.
var matrixKey = regexp.MustCompile("`([a-zA-Z][a-zA-Z0-9.\\[\\]]*)[`:]")

func TestMatrix_EachKeyOfTheStackFilesIsInARow(t *testing.T) {
	rows := map[string]bool{}
	for _, cells := range rowsOf(matrixOfChanges(t)) {
		for _, key := range matrixKey.FindAllStringSubmatch(cells[0], -1) {
			assert.NoError(t, checkKey(key[1]), cells[0])
			rows[index.ReplaceAllString(key[1], "")] = true
		}
	}
	has := func(key string) bool {
		for above := key; ; {
			if rows[above] {
				return true
			}
			end := strings.LastIndex(above, ".")
			if end < 0 {
				return false
			}
			above = above[:end]
		}
	}
	for _, key := range dangerous(t) {
		assert.True(t, has(key), "preview/report/danger.go says that a change of %s is dangerous, and docs/changes.md has no row about it", key)
	}
	known, err := sections()
	require.NoError(t, err)
	looked := 0
	for _, section := range config.Keys() {
		name := strings.TrimPrefix(section, config.Namespace+":")
		if _, secret := known[name].Properties["secure"]; secret {
			continue
		}
		known[name].keys(name, func(key string) {
			looked++
			assert.True(t, has(key), "docs/changes.md: the matrix has no row about %s", key)
		})
	}
	assert.Greater(t, looked, 200)
}

// rowInLab matches a row of the matrix that a lab test names, with the beginning of what it says.
var rowInLab = regexp.MustCompile(`cell: "([^"]+)", does: "([^"]+)"`)

func TestMatrix_EachRowIsMadeByATestOrSaysWhyNot(t *testing.T) {
	says := map[string]string{}
	for _, cells := range rowsOf(matrixOfChanges(t)) {
		says[cells[0]] = cells[2]
	}
	files, err := filepath.Glob(filepath.Join(repository, "tests", "e2e", "changes*_test.go"))
	require.NoError(t, err)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(text)
	}
	named := rowInLab.FindAllStringSubmatch(all.String(), -1)
	inLab := map[string]bool{}
	require.Len(t, named, strings.Count(all.String(), "cell:"), "a row is not written as cell and does in one line")
	for _, row := range named {
		assert.True(t, strings.HasPrefix(says[row[1]], row[2]), "docs/changes.md says of %s: %q, and not %q", row[1], says[row[1]], row[2])
		inLab[row[1]] = true
	}
	assert.Greater(t, len(named), 20)
	tests := testsOfAll(t)
	made := map[string]bool{"what": true} // the head of the table
	for test, cells := range madeElsewhere {
		assert.True(t, tests[test] || strings.HasPrefix(test, "not made: "), "there is no %s", test)
		for _, cell := range cells {
			made[cell] = true
			assert.Contains(t, says, cell, "madeElsewhere names a row that docs/changes.md does not have")
			assert.False(t, inLab[cell], "%s: a lab test compares what it touches with its row", cell)
		}
	}
	for cell := range says {
		assert.True(t, inLab[cell] || made[cell], "no test makes the change of %s, and no reason is given", cell)
	}
}

// madeElsewhere are the rows of which the lab does not compare all that a change touches, by a test that makes the change or shows that it
// is refused, or by the reason why none does. Only the names are looked up; a row with several keys has a test of at least one.
var madeElsewhere = map[string][]string{
	"TestArgoCD_TakesOverWhatFluxWould": {
		"`gitops.engine`",
		"`gitops.argocd`",
	},
	"TestChain": {
		"`nodePools[].nodes[].host`",
		"`proxmox.maintenance`",
	},
	"TestGitOps_AccessAndKeysAreTriedWhenTheyChange": {
		"a secret of the stack",
	},
	"TestGitOps_ComponentsChangeTheirOwnerWithoutARestart": {
		"`cilium.owner`, and that of the other components",
	},
	"TestLifecycle_AClusterUnderLoadIsChangedInTurns": {
		"`kubernetes.version`",
		"`talos.version`, `talos.extensions`",
		"`lifecycle.bootedSince`",
		"`talos.sysctls`, `talos.registryMirrors`, `talos.kubelet`, `talos.lldpd`, `talos.contract`, `talos.patches`",
		"`nodePools[].cores`, `nodePools[].memory`",
	},
	"TestLifecycle_EtcdCAIsReplacedUnderLoad": {
		"`lifecycle.certificateAuthorities.etcd`",
	},
	"TestLifecycle_KubeletsGetTheCertificatesThatTheyAskFor": {
		"`kubernetes.metricsServer`",
	},
	"TestLifecycle_KubernetesCAIsReplacedUnderLoad": {
		"`lifecycle.certificateAuthorities.kubernetes`",
	},
	"TestLifecycle_NodesComeAndGoUnderLoad": {
		"`nodePools[].nodes[]`: a node added",
		"`nodePools[].nodes[]`: a node removed",
		"`nodePools[].nodes[].generation`",
		"`lifecycle.skip`",
	},
	"TestLifecycle_TalosCAIsReplacedUnderLoad": {
		"`lifecycle.certificateAuthorities.talos`",
	},
	"TestPlan_ANodeThatStaysKeepsItsAddressItsVMAndItsDiskEncryption": {
		"`nodePools[].nodes[].address6`",
	},
	"TestPlan_RefusesWhatTheDeclarationAloneForbids": {
		"`nodePools[].role`",
	},
	"TestStorage_AProviderAndItsConsumerGivePodsVolumes": {
		"an application, and everything below `kubernetes/`",
	},
	"TestRefuseSwitch_NamesTheManualSteps": {
		"`cilium.mode`",
	},
	"TestGates_RunAgainAfterAChangeOfTheSecretPatches": {
		"a setting of Talos without a key, with a secret in it",
	},
	"not made: no lab changes the volume of Flux": {
		"`gitops.flux.storage`",
	},
}

// testsOfAll are the names of all tests of the repository.
func testsOfAll(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	require.NoError(t, filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range function.FindAllStringSubmatch(string(text), -1) {
			names[found[1]] = true
		}
		return err
	}))
	return names
}

// matrixOfChanges returns the matrix in docs/changes.md.
func matrixOfChanges(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs", "changes.md"))
	require.NoError(t, err)
	_, matrix, found := strings.Cut(string(text), "<!-- matrix: ")
	require.True(t, found)
	matrix, _, found = strings.Cut(matrix, "<!-- end of matrix -->")
	require.True(t, found)
	return matrix
}

// rowsOf returns the cells of each row of the matrix: what is changed, where, and what that does.
func rowsOf(matrix string) (rows [][]string) {
	for line := range strings.Lines(matrix) {
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "| "), " |"), " | ")
		if len(cells) == 3 && !strings.HasPrefix(line, "| ---") {
			rows = append(rows, cells)
		}
	}
	return rows
}

var dangerousKey = regexp.MustCompile(`(?m)^\t\{"([a-zA-Z.]+)", `)

// dangerous returns the keys whose change on a running cluster make preview warns of.
func dangerous(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "preview", "report", "danger.go"))
	require.NoError(t, err)
	var keys []string
	for _, found := range dangerousKey.FindAllStringSubmatch(string(text), -1) {
		keys = append(keys, found[1])
	}
	require.Greater(t, len(keys), 20)
	return keys
}
