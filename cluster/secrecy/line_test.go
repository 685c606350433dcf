package secrecy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLine_HidesWhatMayBeASecret(t *testing.T) {
	for _, line := range []string{
		"Authorization: Bearer SECRETsecret", `{"password": "SECRETsecret"}`, "token=SECRETsecret next", "apiKey: SECRETsecret",
		"-----BEGIN EC PRIVATE KEY----- SECRETsecret", "eyJhbGciOiJSUzI1NiIsImtpZCI6IlNFQ1JFVHNlY3JldCJ9SECRETsecret1", "Basic SECRETsecret",
		"clone https://git:SECRETsecret@git.home.arpa/platform: refused",
	} {
		assert.NotContains(t, Line(line), "SECRETsecret", line)
	}
}

func TestLine_LeavesOrdinaryMessages(t *testing.T) {
	for _, line := range []string{
		`level=fatal msg="failed to start: daemon creation failed: creating link: file exists" subsys=daemon`,
		"Back-off pulling image \"quay.io/cilium/cilium:v1.18.7@sha256:2c413fe0c0c4b9d9a4f3ac0a6e6d3d3f0d0b6c7a8e9f00112233445566778899\"",
		"dial tcp 10.25.11.10:6443: connect: connection refused",
		"0/5 nodes are available: 5 node(s) didn't match pod anti-affinity rules.",
	} {
		assert.Equal(t, line, Line(line))
	}
}

func TestLine_RemovesControlCharactersAndShortensLines(t *testing.T) {
	assert.Equal(t, "ab", Line("a\x1b\rb"))
	long := Line(strings.Repeat("é ", maxLine))
	assert.LessOrEqual(t, len(long), maxLine+len(" …"))
	assert.True(t, strings.HasSuffix(long, " …"))
}

func TestLines_HidesAPEMBlockAsAWhole(t *testing.T) {
	const text = "before\n-----BEGIN KEY-----\nSECRETsecret\nc2VjcmV0\n-----END KEY-----\nbetween\n" +
		"-----BEGIN KEY-----SECRETsecret-----END KEY-----\ntoken=SECRETsecret\nafter\n\n"
	assert.Equal(t, []string{"before", "(hidden: a PEM block)", "between", "(hidden: a PEM block)", "token=(hidden)", "after"}, Lines(text))
	assert.Equal(t, []string{"one"}, Lines("one"))
}

func TestLines_HidesABlockThatNeverEnds(t *testing.T) {
	assert.Equal(t, []string{"(hidden: a PEM block)"}, Lines("-----BEGIN KEY-----\nSECRETsecret\nc2VjcmV0"))
}
