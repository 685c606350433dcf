package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
	"github.com/slipway-platform/slipway/tests/golden"
)

// loadFixture loads a fixture as stack "home".
func loadFixture(name string) (*cluster.Cluster, error) {
	return loadText(fixtures.Tree(), "Pulumi.home.yaml", []byte(fixtures.Get(name).Text))
}

// loadValid loads a valid fixture.
func loadValid(t *testing.T, name string) *cluster.Cluster {
	t.Helper()
	c, err := loadFixture(name)
	require.NoError(t, err)
	return c
}

// sourceOf returns the values in a stack file's text as those of stack "home".
func sourceOf(text string) (Source, error) {
	source, err := ParseFile("Pulumi.home.yaml", []byte(text))
	if err == nil && len(source.written) > 0 {
		err = source.written
	}
	source.Tree = fixtures.Tree()
	return source, err
}

// loadText loads the text of a stack file in any checkout; nil stands for its folder.
func loadText(checkout fs.FS, path string, text []byte) (*cluster.Cluster, error) {
	source, err := ParseFile(path, text)
	if err != nil {
		return nil, err
	}
	if checkout != nil {
		source.Tree = checkout
	}
	return Load(source)
}

// loadFile loads a stack file.
func loadFile(path string) (*cluster.Cluster, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return loadText(nil, path, text)
}

func TestLoad_AcceptsTheValidFixtures(t *testing.T) {
	require.Greater(t, len(fixtures.Valid()), 10)
	for _, one := range fixtures.Valid() {
		t.Run(one.Name, func(t *testing.T) {
			_, err := loadFixture(one.Name)
			assert.NoError(t, err)
		})
	}
}

// severalFaults lists the fixtures with more than one fault.
var severalFaults = []string{"many-faults", "ipv6-network-is-link-local"}

func TestLoad_NamesTheOneFaultOfEachInvalidFixture(t *testing.T) {
	require.Greater(t, len(fixtures.Invalid()), 200)
	says := map[string]any{}
	for _, one := range fixtures.Invalid() {
		t.Run(one.Name, func(t *testing.T) {
			stack, err := loadFixture(one.Name)
			require.Error(t, err)
			assert.Nil(t, stack)
			lines := strings.Split(strings.TrimPrefix(err.Error(), "Pulumi.home.yaml: "), "\n")
			says[one.Name] = lines
			if len(lines) == 1 {
				says[one.Name] = lines[0]
			}
			if !*golden.Update {
				assert.Equal(t, one.Says, lines)
			}
			if !slices.Contains(severalFaults, one.Name) {
				assert.Len(t, lines, 1)
			}
			if !strings.HasPrefix(one.Name, "file-") {
				var problem *cluster.Problem
				require.ErrorAs(t, err, &problem)
				assert.NotEmpty(t, problem.Path)
				assert.NotEmpty(t, problem.Problem)
				assert.NotEmpty(t, problem.Remedy)
			}
			assert.NotContains(t, err.Error(), "hunter2", "a secret is never shown")
			assert.NotContains(t, err.Error(), "0c5a8d6e", "a secret is never shown")
		})
	}
	if *golden.Update {
		require.NoError(t, updateFixtures("says", says))
	}
}

func TestLoad_SaysAllProblemsAtOnce(t *testing.T) {
	_, err := loadFixture("many-faults")
	var joined interface{ Unwrap() []error }
	require.True(t, errors.As(err, &joined))
	assert.GreaterOrEqual(t, len(joined.Unwrap()), 15)
}

// The golden file of a whole fixture shows its configuration with all defaults. The golden file of a changed fixture shows the
// differences from its base.
func TestLoad_DecodesTheValidFixturesAsTheGoldenFilesShow(t *testing.T) {
	means := map[string]any{}
	for _, one := range fixtures.Valid() {
		t.Run(one.Name, func(t *testing.T) {
			text, leaves := decoded(t, one.Name)
			if one.Base == "" {
				golden.File(t, filepath.Join(fixturesFolder, "valid", one.Name+".golden"), text)
				return
			}
			_, base := decoded(t, one.Base)
			different := map[string]string{}
			for path, value := range leaves {
				if before, known := base[path]; value != before && (known || value != "") {
					different[path] = value
				}
			}
			for path, before := range base {
				if _, known := leaves[path]; !known && before != "" {
					different[path] = "is not set"
				}
			}
			means[one.Name] = different
			if !*golden.Update {
				want := one.Means
				if want == nil {
					want = map[string]string{}
				}
				assert.Equal(t, want, different)
			}
		})
	}
	if *golden.Update {
		require.NoError(t, updateFixtures("means", means))
	}
}

// decoded returns a loaded fixture as YAML, and its values by path; an unset value is empty.
func decoded(t *testing.T, name string) (text string, leaves map[string]string) {
	t.Helper()
	stack, err := loadFixture(name)
	require.NoError(t, err)
	out, err := yaml.Marshal(stack)
	require.NoError(t, err)
	var tree any
	require.NoError(t, yaml.Unmarshal(out, &tree))
	leaves = map[string]string{}
	flatten("", tree, leaves)
	return string(out), leaves
}

func flatten(path string, tree any, into map[string]string) {
	switch t := tree.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(t)) {
			flatten(cluster.KeyPath(path, key), t[key], into)
		}
	case []any:
		for i, item := range t {
			flatten(cluster.ItemPath(path, i), item, into)
		}
	case nil:
		into[path] = ""
	default:
		into[path] = fmt.Sprint(t)
	}
}

// The files are those after `pulumi new` with the name that it proposes.
func TestLoad_AStackWithAnotherNameThanItsFileIsOneProblem(t *testing.T) {
	salted := []byte("encryptionsalt: v1:notasalt\nconfig:\n  aws:region: x\n" +
		"  slipway:proxmoxApiToken: {secure: \"v1:AAECAwQFBgcICQoL:bm90IGEgcmVhbCBjaXBoZXJ0ZXh0\"}\n")
	home := fixtures.Get("minimal").Text
	_, err := loadText(fstest.MapFS{"Pulumi.dev.yaml": {Data: salted}, "Pulumi.home.yaml": {Data: []byte(home)}}, "Pulumi.dev.yaml", salted)
	require.EqualError(t, err, "cluster: is missing, and so is every other section; a stack has the name of its file: use --stack home")

	_, err = loadText(fstest.MapFS{"Pulumi.dev.yaml": {Data: salted}, "Pulumi.other.yaml": {Data: salted}}, "Pulumi.dev.yaml", salted)
	assert.ErrorContains(t, err, "nodePools: is missing; add it", "no file declares a cluster")
	declares := []byte("config:\n  slipway:talos: {version: 1.13.0}\n")
	_, err = loadText(fstest.MapFS{"Pulumi.home.yaml": {Data: []byte(home)}}, "Pulumi.dev.yaml", declares)
	assert.ErrorContains(t, err, "nodePools: is missing; add it", "it is to declare a cluster")
}
