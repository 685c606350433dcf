package world

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/slipway-platform/slipway/lab/home"
)

// Tools holds the paths of the real programs and their data, by the tool's name in tools.Table.
type Tools struct {
	Programs map[string]string `json:"programs"`
	Data     map[string]string `json:"data"` // folders of data files
}

// minors are the programs of the minor versions of Kubernetes that were built on demand, e.g. by "v1.35".
func (t Tools) minors() map[string]string {
	minors := map[string]string{}
	for name, path := range t.Programs {
		if version, is := strings.CutPrefix(name, "kube-"); is {
			minors["v"+version] = path
		}
	}
	return minors
}

// Save writes t to a lab's folder, for the world that runs in it.
func (t Tools) Save(h *home.Home) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return os.WriteFile(h.Tools(), data, 0o600)
}

// ReadTools reads what Save has written.
func ReadTools(h *home.Home) (Tools, error) {
	var t Tools
	data, err := os.ReadFile(h.Tools())
	if err != nil {
		return t, fmt.Errorf("lab folder: %w", err)
	}
	return t, json.Unmarshal(data, &t)
}
