package config

import (
	"fmt"
	"time"
)

// Duration is a time.Duration, written as Go writes it: 90s, 10m, 1h30m.
type Duration struct{ time.Duration }

// UnmarshalText reads the form described at Duration.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("not a duration; write numbers with units, such as 90s, 10m or 1h30m")
	}
	d.Duration = parsed
	return nil
}

// MarshalText writes the form that UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }
