package tools

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestShare_LinksTheLargeFilesThatAnotherToolHas(t *testing.T) {
	cache := t.TempDir()
	there := filepath.Join(cache, "tools", "first", "key", dataFolder)
	here := filepath.Join(cache, "tools", "second", "key.tmp", "out", dataFolder)
	large := bytes.Repeat([]byte("talos"), shared/2) // more than a buffer, and no multiple of it
	other := append(bytes.Clone(large[:len(large)-1]), 'x')
	for name, contents := range map[string]struct{ there, here []byte }{
		"images/same.tar":  {large, large},
		"images/other.tar": {large, other},
		"longer":           {append(bytes.Clone(large), 'x'), large},
		"small":            {[]byte("small"), []byte("small")},
		"new":              {nil, large},
	} {
		if contents.there != nil {
			write(t, filepath.Join(there, name), string(contents.there))
		}
		write(t, filepath.Join(here, name), string(contents.here))
	}
	saved, err := share(cache, here)
	if err != nil || saved != int64(len(large)) {
		t.Fatalf("saved %d, %v; want %d", saved, err, len(large))
	}
	for name, want := range map[string]bool{"images/same.tar": true, "images/other.tar": false, "longer": false, "small": false} {
		a, errA := os.Stat(filepath.Join(there, name))
		b, errB := os.Stat(filepath.Join(here, name))
		if errA != nil || errB != nil || os.SameFile(a, b) != want {
			t.Errorf("%s: the same file: %t; %v, %v", name, !want, errA, errB)
		}
	}
	left, err := os.ReadFile(filepath.Join(here, "images/other.tar"))
	if err != nil || !bytes.Equal(left, other) {
		t.Errorf("a file that differs was changed, %v", err)
	}
}
