package cluster

import "encoding/json"

// Patch is one strategic merge patch to a Talos machine configuration, written as YAML in the stack file. It holds compact
// JSON, which Talos's patch loader reads as the YAML it also is.
type Patch json.RawMessage

// String is the patch as JSON.
func (p Patch) String() string { return string(p) }

// MarshalJSON writes the patch as it is.
func (p Patch) MarshalJSON() ([]byte, error) { return p, nil }
