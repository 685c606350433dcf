package crds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/probe"
)

// Report is the result of a run in which all CRDs are served. It holds no secret.
type Report struct {
	probe.Head
	Sources []Result `json:"sources"`
	CRDs    int      `json:"crds"`    // number of CRDs of all sources
	Changed int      `json:"changed"` // number of those that were created or changed
}

// Result is the result of one source.
type Result struct {
	Name    string         `json:"name"`
	Version string         `json:"version"`
	URL     string         `json:"url"`
	SHA256  string         `json:"sha256"`            // of the manifest that was fetched
	CRDs    []string       `json:"crds"`              // names
	Changed []string       `json:"changed,omitempty"` // names of those that were created or changed
	LeftOut map[string]int `json:"leftOut,omitempty"` // objects of a bundle that are not CRDs, by kind
}

// Sentence returns the result in one sentence: "70 CRDs served after 4.2 s, 3 of them changed".
func (r Report) Sentence() string {
	return fmt.Sprintf("%d CRDs served after %s, %d of them changed", r.CRDs, r.After(), r.Changed)
}

// Text implements probe.Report.
func (r Report) Text() string {
	var text strings.Builder
	fmt.Fprintf(&text, "crds of %s: %s\n", r.Cluster, r.Sentence())
	for _, source := range r.Sources {
		fmt.Fprintf(&text, "  %-26s %-10s %2d CRDs, %d changed%s\n      sha256 %s\n",
			source.Name, source.Version, len(source.CRDs), len(source.Changed), source.leftOut(), source.SHA256)
	}
	return text.String()
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
