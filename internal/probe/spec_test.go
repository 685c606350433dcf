package probe

import (
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

func TestSpec_ComesBackAsItWasWritten(t *testing.T) {
	want := spec{Token: "s3cret", Timeout: Duration(90 * time.Second)}
	text, err := Encode(want)
	require.NoError(t, err)
	assert.Contains(t, text, `"1m30s"`)

	var got spec
	require.NoError(t, Decode(strings.NewReader(text), &got))
	assert.Equal(t, want, got)
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
			assert.NotContains(t, err.Error(), "s3cret", "the specification is secret")
		})
	}
}

func TestDuration_ZeroStandsForTheDefault(t *testing.T) {
	assert.Equal(t, time.Minute, Duration(0).Or(time.Minute))
	assert.Equal(t, time.Second, Duration(time.Second).Or(time.Minute))
}
