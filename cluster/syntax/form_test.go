package syntax

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/golden"
)

var (
	meantForm   = regexp.MustCompile(`^did you mean (.*)\?$`)
	exampleForm = regexp.MustCompile(`^write it like (.*)$`)
	nameForm    = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
)

func lookup(t testing.TB, name string) Form {
	t.Helper()
	form, found := Lookup(name)
	require.True(t, found, name)
	return form
}

// allNames returns the names of all forms, sorted.
func allNames() []string {
	names := make([]string, 0, len(forms))
	for _, form := range forms {
		names = append(names, form.Name)
	}
	slices.Sort(names)
	return names
}

// holds checks what is true of every form and value.
func holds(t testing.TB, form Form, value string) {
	t.Helper()
	shown := Shown(form, value)
	require.LessOrEqual(t, len(shown), 200)
	require.False(t, strings.ContainsFunc(shown, isLineBreak), "%q", shown)
	fault := form.Check(value)
	if fault == nil {
		require.Regexp(t, form.Pattern, value, "a valid value must match the pattern")
		return
	}
	message := fault.Problem + "; " + fault.Remedy
	require.NotEmpty(t, fault.Problem, "%q", value)
	require.NotEmpty(t, fault.Remedy, "%q", value)
	require.False(t, strings.ContainsFunc(message, isLineBreak), "%q", message)
	require.NoError(t, asciiOnly(message))
	require.NotContains(t, message, "%!", "a format that does not fit its values")
	for _, advice := range []*regexp.Regexp{meantForm, exampleForm} {
		if match := advice.FindStringSubmatch(fault.Remedy); match != nil {
			require.Nil(t, form.Check(match[1]), "the remedy for %q is wrong itself: %s", value, match[1])
		}
	}
}

func asciiOnly(text string) error {
	for _, letter := range text {
		if letter < ' ' || letter > '~' {
			return fmt.Errorf("%q has %U", text, letter)
		}
	}
	return nil
}

func TestForms_AreDescribed(t *testing.T) {
	names := allNames()
	require.True(t, slices.IsSorted(names))
	require.Equal(t, names, slices.Compact(slices.Clone(names)), "every name is there once")
	require.Equal(t, names, slices.Sorted(maps.Keys(cases)), "every form has cases, and every case a form")
	for _, name := range names {
		form := lookup(t, name)
		assert.Equal(t, name, form.Name)
		assert.Regexp(t, nameForm, name)
		assert.NotEmpty(t, form.Words, name)
		assert.NotEmpty(t, form.What, name)
		assert.Nil(t, form.Check(form.Example), "%s: the example %s is wrong", name, form.Example)
		assert.True(t, strings.HasPrefix(form.Pattern, "^") && strings.HasSuffix(form.Pattern, "$"), name)
		assert.NotRegexp(t, `\(\?|\\[pPAzbBQ]|\[\[:`, form.Pattern, "%s: ECMA-262 has no such thing", name)
	}
	_, found := Lookup("no-such-form")
	require.False(t, found)
}

func TestForms_AcceptWhatIsValid(t *testing.T) {
	for _, name := range allNames() {
		form := lookup(t, name)
		require.NotEmpty(t, cases[name].valid, name)
		for _, value := range cases[name].valid {
			assert.Nil(t, form.Check(value), "%s: %q", name, value)
			holds(t, form, value)
		}
	}
}

// The golden file shows every message as a person reads it.
func TestForms_SayWhatIsWrong(t *testing.T) {
	var all strings.Builder
	for _, name := range allNames() {
		form := lookup(t, name)
		require.NotEmpty(t, cases[name].wrong, name)
		fmt.Fprintf(&all, "## %s\n", name)
		for _, value := range cases[name].wrong {
			fault := form.Check(value)
			if assert.NotNil(t, fault, "%s accepts %q", name, value) {
				fmt.Fprintf(&all, "%s %s; %s\n", Shown(form, value), fault.Problem, fault.Remedy)
			}
			holds(t, form, value)
		}
	}
	golden.File(t, "testdata/faults.golden", all.String())
}

func TestForms_RefuseWhatIsNoLineOfText(t *testing.T) {
	for _, name := range allNames() {
		form := lookup(t, name)
		for _, odd := range []string{" ", "\n", "\x00", "\u200b", "\ufeff", "\u202e", "\xff", "\t"} {
			for _, value := range []string{odd, odd + form.Example, form.Example + odd, form.Example[:1] + odd + form.Example[1:]} {
				if odd == " " && form.Check(value) == nil {
					require.NotEqual(t, odd, value[:1])
					continue // a space within
				}
				require.NotNil(t, form.Check(value), "%s: %q", name, value)
				holds(t, form, value)
			}
		}
		if empty := form.Check(""); name != "node-label-value" {
			require.NotNil(t, empty, name)
			require.Equal(t, "is empty", empty.Problem)
		} else {
			require.Nil(t, empty)
		}
	}
}

// The longest value that is looked at, and a much longer one; what is not linear takes minutes.
func TestForms_TakeLinearTime(t *testing.T) {
	for _, name := range allNames() {
		form := lookup(t, name)
		start := time.Now()
		for _, unit := range []string{"a", "1", "-", ".", "/", "@", ":", "%", "a.", "1m", "://", " ", "\n", "é", "\xff", "a-", "x/",
			form.Example} {
			for _, size := range []int{maxLength, 1 << 18} {
				holds(t, form, strings.Repeat(unit, size/len(unit)))
			}
		}
		require.Less(t, time.Since(start), time.Minute, name) // quadratic time would be hours, on a busy machine a few seconds are enough
	}
}

// Its seeds are all values of all forms, each given to every form.
func FuzzForms(f *testing.F) {
	for _, one := range cases {
		for _, value := range slices.Concat(one.valid, one.wrong) {
			if len(value) < 200 {
				f.Add(value)
			}
		}
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, form := range forms {
			holds(t, form, value)
		}
	})
}
