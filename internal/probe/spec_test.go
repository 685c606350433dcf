package probe

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type spec struct {
	Token   string   `json:"token"`
	Timeout Duration `json:"timeout"`

	Nodes []struct {
		Address netip.Addr     `json:"address"`
		CIDRs   []netip.Prefix `json:"cidrs"`
	} `json:"nodes,omitempty"`
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

func TestDecode_NamesTheKeyAndTheValueThatItCannotRead(t *testing.T) {
	for text, want := range map[string]string{
		`{"timeout":"soon"}`: `spec: timeout: "soon" is not a duration`,
		`{"nodes":[{"address":"10.0.0.1"},{"address":"10.0.0.300"}]}`:   `spec: nodes[1].address: ParseAddr("10.0.0.300")`,
		`{"nodes":[{"cidrs":["10.0.0.0/8","10.0.0.0"]}],"token":"own"}`: `spec: nodes[0].cidrs[1]: netip.ParsePrefix("10.0.0.0")`,
	} {
		require.ErrorContains(t, Decode(strings.NewReader(text), &spec{}), want)
	}
}

func TestDuration_ZeroMeansTheDefault(t *testing.T) {
	assert.Equal(t, time.Minute, Duration(0).Or(time.Minute))
	assert.Equal(t, time.Second, Duration(time.Second).Or(time.Minute))
}
