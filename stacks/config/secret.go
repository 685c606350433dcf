package config

import (
	"fmt"
	"io"
)

// Secret is a value that must not be shown. Every way of printing or encoding it gives a placeholder; only Reveal
// gives the value. The zero Secret is unset.
type Secret struct {
	// A pointer, because fmt calls no method on what it reaches through an unexported field, but prints an address.
	value  *string
	sealed bool
}

// redacted stands where a secret would.
const redacted = "[secret]"

// NewSecret wraps a value.
func NewSecret(value string) Secret { return Secret{value: &value} }

// IsSet reports whether the key was given.
func (s Secret) IsSet() bool { return s.sealed || s.value != nil }

// Reveal returns the value. It is empty when the secret is unset, and when it was read, encrypted, from a stack file.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// String is a placeholder, or empty when the secret is unset.
func (s Secret) String() string {
	if s.IsSet() {
		return redacted
	}
	return ""
}

// Format keeps the value out of every verb of fmt.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.String()) }

// MarshalText keeps the value out of JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
