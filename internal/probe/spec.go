// Package probe is the interface between the Pulumi program and slipway-probe: the program writes a spec as one JSON object to the
// probe's standard input, and reads a report from the last line of its standard output. People read the probe's standard error: what is
// missing, and at the end one sentence. A spec is secret, because it holds credentials. Each subcommand's own package defines its spec.
package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Program is the command line of the probe without the subcommand. It runs in the folder of the Pulumi program, whose module is this one or
// requires it, so the probe has the version of the components.
const Program = "go run github.com/slipway-platform/slipway/cmd/slipway-probe"

// Installed is the command line of the probe in an installed binary. It is part of the state, and names no folder of a machine. It runs in
// the folder of the Pulumi program, whose folder bin is searched before PATH.
const Installed = `PATH="$PWD/bin:$PATH" slipway probe`

// Spec is the input of a subcommand.
type Spec interface {
	Validate() error // returns every problem
	SetDefaults()    // sets what was left out; called on a valid spec
}

// Encode validates a spec and writes the JSON that Read reads. The text is secret.
func Encode(spec Spec) (string, error) {
	return encode(spec, spec.Validate())
}

// Public returns the JSON of a spec without credentials, unless it has problems.
func Public(spec any, problems ...error) (string, error) {
	return encode(spec, errors.Join(problems...))
}

func encode(spec any, problems error) (string, error) {
	if problems != nil {
		return "", problems
	}
	text, err := json.Marshal(spec)
	return string(text), err
}

// Read reads a spec as Decode does, validates it and sets its defaults.
func Read(r io.Reader, spec Spec) error {
	if err := Decode(r, spec); err != nil {
		return err
	}
	return Complete(spec)
}

// Complete validates a spec and sets its defaults.
func Complete(spec Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	spec.SetDefaults()
	return nil
}

// Decode reads exactly one JSON object and refuses unknown keys. Its errors quote nothing of the input but keys, durations and
// addresses.
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
			return fmt.Errorf("spec: %d bytes that are not one JSON object; see the probe's -h", len(text))
		}
		return fmt.Errorf("spec: %s%w", keyOf(text, err), err)
	}
	if decoder.More() {
		return errors.New("spec: has more text after the JSON object; give exactly one object")
	}
	return nil
}

// keyOf returns the path of the text that an error quotes, with a colon. encoding/json names a key only in its own errors, not in errors of
// netip.Addr or Duration.
func keyOf(text []byte, err error) (key string) {
	var find func(path string, value any)
	find = func(path string, value any) {
		switch value := value.(type) {
		case string:
			if key == "" && strings.Contains(err.Error(), strconv.Quote(value)) {
				key = strings.TrimPrefix(path, ".") + ": "
			}
		case []any:
			for i, one := range value {
				find(fmt.Sprintf("%s[%d]", path, i), one)
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(value)) {
				find(path+"."+name, value[name])
			}
		}
	}
	var whole any
	_ = json.Unmarshal(text, &whole) // without a whole there is no key to name
	find("", whole)
	return key
}

// Required returns an error if a value is empty.
func Required(path, value, remedy string) error {
	if strings.TrimSpace(value) == "" {
		return fmt.Errorf("%s: is empty; %s", path, remedy)
	}
	return nil
}

// NotNegative returns an error if a duration is negative.
func NotNegative(path string, d Duration) error {
	if d < 0 {
		return fmt.Errorf("%s: %s is negative; give a positive duration, or none for the default", path, d)
	}
	return nil
}
