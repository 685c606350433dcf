package rotate

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPass_ChangesWhatIsMissingAndNothingElse(t *testing.T) {
	authorities := []string{"one\n", "two\n", "three"}
	for name, test := range map[string]struct {
		pass    Pass
		now     Trust
		next    Trust
		changes bool
	}{
		"accepts the declared one":        {Accept, Trust{"two", nil}, Trust{"two", []string{"three"}}, true},
		"keeps what it accepted":          {Accept, Trust{"two", []string{"own"}}, Trust{"two", []string{"own", "three"}}, true},
		"accepts it already":              {Accept, Trust{"two", []string{"three\n"}}, Trust{"two", []string{"three\n"}}, false},
		"is further, so that it accepts":  {Accept, Trust{"three\n", nil}, Trust{"three\n", nil}, false},
		"issues, and accepts the former":  {Issue, Trust{"two", []string{"three"}}, Trust{"three", []string{"two"}}, true},
		"skips a generation":              {Issue, Trust{"one", []string{"three", "two"}}, Trust{"three", []string{"two", "one"}}, true},
		"names the former one once":       {Issue, Trust{"two", []string{"two", "three"}}, Trust{"three", []string{"two"}}, true},
		"issues already":                  {Issue, Trust{"three", []string{"two"}}, Trust{"three", []string{"two"}}, false},
		"drops all former ones":           {Drop, Trust{"three", []string{"one", "own", "two"}}, Trust{"three", []string{"own"}}, true},
		"has dropped them":                {Drop, Trust{"three", []string{"own"}}, Trust{"three", []string{"own"}}, false},
		"drops nothing before it issues":  {Drop, Trust{"two", []string{"three"}}, Trust{"two", []string{"three"}}, false},
		"is a node of the declared alone": {Issue, Trust{"three", nil}, Trust{"three", nil}, false},
	} {
		t.Run(name, func(t *testing.T) {
			next, changes := test.pass.Next(test.now, authorities)
			assert.Equal(t, test.changes, changes)
			assert.Equal(t, test.next.Issuing, next.Issuing)
			assert.ElementsMatch(t, test.next.Accepted, next.Accepted)
		})
	}
}
