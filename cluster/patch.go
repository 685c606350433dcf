package cluster

import "encoding/json"

// Patch is one strategic merge patch to a Talos machine configuration, written as YAML in the stack file. It is stored as compact
// JSON, which Talos's patch loader can read because JSON is also YAML.
type Patch json.RawMessage

// String returns the patch as JSON.
func (p Patch) String() string { return string(p) }

// MarshalJSON returns the patch unchanged.
func (p Patch) MarshalJSON() ([]byte, error) { return p, nil }
