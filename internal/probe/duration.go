package probe

import (
	"cmp"
	"fmt"
	"time"
)

// Duration is a time.Duration that JSON shows as Go does, e.g. "10m0s".
type Duration time.Duration

// MarshalText writes d as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration; write it as in 90s or 10m", text)
	}
	*d = Duration(parsed)
	return nil
}

func (d Duration) String() string { return time.Duration(d).String() }

// Or returns d, or the default if d is 0.
func (d Duration) Or(byDefault time.Duration) time.Duration {
	return cmp.Or(time.Duration(d), byDefault)
}
