package docs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// losesTheStack matches commands of a page that deletes a stack, or keeps a copy of its state for that case.
var losesTheStack = regexp.MustCompile("stack (rm|import)|stack export[^\n]*backup")

// With Pulumi's service and its own provider of secrets, a copy of the state is worthless once the stack is gone: the service has the key.
func TestState_EachPageAboutALostStackNamesAPassphrase(t *testing.T) {
	total := 0
	for name, text := range documents(t) {
		if strings.HasPrefix(name, "docs/") && losesTheStack.MatchString(text) { // the template's README removes a stack without a state
			total++
			assert.True(t, strings.Contains(text, "pulumi stack change-secrets-provider passphrase"),
				"%s names `pulumi stack rm` or a copy of the state, and not `pulumi stack change-secrets-provider passphrase`", name)
		}
	}
	assert.GreaterOrEqual(t, total, 4)
}
