package crds

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/probe"
)

// Report is what the probe ends with once all definitions are served. It holds no secret.
type Report struct {
	Kind        string         `json:"kind"` // crds
	Cluster     string         `json:"cluster"`
	Sources     []Result       `json:"sources"`
	Definitions int            `json:"definitions"` // of all sources together
	Changed     int            `json:"changed"`     // of them, those that were created or differed
	Took        probe.Duration `json:"took"`
}

// Result is what became of one source.
type Result struct {
	Name        string         `json:"name"`
	Version     string         `json:"version"`
	URL         string         `json:"url"`
	SHA256      string         `json:"sha256"` // of what was fetched; may be pinned
	Definitions []string       `json:"definitions"`
	Changed     []string       `json:"changed,omitempty"`
	LeftOut     map[string]int `json:"leftOut,omitempty"` // objects of a bundle that are no definitions, by kind
}

// Write writes the report for a person, and then on one line as JSON.
func (r Report) Write(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "crds of %s: %d definitions served, %d of them changed\n", r.Cluster, r.Definitions, r.Changed)
	for _, source := range r.Sources {
		fmt.Fprintf(&text, "  %-26s %-10s %2d definitions, %d changed%s\n      sha256 %s\n",
			source.Name, source.Version, len(source.Definitions), len(source.Changed), source.leftOut(), source.SHA256)
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", text.String(), line)
	return err
}

func (r Result) leftOut() string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(r.LeftOut)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", r.LeftOut[kind], kind))
	}
	if len(kinds) == 0 {
		return ""
	}
	return "; left out: " + strings.Join(kinds, ", ")
}
