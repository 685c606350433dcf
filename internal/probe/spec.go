// Package probe is how the program hands slipway-probe what to do: as one JSON object on standard input, which is secret,
// for it holds credentials. What stands in the object belongs to the part that does the work.
package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Encode writes a specification as Decode reads it. The text is secret.
func Encode(spec any) (string, error) {
	text, err := json.Marshal(spec)
	return string(text), err
}

// Decode reads exactly one JSON object, without unknown keys. Its errors quote nothing of the input but keys and durations.
func Decode(r io.Reader, spec any) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(spec); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("spec: %d bytes that are not one JSON object; see slipway-probe -h", len(text))
		}
		return fmt.Errorf("spec: %w", err)
	}
	if decoder.More() {
		return errors.New("spec: something follows the JSON object; give exactly one")
	}
	return nil
}

// Spec says what the probe is to do.
type Spec interface {
	Validate() error // reports every problem
	SetDefaults()    // fills what was left out
}

// Read reads a specification as Decode does, and completes it.
func Read(r io.Reader, spec Spec) error {
	if err := Decode(r, spec); err != nil {
		return err
	}
	return Complete(spec)
}

// Complete validates a specification and fills its defaults.
func Complete(spec Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	spec.SetDefaults()
	return nil
}
