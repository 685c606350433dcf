package config

import "strconv"

// Switch is a boolean of the file whose default is not false, so that unset is told from false. A loaded Stack has
// none that is unset.
type Switch uint8

// The states of a Switch; the zero value is unset.
const (
	SwitchUnset Switch = iota
	SwitchOff
	SwitchOn
)

// On reports whether the switch is on.
func (s Switch) On() bool { return s == SwitchOn }

// String is true or false, or empty when unset.
func (s Switch) String() string {
	if s == SwitchUnset {
		return ""
	}
	return strconv.FormatBool(s.On())
}

// MarshalJSON writes true or false, as the file has it.
func (s Switch) MarshalJSON() ([]byte, error) { return strconv.AppendBool(nil, s.On()), nil }

// switchOf is the switch in the position.
func switchOf(on bool) Switch {
	if on {
		return SwitchOn
	}
	return SwitchOff
}
