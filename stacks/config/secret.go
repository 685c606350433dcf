package config

// Secret is a value that must not be shown. Every way of printing or encoding it gives a placeholder; only Reveal
// gives the value. The zero Secret is unset.
type Secret struct {
	value  string
	sealed bool
}

// redacted stands where a secret would.
const redacted = "[secret]"

// NewSecret wraps a value.
func NewSecret(value string) Secret { return Secret{value: value} }

// IsSet reports whether the key was given.
func (s Secret) IsSet() bool { return s.sealed || s.value != "" }

// Reveal returns the value. It is empty when the secret is unset, and when it was read, encrypted, from a stack file.
func (s Secret) Reveal() string { return s.value }

// String is a placeholder, or empty when the secret is unset.
func (s Secret) String() string {
	if s.IsSet() {
		return redacted
	}
	return ""
}

// GoString keeps the value out of %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText keeps the value out of JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
