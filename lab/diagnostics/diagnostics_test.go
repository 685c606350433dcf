package diagnostics

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/lab/tools"
)

// The end of a run that created everything. The second error is that of a plugin that crashed.
const run = `@ updating....
 +  command:local:Command gate-probe creating (3s)     3.1s  waits  infra-cp-1: it answers: connection error: desc = "refused"
 +  command:local:Command gate-probe created (5s) open after 5.4 s: 18 checks passed
 +  pulumi:pulumi:Stack slipway-infra creating (62s) error: Detected that /home/u/.pulumi/plugins/resource-talos-v0.7.1/pulumi-resource-talos exited prematurely.
 +  pulumi:pulumi:Stack slipway-infra created (62s) 1 error
    pulumi:pulumi:Stack slipway-infra  error: Detected that /home/u/.pulumi/plugins/resource-tls-v5.2.0/pulumi-resource-tls exited prematurely.
Diagnostics:
  pulumi:pulumi:Stack (slipway-infra):
    error: Detected that /home/u/.pulumi/plugins/resource-talos-v0.7.1/pulumi-resource-talos exited prematurely.
           This is *always* a bug in the provider. Please report the issue to the provider author as appropriate.
           To assist with debugging we have dumped the STDOUT and STDERR streams of the plugin:

MORE
Outputs:
    gateReport: "{\"problems\":\"error: none\"}"

Resources:
    + 87 created

Duration: 1m4s
`

func TestUnexpected_APluginThatDoesNotEndIsKnownOfTheOlderProxmoxPluginOnly(t *testing.T) {
	whole := strings.Replace(run, "MORE\n", "", 1)
	assert.Len(t, Unexpected(whole), 3)
	t.Setenv(tools.ProxmoxVariable, "older")
	assert.Empty(t, Unexpected(whole))
}

func TestUnexpected_FindsNothingInARunWithTheKnownErrorsOnly(t *testing.T) {
	t.Setenv(tools.ProxmoxVariable, "older")
	const requests = `level=DEBUG msg=Request id=0 url=https://ghcr.io/v2/x header="   \"Accept\": \"a\"\n"
    level=DEBUG msg=Response id=0 status="200 OK" body="{}"
`
	assert.Empty(t, Unexpected(strings.Replace(run, "of the plugin:\n\nMORE\n", "of the plugin:"+requests, 1)))
	const notes = "    W1122 09:41:07.123456    4711 reflector.go:547] failed to list: connection refused\n" +
		"    I1122 09:41:08.000001 4711 request.go:752] waited\n"
	assert.Empty(t, Unexpected(strings.Replace(run, "MORE\n", notes, 1)))
	assert.NotEmpty(t, Unexpected(strings.Replace(run, "MORE\n", strings.ReplaceAll(notes, "W1122", "E1122"), 1)))
	assert.Empty(t, Unexpected(strings.Replace(run, "MORE\n", "", 1)))
	assert.Empty(t, Unexpected(strings.Replace(run, "@ updating....\n", "@ refreshing....    pulumi:pulumi:Stack slipway-infra running "+
		"error: Detected that /home/u/.pulumi/plugins/resource-tls-v5.2.0/pulumi-resource-tls exited prematurely.\n", 1)))
	assert.Empty(t, Unexpected(""))
}

func TestUnexpected_FindsWhatIsListedBelowDiagnostics(t *testing.T) {
	t.Setenv(tools.ProxmoxVariable, "older")
	for more, want := range map[string]string{
		"    panic: runtime error: index out of range\n\n": "error: Detected that /home/u/.pulumi/plugins/resource-talos-v0.7.1/" +
			"pulumi-resource-talos exited prematurely.\nThis is *always* a bug in the provider. Please report the issue to the provider author " +
			"as appropriate.\nTo assist with debugging we have dumped the STDOUT and STDERR streams of the plugin:\n\npanic: runtime error: index " +
			"out of range",
		"    error: something else\n\n":                                    "error: something else",
		"    warning: a field is deprecated\n      use another\n\n":        "warning: a field is deprecated\nuse another",
		"  command:local:Command (gate-probe):\n    {\"kind\":\"gate\"}\n": `{"kind":"gate"}`,
	} {
		assert.Equal(t, []string{want}, Unexpected(strings.Replace(run, "MORE\n", more, 1)), more)
	}
}

func TestUnexpected_FindsWhatIsPrintedElsewhere(t *testing.T) {
	for line, want := range map[string]string{
		"warning: using pulumi-resource-talos from $PATH":                           "warning: using pulumi-resource-talos from $PATH",
		" ~  kubernetes:core/v1:Secret s updating (1s) [diff: ~data]; warning: old": "warning: old",
		"    pulumi:pulumi:Stack slipway-infra running error: update failed":        "error: update failed",
		"panic: oh":                           "panic: oh",
		"goroutine 1 [running]:":              "goroutine 1 [running]:",
		"the plugin has exited prematurely":   "the plugin has exited prematurely",
		"error: failed to load checkpoint: x": "error: failed to load checkpoint: x",
	} {
		assert.Equal(t, []string{want}, Unexpected("Updating (infra):\n"+line+"\n"+line+"\nResources:\n"), line)
	}
}

func TestUnexpected_LeavesOutWhatIsExpected(t *testing.T) {
	const pending = "Diagnostics:\n  pulumi:pulumi:Stack (x):\n    warning: Attempting to deploy with 1 pending operations\n      * urn, interrupted\n\n    These\n"
	assert.Len(t, Unexpected(pending), 1)
	assert.Empty(t, Unexpected(pending, regexp.MustCompile(`^warning: Attempting to deploy with \d+ pending operations`)))
}

func TestKnown_MessagesAreExplained(t *testing.T) {
	for _, message := range known {
		assert.Greater(t, len(message.why), 40, message.pattern)
		pattern := message.pattern.String()
		assert.Regexp(t, `^(\(\?s\))?\^`, pattern, "the whole message is matched")
		assert.Regexp(t, `\$$`, pattern)
	}
}

func TestUnexpected_LeavesOutTheAdviceAboutVersionsOnly(t *testing.T) {
	said := func(text string) string {
		return "Diagnostics:\n  pulumi:pulumi:Stack (slipway-infra):\n    " + text + "\n"
	}
	for _, text := range []string{
		"warning: talos.version: v1.12.7 of Talos has been out of support since 2026-04-27; plan the way to 1.14",
		"warning: gitops.flux.version: 2.6.0 of Flux is out of support; plan the way to 2.10",
		"warning: cilium.version: 1.18.7 is not tested with Kubernetes v1.35.8, only with 1.30 to 1.33; " +
			"use a release that is, or change kubernetes.version",
	} {
		assert.Empty(t, Unexpected(said(text)))
	}
	assert.NotEmpty(t, Unexpected(said("warning: talos.version: v1.99.0 of Talos is newer than 1.14, the newest that is known here")))
	assert.NotEmpty(t, Unexpected(said("warning: storage.classes: is not tested with Kubernetes ")))
}
