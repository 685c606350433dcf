package probe

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type spec struct {
	Token   string   `json:"token"`
	Timeout Duration `json:"timeout"`
}

func (s *spec) Validate() error {
	return errors.Join(Required("token", s.Token, "give one"), NotNegative("timeout", s.Timeout))
}

func (s *spec) SetDefaults() { s.Timeout = Duration(s.Timeout.Or(time.Minute)) }

func TestSpec_ComesBackAsItWasWritten(t *testing.T) {
	want := spec{Token: "s3cret", Timeout: Duration(90 * time.Second)}
	text, err := Encode(&want)
	require.NoError(t, err)
	assert.Contains(t, text, `"1m30s"`)

	var got spec
	require.NoError(t, Decode(strings.NewReader(text), &got))
	assert.Equal(t, want, got)
}

func TestSpec_IsValidatedBeforeItIsWrittenAndAfterItIsRead(t *testing.T) {
	_, err := Encode(&spec{Token: " ", Timeout: -1})
	require.ErrorContains(t, err, "token: is empty; give one")
	require.ErrorContains(t, err, "timeout: -1ns is negative")
	require.ErrorContains(t, Read(strings.NewReader(`{}`), &spec{}), "token: is empty")

	var got spec
	require.NoError(t, Read(strings.NewReader(`{"token":"s3cret"}`), &got))
	assert.Equal(t, Duration(time.Minute), got.Timeout)
}

func TestDecode_RefusesWhatIsNotExactlyOneKnownObject(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":          ``,
		"no JSON":          `s3cret`,
		"cut off":          `{"token":"s3cret`,
		"an unknown key":   `{"tokens":"s3cret"}`,
		"the wrong type":   `{"token":["s3cret"]}`,
		"a second object":  `{"token":"s3cret"}{"token":"s3cret"}`,
		"trailing text":    `{"token":"s3cret"} s3cret`,
		"no such duration": `{"token":"s3cret","timeout":"soon"}`,
	} {
		t.Run(name, func(t *testing.T) {
			err := Decode(strings.NewReader(text), &spec{})
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "s3cret", "the spec is secret")
		})
	}
}

func TestDuration_ZeroMeansTheDefault(t *testing.T) {
	assert.Equal(t, time.Minute, Duration(0).Or(time.Minute))
	assert.Equal(t, time.Second, Duration(time.Second).Or(time.Minute))
}
