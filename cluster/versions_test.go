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
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/releases"
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
	require.Len(t, managers, 4, "Talos, Kubernetes and Cilium; the Gateway API, which few stack files declare")
	managers = managers[:3]
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
		{"v1.6.1", "1.20.0", nil},
		{"v1.6.0", "1.20.2", []string{
			"crds.gatewayAPI.version: v1.6.0 does not go with cilium.version 1.20.2, which is made for 1.6.1 or a later patch release; " +
				"use a release of 1.6.1 or a later patch release",
		}},
		{"v1.7.0", "1.21.0", nil},
		{"v1.5.1", "1.18.7", []string{
			"crds.gatewayAPI.version: v1.5.1 does not go with cilium.version 1.18.7, which is made for 1.2 to 1.3; use a release of 1.2 to 1.3",
		}},
		{"v1.30.0", "1.18.7", []string{
			"crds.gatewayAPI.version: v1.30.0 does not go with cilium.version 1.18.7, which is made for 1.2 to 1.3; use a release of 1.2 to 1.3",
		}},
		{"", "1.19.0", []string{ // only Cilium's version is declared
			"cilium.version: 1.19.0 is made for Gateway API 1.4, and crds.gatewayAPI.version is v1.6.3; " +
				"set crds.gatewayAPI.version to a release of 1.4",
		}},
		{"v1.3.0", "2.0.0", []string{
			"crds.gatewayAPI.version: v1.3.0 does not go with cilium.version 2.0.0, which is made for 1.6.1 and later; " +
				"use a release of 1.6.1 and later",
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
	assert.Equal(t, []string{
		"kubernetes.version: v1.10.0 does not go with Talos v1.12.7, which takes Kubernetes 1.30 to 1.35; change one of the two",
	}, problems)
}

// day is one on which Talos 1.14, Kubernetes 1.37 and Cilium 1.20 are the newest releases.
var day = time.Date(2026, time.November, 24, 12, 0, 0, 0, time.UTC)

// adviceOn returns the advice on the infra stack with a change.
func adviceOn(t *testing.T, change func(*cluster.Cluster)) []string {
	t.Helper()
	c := clusters.Infra(t)
	c.Talos.Version, c.Kubernetes.Version, c.Cilium.Version = "v1.14.6", "v1.36.6", "1.20.4"
	c.GitOps.Flux.Version, c.CertManager.Version, c.CRDs.Rook.Version = "2.10.0", "v1.21.2", "v1.20.6"
	c.Providers.OnePassword = nil
	change(c)
	var list []string
	for _, one := range c.Advice(day) {
		list = append(list, one.Error())
	}
	return list
}

func TestAdvice_IsNoneOnReleasesThatAreSupportedAndGoTogether(t *testing.T) {
	assert.Empty(t, adviceOn(t, func(*cluster.Cluster) {}))
	assert.Empty(t, adviceOn(t, func(c *cluster.Cluster) { c.GitOps.Flux.Version = "2.x" }), "a range has no minor release")
}

func TestAdvice_NamesTheDayOnWhichSupportEnded(t *testing.T) {
	assert.Equal(t, []string{
		"talos.version: v1.12.7 of Talos has been out of support since 2026-04-27; plan the way to " + releases.Talos.Newest(),
		"kubernetes.version: v1.34.2 of Kubernetes has been out of support since 2026-10-27; plan the way to " + releases.Kubernetes.Newest(),
		"gitops.flux.version: 2.6.0 of Flux is out of support; plan the way to 2.10",
	}, adviceOn(t, func(c *cluster.Cluster) {
		c.Talos.Version, c.Kubernetes.Version, c.GitOps.Flux.Version = "v1.12.7", "v1.34.2", "2.6.0"
		c.Cilium.GatewayAPI = false
		c.GitOps.Flux.Components = nil
	})[:3])
}

func TestAdvice_NamesAPairThatNobodyHasTested(t *testing.T) {
	assert.Equal(t, []string{
		"cilium.version: 1.18.7 is not tested with Kubernetes v1.36.6, only with 1.30 to 1.33; " +
			"use a release that is, or change kubernetes.version",
	}, adviceOn(t, func(c *cluster.Cluster) { c.Cilium.Version = "1.18.7" }))
}

// A row that is missing in the table must never keep anybody from a release.
func TestVersions_ThatAreNewerThanTheTableGiveAdviceAndWork(t *testing.T) {
	fit, _ := releases.Talos.Fits(releases.Talos.Newest(), releases.Kubernetes, releases.Kubernetes.Newest())
	oldest := fit.From
	newer := func(c *cluster.Cluster) { c.Talos.Version, c.Kubernetes.Version = "v1.99.0", "v1.99.0" }
	assert.Empty(t, problemsOf(t, newer))
	assert.Equal(t, []string{
		"talos.version: v1.99.0 of Talos is newer than " + releases.Talos.Newest() +
			", the newest that is known here, and is treated like that; " +
			"read its release notes, and update Slipway",
		"kubernetes.version: v1.99.0 of Kubernetes is newer than " + releases.Kubernetes.Newest() +
			", the newest that is known here, and is treated like that; " +
			"read its release notes, and update Slipway",
	}, adviceOn(t, newer)[:2])
	assert.Equal(t, []string{
		"kubernetes.version: v1.29.0 does not go with Talos v1.99.0, which takes Kubernetes " + oldest + " and later; change one of the two",
	}, problemsOf(t, func(c *cluster.Cluster) { c.Talos.Version, c.Kubernetes.Version = "v1.99.0", "v1.29.0" }))
}

func TestTalos_OlderThanAllKnownReleasesIsRefused(t *testing.T) {
	assert.Equal(t, []string{"talos.version: v1.11.5 is older than the releases that Slipway knows; write v1.12.x or a later one"},
		problemsOf(t, func(c *cluster.Cluster) { c.Talos.Version = "v1.11.5" }), "and no word about the Kubernetes that goes with another one")
}
