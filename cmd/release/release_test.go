package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var at = time.Date(2026, time.November, 26, 12, 0, 0, 0, time.UTC)

// packed writes an archive of files that are made anew, with other times and modes each time, and returns its content.
func packed(t *testing.T, mode os.FileMode) []byte {
	t.Helper()
	folder := t.TempDir()
	var entries []entry
	for _, name := range []string{"slipway", "CHANGELOG.md"} {
		source := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(source, []byte("content of "+name), mode))
		require.NoError(t, os.Chtimes(source, time.Now(), time.Now().Add(-time.Duration(mode)*time.Hour)))
		entries = append(entries, entry{name, source, 0o755})
	}
	archive := filepath.Join(folder, "archive.tar.gz")
	require.NoError(t, writeArchive(archive, at, entries))
	content, err := os.ReadFile(archive)
	require.NoError(t, err)
	return content
}

func TestArchive_TwoRunsWriteTheSameBytes(t *testing.T) {
	first := packed(t, 0o600)
	assert.Equal(t, first, packed(t, 0o640))
	unzipped, err := gzip.NewReader(strings.NewReader(string(first)))
	require.NoError(t, err)
	assert.True(t, unzipped.ModTime.IsZero())
	archive := tar.NewReader(unzipped)
	for _, name := range []string{"slipway", "CHANGELOG.md"} {
		header, err := archive.Next()
		require.NoError(t, err)
		assert.Equal(t, name, header.Name)
		assert.Equal(t, int64(0o755), header.Mode)
		assert.True(t, at.Equal(header.ModTime))
		assert.Empty(t, header.Uname+header.Gname)
		assert.Zero(t, header.Uid+header.Gid)
		content, err := io.ReadAll(archive)
		require.NoError(t, err)
		assert.Equal(t, "content of "+name, string(content))
	}
	_, err = archive.Next()
	assert.ErrorIs(t, err, io.EOF)
}

func TestChecksums_AreAcceptedBySha256sum(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"b.tar.gz", "a.tar.gz"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600))
	}
	require.NoError(t, writeChecksums(folder))
	check := exec.CommandContext(t.Context(), "sha256sum", "-c", checksums)
	check.Dir = folder
	out, err := check.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "a.tar.gz: OK\nb.tar.gz: OK\n", string(out))
}

func TestSBOM_NamesEachModuleAsItIsLinked(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.6", Main: debug.Module{Path: "example.com/own"}, Deps: []*debug.Module{
		{Path: "example.com/a", Version: "v2.0.0+incompatible", Sum: "h1:A="},
		{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1", Sum: "h1:F="}},
	}}
	text, err := sbom(info, "v0.1.0", at)
	require.NoError(t, err)
	again, err := sbom(info, "v0.1.0", at)
	require.NoError(t, err)
	assert.Equal(t, text, again)
	var read struct {
		BOMFormat, SpecVersion string
		Metadata               struct {
			Timestamp string
			Component component
		}
		Components []component
	}
	require.NoError(t, json.Unmarshal(text, &read))
	assert.Equal(t, "CycloneDX", read.BOMFormat)
	assert.Equal(t, "2026-11-26T12:00:00Z", read.Metadata.Timestamp)
	assert.Equal(t, component{Type: "application", Name: "example.com/own", Version: "v0.1.0", PURL: "pkg:golang/example.com/own@v0.1.0"},
		read.Metadata.Component)
	assert.Equal(t, []component{
		{Type: "library", Name: "std", Version: "1.26.6", PURL: "pkg:golang/std@1.26.6"},
		{Type: "library", Name: "example.com/a", Version: "v2.0.0+incompatible", PURL: "pkg:golang/example.com/a@v2.0.0%2Bincompatible",
			Properties: []property{{"go.sum", "h1:A="}}},
		{Type: "library", Name: "example.com/fork", Version: "v1.0.1", PURL: "pkg:golang/example.com/fork@v1.0.1",
			Properties: []property{{"go.sum", "h1:F="}}},
	}, read.Components)
}

func TestBuild_DependsNeitherOnTheFolderNorOnTheEnvironment(t *testing.T) {
	args := strings.Join(buildArgs("v0.1.0", "x"), " ")
	assert.Contains(t, args, "-trimpath -buildvcs=false")
	assert.Contains(t, args, "-X github.com/slipway-platform/slipway/cmd/command.released=v0.1.0")
	version, err := os.ReadFile(filepath.Join("..", "command", "version.go"))
	require.NoError(t, err)
	assert.Contains(t, string(version), "\nvar released string\n", "the linker sets it, and does not say if there is none")
	for _, on := range platforms {
		assert.Contains(t, buildEnv(on), "CGO_ENABLED=0")
		assert.Contains(t, buildEnv(on), "GOFLAGS=")
	}
}

func TestRelease_RefusesWhatIsNoVersion(t *testing.T) {
	for _, version := range []string{"", "0.1.0", "v0.1", "main"} {
		require.ErrorContains(t, run([]string{version, t.TempDir()}), "is not a version; write v0.1.0")
	}
}

// checkout writes the two files that name a version, and returns their folder.
func checkout(t *testing.T, template, changelog string) string {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "templates", "cluster"), 0o750))
	for name, text := range map[string]string{
		"templates/cluster/go.mod": "module ${PROJECT}\n\nrequire github.com/slipway-platform/slipway " + template + "\n",
		"CHANGELOG.md":             changelog,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, filepath.FromSlash(name)), []byte(text), 0o600))
	}
	return folder
}

func TestRelease_RefusesAVersionThatTheTemplateOrTheChangelogDoesNotName(t *testing.T) {
	const changelog = "# Changelog\n\n## v0.2.0\n\n- x\n\n## v0.1.0\n"
	require.NoError(t, checkNamed(checkout(t, "v0.2.0", changelog), "v0.2.0"))
	require.EqualError(t, checkNamed(checkout(t, "v0.1.0", changelog), "v0.2.0"), "templates/cluster/go.mod: names v0.1.0, and the release "+
		"is v0.2.0; write v0.2.0 into cmd/newcluster/cluster/go.mod.txt, and run: make golden")
	require.EqualError(t, checkNamed(checkout(t, "v0.2.0", "# Changelog\n\n## Unreleased\n"), "v0.2.0"), "CHANGELOG.md: names Unreleased, "+
		"and the release is v0.2.0; write the heading ## v0.2.0 above what the release changes")
	require.ErrorContains(t, checkNamed(checkout(t, "v0.1.0", changelog), "v0.1.0"), "names v0.2.0", "another is newer")
	require.Error(t, checkNamed(t.TempDir(), "v0.1.0"))
}

// A version that is newer than the changelog's does not exist yet, and an older one lacks what the documents of this commit say.
func TestTemplate_RequiresTheNewestReleaseOfTheChangelog(t *testing.T) {
	root := filepath.Join("..", "..")
	changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	require.NoError(t, err)
	newest := "v0.1.0" // the first, as long as there is none
	if found := regexp.MustCompile(`(?m)^## (v\S+)$`).FindSubmatch(changelog); found != nil {
		newest = string(found[1])
	}
	template, err := os.ReadFile(filepath.Join(root, "templates", "cluster", "go.mod"))
	require.NoError(t, err)
	named := required.FindSubmatch(template)
	require.NotNil(t, named)
	assert.Equal(t, newest, string(named[1]))
}

func TestCompile_NamesEachPlatformThatFails(t *testing.T) {
	var tried []platform
	require.EqualError(t, compile(func(on platform) error {
		tried = append(tried, on)
		if on.os == "darwin" {
			return errors.New("exit status 1")
		}
		return nil
	}), "darwin/amd64: exit status 1\ndarwin/arm64: exit status 1")
	assert.Equal(t, platforms, tried)
}
