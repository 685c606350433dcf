package docs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRun_SaysWhatExecutesABlock(t *testing.T) {
	for tag, want := range map[string]Run{
		"runs: TestTutorial":                 {Test: "TestTutorial"},
		"runs: TestTutorial in the checkout": {Test: "TestTutorial", Where: InCheckout},
		"runs: TestTutorial in a clone":      {Test: "TestTutorial", Where: InClone},
		"runs: TestTutorial in a clone with state, without age and sops, because why": {
			Test: "TestTutorial", Where: InCloneOfState, Without: []string{"age", "sops"}, Reason: "why"},
		"runs: as TestMesh_One":       {Test: "TestMesh_One", Same: true},
		"runs: not here, because why": {Reason: "why"},
	} {
		run, err := Block{Tag: tag}.Run()
		require.NoError(t, err, tag)
		assert.Equal(t, want, run, tag)
	}
	for _, tag := range []string{"", "runs: not here", "runs: TestTutorial in a cave", "runs: TestTutorial, without age", "runs: by hand"} {
		_, err := Block{Document: "a.md", Line: 7, Tag: tag}.Run()
		assert.ErrorContains(t, err, "a.md:7: ", tag)
	}
}

func TestSteps_AreTheBlocksOfATestWithTheirOutput(t *testing.T) {
	const text = `
<!-- runs: TestOne -->
~~~sh
first
~~~

~~~
printed
~~~

<!-- runs: as TestOne -->
~~~sh
elsewhere
~~~

<!-- runs: TestOne in a clone, without age, because it is not there -->
~~~sh
(umask 077; age --decrypt)
second | third
~~~

<!-- words: of another program -->
~~~
not printed
~~~
`
	steps, err := Steps("TestOne", "a.md", text)
	require.NoError(t, err)
	assert.Equal(t, []Step{
		{Document: "a.md", Line: 3, Commands: "first", Quoted: []string{"printed"}},
		{Document: "a.md", Line: 17, Where: InClone, Commands: "second | third"},
	}, steps)
	_, err = Steps("TestOne", "a.md", strings.Replace(text, "<!-- runs: TestOne -->", "", 1))
	assert.ErrorContains(t, err, "a.md:3: ")
}
