package cluster_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
)

// pins are the versions that a stack has which declares none: the defaults of all keys "version", and the releases of the CRDs.
func pins() []string {
	c := cluster.New("infra")
	c.Complete(&cluster.Findings{})
	var list []string
	var visit func(section reflect.Type)
	visit = func(section reflect.Type) {
		for field := range cluster.Keys(section) {
			of := field.Type
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			if version, given := field.Tag.Lookup("default"); given && field.Tag.Get("json") == "version" {
				list = append(list, version)
			} else if of.Kind() == reflect.Struct {
				visit(of)
			}
		}
	}
	visit(reflect.TypeFor[cluster.Cluster]())
	for _, set := range c.CRDs.Sets() {
		if set.Key != "certManager" && set.Key != "externalSecrets" { // their releases follow the charts
			list = append(list, set.Source.Version)
		}
	}
	return list
}

// manager is one of Renovate's managers in renovate.json that search files with a regular expression.
type manager struct {
	Description         string
	ManagerFilePatterns []string
	MatchStrings        []string
}

// renovate returns Renovate's managers of the stack files, and the regular expression of the manager for versions with a comment.
func renovate(t *testing.T) (ofStackFiles []manager, comments *regexp.Regexp) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(clusters.Root(t), "renovate.json"))
	require.NoError(t, err)
	var config struct{ CustomManagers []manager }
	require.NoError(t, json.Unmarshal(text, &config))
	for _, one := range config.CustomManagers {
		require.Len(t, one.MatchStrings, 1, one.Description)
		switch {
		case strings.HasPrefix(one.MatchStrings[0], "renovate: "):
			comments = regexp.MustCompile(one.MatchStrings[0])
		case strings.Contains(one.ManagerFilePatterns[0], "Pulumi"):
			ofStackFiles = append(ofStackFiles, one)
		}
	}
	require.NotNil(t, comments, "renovate.json has no manager for versions with a comment")
	return ofStackFiles, comments
}

func TestManifests_AreSearchedForImagesByRenovate(t *testing.T) {
	root := clusters.Root(t)
	text, err := os.ReadFile(filepath.Join(root, "renovate.json"))
	require.NoError(t, err)
	var config struct{ Kubernetes manager } // without patterns, Renovate searches no file
	require.NoError(t, json.Unmarshal(text, &config))
	require.Len(t, config.Kubernetes.ManagerFilePatterns, 1)
	searched := regexp.MustCompile(strings.Trim(config.Kubernetes.ManagerFilePatterns[0], "/"))
	looked := 0
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "kubernetes"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), " image: ") {
			looked++
			assert.Regexp(t, searched, strings.TrimPrefix(path, root+"/"))
		}
		return err
	}))
	assert.NotZero(t, looked)
}

func TestStackFiles_DeclareVersionsWhereRenovateFindsThem(t *testing.T) {
	managers, _ := renovate(t)
	require.Len(t, managers, 3, "Talos, Kubernetes and Cilium")
	files, err := filepath.Glob(filepath.Join(clusters.Root(t), "Pulumi.*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, one := range managers {
			for _, pattern := range one.ManagerFilePatterns {
				assert.Regexp(t, strings.Trim(pattern, "/"), filepath.Base(file), one.Description)
			}
			assert.Regexp(t, one.MatchStrings[0], string(text), "%s: %s", filepath.Base(file), one.Description)
		}
	}
}

func TestPins_AreFoundByRenovate(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
	require.NotEmpty(t, files)

	_, expression := renovate(t)
	version := expression.SubexpIndex("currentValue")
	comments, found := 0, []string{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		comments += strings.Count(string(source), "// renovate:")
		for _, match := range expression.FindAllStringSubmatch(string(source), -1) {
			assert.Equal(t, 1, strings.Count(match[0], "\n"), "%s: the version is on the line after the comment: %s", file, match[0])
			found = append(found, match[version])
		}
	}
	assert.Len(t, found, comments, "each comment is before a version")
	assert.ElementsMatch(t, pins(), found, "one comment for each version")
}

func TestDefaults_AreCompatible(t *testing.T) {
	assert.Empty(t, problemsOf(t, func(c *cluster.Cluster) {
		defaults := cluster.New(c.Stack)
		c.Talos.Version, c.Kubernetes.Version = defaults.Talos.Version, defaults.Kubernetes.Version
		c.Cilium.Version, c.CertManager.Version = defaults.Cilium.Version, defaults.CertManager.Version
		c.CRDs = defaults.CRDs
	}))
}

func TestGatewayAPI_MustBeTheReleaseThatCiliumDocuments(t *testing.T) {
	for _, test := range []struct {
		gatewayAPI, cilium string
		want               []string
	}{
		{"v1.1.0", "1.16.19", nil},
		{"v1.2.1", "1.17.9", nil},
		{"v1.3.0", "1.18.7", nil},
		{"v1.3.9", "1.18.0", nil},
		{"v1.4.1", "1.19.0", nil},
		{"v1.5.0", "1.20.0", nil},
		{"v1.5.1", "1.18.7", []string{
			"crds.gatewayAPI.version: v1.5.1 does not go with cilium.version 1.18.7, which is made for v1.3; use v1.3.x",
		}},
		{"v1.30.0", "1.18.7", []string{
			"crds.gatewayAPI.version: v1.30.0 does not go with cilium.version 1.18.7, which is made for v1.3; use v1.3.x",
		}},
		{"", "1.19.0", []string{ // only Cilium's version is declared
			"cilium.version: 1.19.0 is made for Gateway API v1.4, and crds.gatewayAPI.version is v1.3.0; set crds.gatewayAPI.version: v1.4.x",
		}},
		{"v1.3.0", "2.0.0", []string{
			"cilium.version: 2.0.0 is of a release whose Gateway API is not known here; " +
				"use one of 1.16, 1.17, 1.18, 1.19, 1.20, or set cilium.gatewayAPI: false",
		}},
	} {
		assert.Equal(t, test.want, problemsOf(t, func(c *cluster.Cluster) {
			c.Cilium.Version, c.CRDs.GatewayAPI = test.cilium, cluster.CRDSource{Version: test.gatewayAPI}
		}), "Gateway API %s, Cilium %s", test.gatewayAPI, test.cilium)
	}
}

func TestGatewayAPI_MayBeAnyReleaseIfCiliumDoesNotServeIt(t *testing.T) {
	assert.Empty(t, problemsOf(t, func(c *cluster.Cluster) {
		c.Cilium.Version, c.Cilium.GatewayAPI = "2.0.0", false
	}))
}

func TestCertManager_HasTheCRDsOfItsRelease(t *testing.T) {
	mixed := func(c *cluster.Cluster) {
		c.CertManager.Version, c.CRDs.CertManager = "v1.21.2", cluster.CRDSource{Version: "v1.20.0"}
	}
	assert.Equal(t, []string{
		"crds.certManager.version: v1.20.0 is of another release than certManager.version v1.21.2; " +
			"remove it, because it follows certManager.version",
	}, problemsOf(t, mixed))
	assert.Empty(t, problemsOf(t, func(c *cluster.Cluster) {
		mixed(c)
		c.CertManager.Enabled = false
	}))
	assert.Empty(t, problemsOf(t, func(c *cluster.Cluster) {
		mixed(c)
		c.CRDs.CertManager.Version = "v1.21.0" // a patch release apart
	}))
}

func TestTalos_RunsTheKubernetesVersion(t *testing.T) {
	problems := problemsOf(t, func(c *cluster.Cluster) { c.Talos.Version, c.Kubernetes.Version = "v1.12.7", "v1.10.0" })
	require.Len(t, problems, 1)
	assert.Contains(t, problems[0], "kubernetes.version: v1.10.0 does not run on talos.version v1.12.7: ")
	assert.Contains(t, problems[0], "; change one of the two")
}
