package leaks

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const canary = "canary of +/ \"quotes\" & lines\nfor this test"

func secrets(t *testing.T) *Secrets {
	t.Helper()
	s := &Secrets{}
	require.NoError(t, s.Add("canary", canary))
	return s
}

// planted are texts that contain the canary in each encoding, at every position within a group of base64.
func planted() map[string]string {
	texts := map[string]string{
		"plain": "password: " + canary, "query": "https://x?p=" + url.QueryEscape(canary), "path": "https://x/" + url.PathEscape(canary),
		"json": fmt.Sprintf("{\"password\":%s}", strings.ReplaceAll(fmt.Sprintf("%q", canary), "&", `\u0026`)),
		"hex":  fmt.Sprintf("%x", "a"+canary),
	}
	for before := range 4 {
		for after := range 3 {
			text := strings.Repeat("x", before) + canary + strings.Repeat("y", after)
			texts[fmt.Sprintf("base64 %d %d", before, after)] = base64.StdEncoding.EncodeToString([]byte(text))
			texts[fmt.Sprintf("base64 for URLs %d %d", before, after)] = base64.URLEncoding.EncodeToString([]byte(text))
		}
	}
	return texts
}

func TestSearch_FindsACanaryInEveryEncoding(t *testing.T) {
	s := secrets(t)
	for encoding, text := range planted() {
		leaks := s.Search("here", []byte("before "+text+" after"))
		require.Len(t, leaks, 1, encoding)
		assert.Equal(t, "canary", leaks[0].Secret)
		assert.NotContains(t, leaks[0].String(), canary, "the report is no leak")
	}
	assert.Empty(t, s.Search("here", []byte("canary of nothing")))
	assert.Equal(t, 12, s.Encodings())
}

func TestSearch_FindsEachSecretOnceWhereverItIs(t *testing.T) {
	s := &Secrets{}
	for name, value := range map[string]string{"one": "prefix-of-both-1", "two": "prefix-of-both-2", "same": "prefix-of-both-2"} {
		require.NoError(t, s.Add(name, value))
	}
	names := func(text string) (found []string) {
		for _, leak := range s.Search("here", []byte(text)) {
			found = append(found, leak.Secret+" in "+leak.Encoding)
		}
		return found
	}
	assert.Equal(t, []string{"one in JSON"}, names("prefix-of-both-1"))
	assert.Equal(t, []string{"one in JSON"}, names("prefix-of-prefix-of-both-1, prefix-of-both-1"))
	assert.Equal(t, []string{"one in JSON", "same in JSON", "two in JSON"}, names("prefix-of-both-2prefix-of-both-1"))
	assert.Empty(t, names("prefix-of-both-3"))
	assert.Empty(t, names("prefix-"))
	assert.Empty(t, names("prefix-of-both-"))
}

func BenchmarkSearch(b *testing.B) {
	s, text := &Secrets{}, make([]byte, 1<<20)
	for i := range 100 {
		require.NoError(b, s.Add(fmt.Sprint(i), rand.Text()))
	}
	_, _ = rand.Read(text)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		assert.Empty(b, s.Search("here", text))
	}
}

func TestAdd_RefusesWhatIsFoundEverywhere(t *testing.T) {
	require.ErrorContains(t, (&Secrets{}).Add("short", "true"), "short: 4 bytes are too few")
}

func TestFiles_FindsACanaryAndFailsWithoutAFileToSearch(t *testing.T) {
	s, folder := secrets(t), t.TempDir()
	_, _, err := s.Files(folder)
	require.ErrorContains(t, err, "has no file to search")
	_, _, err = s.Files(filepath.Join(folder, "absent"))
	require.Error(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "a", "b"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a", "clean"), []byte("nothing"), 0o600))
	leaks, files, err := s.Files(folder)
	require.NoError(t, err)
	assert.Empty(t, leaks)
	assert.Equal(t, 1, files)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a", "b", "state"), []byte(planted()["base64 1 1"]), 0o600))
	leaks, _, err = s.Files(folder)
	require.NoError(t, err)
	require.Len(t, leaks, 1)
	assert.Contains(t, leaks[0].Place, "state")
}

func TestFiles_FindsACanaryInACompressedFileThatIsNotComplete(t *testing.T) {
	s, folder := secrets(t), t.TempDir()
	var file bytes.Buffer
	writer := gzip.NewWriter(&file)
	_, err := writer.Write([]byte(planted()["json"]))
	require.NoError(t, err)
	require.NoError(t, writer.Flush()) // and not closed: as a log whose program was killed
	require.NoError(t, os.WriteFile(filepath.Join(folder, "log"), file.Bytes(), 0o600))
	leaks, files, err := s.Files(folder)
	require.NoError(t, err)
	assert.Equal(t, 1, files)
	require.Len(t, leaks, 1)
	assert.Contains(t, leaks[0].Place, "log")
}

func TestProcesses_FindACanaryInArgumentsAndInTheEnvironment(t *testing.T) {
	s := secrets(t)
	start := func(arguments []string, variables ...string) {
		c := exec.CommandContext(t.Context(), "sleep", arguments...)
		c.Env = variables
		require.NoError(t, c.Start())
		t.Cleanup(func() { _ = c.Wait() })
	}
	start([]string{"60"}, "PASSWORD="+canary, "ALLOWED="+canary)
	namespace, err := os.Readlink("/proc/self/ns/pid")
	require.NoError(t, err)
	found := func(allowed ...string) []Leak {
		all, err := Processes("/proc", namespace)
		require.NoError(t, err)
		var leaks []Leak
		for _, process := range all {
			leaks = append(leaks, s.Process(process, allowed...)...)
		}
		return leaks
	}
	assert.Len(t, found(), 2)
	leaks := found("ALLOWED")
	require.Len(t, leaks, 1)
	assert.Equal(t, "the variable PASSWORD of sleep", leaks[0].Place)
	assert.NotEmpty(t, s.Process(Process{Name: "x", Arguments: []string{"x", "--password", canary}}))
	_, err = Processes("/proc", "pid:[1]")
	require.ErrorContains(t, err, "has no process")
}
