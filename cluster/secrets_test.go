package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
)

const password = "correct-horse-battery-staple"

// problemsOf returns the problems that Complete finds in the cluster of Pulumi.infra.yaml after the change. Keys that follow others
// keep the values derived before the change; those that the change empties are derived again.
func problemsOf(t *testing.T, change func(*cluster.Cluster)) []string {
	t.Helper()
	c := clusters.Infra(t)
	change(c)
	var findings cluster.Findings
	c.Complete(&findings)
	var list []string
	for _, problem := range findings.All() {
		list = append(list, problem.Error())
	}
	return list
}

func TestGitPassword_MustHaveTheFormOfAPasswordAndIsNeverShown(t *testing.T) {
	for given, problem := range map[string]string{
		password + "\n":               "has a line break or another control character in it; set it without, for instance with printf instead of echo",
		"\t" + password:               "has a line break or another control character in it; set it without, for instance with printf instead of echo",
		password + "\n" + password:    "has a line break or another control character in it; set it without, for instance with printf instead of echo",
		password + "\x00":             "has a line break or another control character in it; set it without, for instance with printf instead of echo",
		password + " ":                "begins or ends with white space; set it without, for instance with printf instead of echo",
		" " + password:                "begins or ends with white space; set it without, for instance with printf instead of echo",
		"\u00a0" + password:           "begins or ends with white space; set it without, for instance with printf instead of echo",
		"https://x:" + password + "@": "is a URL; give the password or token alone",
	} {
		problems := problemsOf(t, func(c *cluster.Cluster) { c.GitPassword = cluster.NewSecret(given) })
		require.Equal(t, []string{"gitPassword: " + problem}, problems, "%q", given)
		assert.NotContains(t, problems[0], password)
	}
}

func TestGitPassword_MayContainAnythingElse(t *testing.T) {
	for name, given := range map[string]cluster.Secret{
		"words":                     cluster.NewSecret("correct horse battery"),
		"punctuation":               cluster.NewSecret(`p:a/s@s"w'ö%`),
		"encrypted in a stack file": cluster.EncryptedSecret(),
		"not given yet":             {},
	} {
		assert.Empty(t, problemsOf(t, func(c *cluster.Cluster) { c.GitPassword = given }), name)
	}
}
