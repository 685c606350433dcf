package project

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestWriteFile_NamesTheCheckoutAsThePlaceOfTheProgram(t *testing.T) {
	checkout, folder := t.TempDir(), t.TempDir()
	put(t, filepath.Join(checkout, File), "name: slipway # ours\nruntime: go\n")
	require.NoError(t, WriteFile(folder, checkout))
	require.Equal(t, "name: slipway # ours\nruntime: go\nmain: "+checkout+"\n", read(t, filepath.Join(folder, File)))
	require.Equal(t, "-include "+filepath.Join(checkout, "Makefile")+"\n", read(t, filepath.Join(folder, "Makefile")))

	put(t, filepath.Join(checkout, File), "main: program\nname: slipway\n")
	require.NoError(t, WriteFile(folder, checkout))
	require.Equal(t, "main: "+filepath.Join(checkout, "program")+"\nname: slipway\n", read(t, filepath.Join(folder, File)))

	require.ErrorIs(t, WriteFile(folder, t.TempDir()), os.ErrNotExist)
	put(t, filepath.Join(checkout, File), "- a\n")
	require.ErrorContains(t, WriteFile(folder, checkout), "is not a mapping")
}

func TestBinary_IsThatOfTheProjectFile(t *testing.T) {
	checkout := t.TempDir()
	_, err := Binary(checkout)
	require.ErrorContains(t, err, "project file: ")
	for text, want := range map[string]string{
		"runtime: go": "", "runtime: {name: go, options: {buildTarget: x}}": "", "runtime: {name: go, options: {binary: slipway}}": "slipway",
	} {
		put(t, filepath.Join(checkout, File), text)
		binary, err := Binary(checkout)
		require.NoError(t, err)
		require.Equal(t, want, binary, text)
	}
}

func TestWriteFile_KeepsTheCompiledProgramInTheFolder(t *testing.T) {
	checkout, folder := t.TempDir(), t.TempDir()
	text := "runtime:\n  name: go\n  options:\n    buildTarget: %s\n"
	for target, want := range map[string]string{"bin/slipway": filepath.Join(folder, "bin/slipway"), "/elsewhere/slipway": "/elsewhere/slipway"} {
		put(t, filepath.Join(checkout, File), fmt.Sprintf(text, target))
		require.NoError(t, WriteFile(folder, checkout))
		require.Equal(t, fmt.Sprintf(text, want)+"main: "+checkout+"\n", read(t, filepath.Join(folder, File)))
	}
}

func TestCopyStack_KeepsTheEncryptionOfTheLabAndLeavesOutThatOfTheUser(t *testing.T) {
	checkout, folder := t.TempDir(), t.TempDir()
	stack, copied := filepath.Join(checkout, "Pulumi.infra.yaml"), filepath.Join(folder, "Pulumi.infra.yaml")
	original := "encryptionsalt: v1:theirs\nconfig:\n  # the name\n  slipway:cluster: {name: infra}\n\n" +
		"  slipway:gitPassword:\n    secure: theirs\n  slipway:other:\n    secure: theirs\n"
	put(t, stack, original)

	c, err := CopyStack(folder, stack)
	require.NoError(t, err)
	require.Equal(t, Copy{LeftOut: []string{"slipway:gitPassword", "slipway:other"}, Original: []byte(original)}, c)
	require.Equal(t, "config:\n  # the name\n  slipway:cluster: {name: infra}\n", read(t, copied))

	// Pulumi adds the lab's.
	put(t, copied, read(t, copied)+"  slipway:gitPassword:\n    secure: lab\nencryptionsalt: v1:lab\n")
	changed := "config:\n  slipway:cluster: {name: changed}\n"
	put(t, stack, changed)
	c, err = CopyStack(folder, stack)
	require.NoError(t, err)
	require.Equal(t, Copy{Secrets: []string{"slipway:gitPassword"}, Salted: true, Original: []byte(changed)}, c)
	require.Equal(t, "config:\n  slipway:cluster: {name: changed}\n  slipway:gitPassword:\n    secure: lab\nencryptionsalt: v1:lab\n",
		read(t, copied))
	require.Equal(t, changed, read(t, stack), "the stack file stays as it is")
}

func TestCopyStack_LeavesTheCopyAloneWhenTheStackFileCannotBeRead(t *testing.T) {
	checkout, folder := t.TempDir(), t.TempDir()
	stack, copied := filepath.Join(checkout, "Pulumi.infra.yaml"), filepath.Join(folder, "Pulumi.infra.yaml")
	put(t, copied, "config: {}\n")
	for _, text := range []string{"config: [\n", "- a\n"} {
		put(t, stack, text)
		_, err := CopyStack(folder, stack)
		require.ErrorContains(t, err, "Pulumi.infra.yaml")
		require.Equal(t, "config: {}\n", read(t, copied))
	}
	require.NoError(t, os.Remove(stack))
	_, err := CopyStack(folder, stack)
	require.ErrorIs(t, err, os.ErrNotExist)
}
