package rehearsal

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// phase is the time from the first to the last operation inside one component.
type phase struct {
	name        string
	first, last time.Time
}

// event is a part of Pulumi's engine events (--event-log): the resource and the time.
type event struct {
	Timestamp   int64 `json:"timestamp"` // seconds
	ResourcePre *struct {
		Metadata metadata `json:"metadata"`
	} `json:"resourcePreEvent"`
	ResOutputs *struct {
		Metadata metadata `json:"metadata"`
	} `json:"resOutputsEvent"`
}

type metadata struct {
	URN string `json:"urn"`
	Op  string `json:"op"`
}

// readPhases reads an event log and returns the components' phases in the order of their begin.
func readPhases(path string) ([]phase, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("event log: %w", err)
	}
	defer f.Close()
	var phases []phase
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20) // an event contains the whole state of a resource
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("event log %s: %w", path, err)
		}
		var m metadata
		switch {
		case e.ResourcePre != nil:
			m = e.ResourcePre.Metadata
		case e.ResOutputs != nil:
			m = e.ResOutputs.Metadata
		}
		name := component(m.URN)
		if name == "" || m.Op == "same" {
			continue
		}
		at := time.Unix(e.Timestamp, 0)
		if i := slices.IndexFunc(phases, func(p phase) bool { return p.name == name }); i >= 0 {
			phases[i].last = at
			continue
		}
		phases = append(phases, phase{name: name, first: at, last: at})
	}
	return phases, lines.Err()
}

// component is the outermost component of a resource, e.g. "TalosCluster". It is empty for the stack, for the
// registration of a component, and for resources outside of components.
func component(urn string) string {
	parts := strings.SplitN(urn, "::", 4)
	if len(parts) < 4 {
		return ""
	}
	types := strings.Split(parts[2], "$")
	if len(types) < 2 || !strings.HasPrefix(types[0], "slipway:") {
		return ""
	}
	return types[0][strings.LastIndex(types[0], ":")+1:]
}
