package cluster

import "time"

// Duration is a time.Duration, written as Go writes it: 90s, 10m, 1h30m.
type Duration struct{ time.Duration }

// UnmarshalText reads the form described at Duration. Its error is a problem and a remedy, separated by a semicolon.
func (d *Duration) UnmarshalText(text []byte) (err error) {
	if err := wellFormed("duration", text); err != nil {
		return err
	}
	d.Duration, err = time.ParseDuration(string(text))
	return err
}

// MarshalText writes the form that UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }
