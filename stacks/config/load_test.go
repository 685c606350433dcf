package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// loadFixture loads a whole stack file as stack "home".
func loadFixture(path string) (*Stack, error) {
	source, err := sourceOf(path)
	if err != nil {
		return nil, err
	}
	return Load(source)
}

func sourceOf(path string) (Source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Source{}, err
	}
	values, err := parseFile(text)
	return Source{Stack: "home", Values: values, SecretsElsewhere: true}, err
}

func fixtures(t *testing.T, dir string, atLeast int) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.yaml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), atLeast)
	return files
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update")
	assert.Equal(t, string(want), got)
}

func TestLoad_AcceptsTheValidFixtures(t *testing.T) {
	for _, file := range fixtures(t, "valid", 3) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, err := loadFixture(file)
			assert.NoError(t, err)
		})
	}
}

// A fixture's name is its fault. It has that one and no other, so its golden file has one line.
func TestLoad_NamesTheOneFaultOfEachInvalidFixture(t *testing.T) {
	for _, file := range fixtures(t, "invalid", 100) {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			stack, err := loadFixture(file)
			require.Error(t, err)
			assert.Nil(t, stack)
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", err.Error()+"\n")
			if !strings.HasPrefix(name, "file-") && name != "many-faults" {
				assert.Equal(t, 0, strings.Count(err.Error(), "\n"), err.Error())
				var problem *Problem
				require.ErrorAs(t, err, &problem)
				assert.NotEmpty(t, problem.Path)
				assert.NotEmpty(t, problem.Problem)
				assert.NotEmpty(t, problem.Remedy)
			}
			assert.NotContains(t, err.Error(), "hunter2", "a secret is never shown")
			assert.NotContains(t, err.Error(), "0c5a8d6e", "a secret is never shown")
		})
	}
}

// A golden file without its fixture would stay behind unnoticed when a fixture is renamed.
func TestFixtures_HaveNoStrayGoldens(t *testing.T) {
	goldens, err := filepath.Glob("testdata/invalid/*.golden")
	require.NoError(t, err)
	require.NotEmpty(t, goldens)
	for _, file := range goldens {
		assert.FileExists(t, strings.TrimSuffix(file, ".golden")+".yaml")
	}
}

func TestLoad_SaysAllProblemsAtOnce(t *testing.T) {
	_, err := loadFixture("testdata/invalid/many-faults.yaml")
	var joined interface{ Unwrap() []error }
	require.True(t, errors.As(err, &joined))
	assert.GreaterOrEqual(t, len(joined.Unwrap()), 15)
}
