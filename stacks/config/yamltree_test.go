package config

import (
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/clusters/fixtures"
)

// minimalWith returns the minimal fixture with one text replaced by another.
func minimalWith(t *testing.T, was, is string) string {
	t.Helper()
	text := fixtures.Get(fixtures.Minimal).Text
	require.Equal(t, 1, strings.Count(text, was), was)
	return strings.Replace(text, was, is, 1)
}

func TestParseFile_RefusesCharactersThatAreNoText(t *testing.T) {
	for is, want := range map[string]string{
		"name: home\x00":     "line 3: holds the character U+0000, which is invisible; remove it",
		"name: home\x7f":     "line 3: holds the character U+007F, which is invisible; remove it",
		"name: home\x1b[31m": "line 3: holds the character U+001B, which is invisible; remove it",
		"name: home\rx":      "line 3: holds the character U+000D, which is invisible; remove it",
		"name: ho\xc3\x28me": "line 3: is not UTF-8; save the file in this encoding",
		"name: \xff":         "line 3: is not UTF-8; save the file in this encoding",
	} {
		_, err := ParseFile("Pulumi.home.yaml", []byte(minimalWith(t, "name: home\n", is+"\n")))
		assert.EqualError(t, err, "Pulumi.home.yaml: "+want, "%q", is)
	}
	_, err := ParseFile("Pulumi.home.yaml", []byte("\xff\xfea\x00:\x00 \x00b\x00"))
	assert.EqualError(t, err, "Pulumi.home.yaml: line 1: is not UTF-8; save the file in this encoding", "UTF-16")
}

// Unusual YAML that every parser reads in the same way is allowed. Pulumi must read the same values.
func TestParseFile_ReadsUnusualYAMLAsPulumiDoes(t *testing.T) {
	for name, text := range map[string]string{
		"line breaks of Windows": strings.ReplaceAll(fixtures.Get(fixtures.Minimal).Text, "\n", "\r\n"),
		"a beginning":            "---\n" + fixtures.Get(fixtures.Minimal).Text + "...\n",
		"a directive":            "%YAML 1.1\n---\n" + fixtures.Get(fixtures.Minimal).Text,
		"a boolean in capitals":  minimalWith(t, "Planes: true", "Planes: TRUE"),
		"tabs in a block of text": minimalWith(t, "gitops:\n",
			"talos:\n    lldpd:\n      config: |\n        a\tb\n\n        \tc\n  slipway:gitops:\n"),
		"tabs in a folded text": minimalWith(t, "gitops:\n",
			"talos:\n    lldpd:\n      config: >-\n        a\tb\n        c\n  slipway:gitops:\n"),
		"tabs in a comment":          minimalWith(t, "gitops:\n", "gitops:\n    #\tcomment\n"),
		"an escaped tab":             minimalWith(t, "disk: 20GiB", "disk: 20GiB\n      labels: {a: \"\\t\"}"),
		"an anchor of a scalar":      strings.Replace(minimalWith(t, "name: home\n", "name: &name home\n"), "name: all", "name: *name", 1),
		"an anchor of a key":         minimalWith(t, "name: home\n", "&key name: home\n"),
		"a merge of two":             minimalWith(t, "id: 1\n", "<<: [{id: 1}, {id: 2}]\n"),
		"a merge below its own keys": minimalWith(t, "id: 1\n", "<<: {id: 7, name: other}\n    id: 1\n"),
		"a merge within a merge":     minimalWith(t, "id: 1\n", "<<: {<<: {id: 1}}\n"),
		"a list at its key's column": minimalWith(t, "nodes: [pve1]", "nodes:\n    - pve1"),
		"text of digits in quotes": minimalWith(t, "disk: 20GiB",
			"disk: 20GiB\n      labels: {a: \"0755\", b: '1e3', \"1\": \"0x1\", c: \"~\", d: \"2026-01-01\"}"),
		"numbers of every plain form": minimalWith(t, "  slipway:gitops:",
			"  slipway:talos: {patches: {all: [{a: 0, b: -1, c: 1.5, d: -0.25, e: 999999999999, f: 1000000}]}}\n  slipway:gitops:"),
		"a text of two lines": minimalWith(t, "disk: 20GiB", "disk: 20GiB\n      labels: {a: \"b\n        c\", d: e\n        f}"),
	} {
		t.Run(name, func(t *testing.T) {
			ours, err := sourceOf(text)
			require.NoError(t, err)
			theirs := readAsPulumi(t, text)
			require.Len(t, theirs.Values, len(ours.Values))
			for key, value := range theirs.Values {
				assert.JSONEq(t, value.Text(), ours.Values[key].Text(), key)
			}
		})
	}
}

// For every accepted text, the values must be those that Pulumi reads. Some forms are refused only because Pulumi reads them
// differently; this test found them.
func FuzzParseFile_ReadsWhatItAcceptsAsPulumiDoes(f *testing.F) {
	for _, seed := range []string{
		"- a", "{a: b}", "a: [1, 2]\nb: *x", "<<: {a: 1}", "? a\n: b", "\"a\\tb\"", "a: &x {b: c}\nd: *x", "[a: b]", "{a: , b}", "x:\n- y\n- z",
		"|\n\n  a", "|2\n    \ta\n", "a: >+\n  b\n\n  c\n\n", "'\\n': a", "null: x", "1:30", "{secure: x}", "=: a", "a:\n  <<: [{b: c}]\n", "~",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, part string) {
		text := "config:\n  slipway:a:\n    " + strings.ReplaceAll(part, "\n", "\n    ") + "\n"
		ours, err := ParseFile("Pulumi.home.yaml", []byte(text))
		if err != nil || len(ours.written) > 0 {
			return
		}
		for key, value := range readAsPulumi(t, text).Values {
			if !value.Secret && value.Text() != ours.Values[key].Text() {
				assert.JSONEq(t, value.Text(), ours.Values[key].Text(), "%q", text)
			}
		}
	})
}

// bounded loads a text, and fails if that takes more of the processors' time or allocates more than the limits.
func bounded(t *testing.T, text string, longest time.Duration, megabytes uint64) error {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cpuTime(t)
	_, err := loadText(nil, "Pulumi.home.yaml", []byte(text))
	took := cpuTime(t) - start
	runtime.ReadMemStats(&after)
	assert.Less(t, took, longest)
	assert.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, megabytes, "megabytes")
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 64<<10)
	return err
}

// cpuTime is what this process has used of the processors. Unlike the time of a clock, it hardly grows on a busy computer.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func TestLoad_RefusesAliasesThatExpandTooFar(t *testing.T) {
	const tooFar = "the aliases up to here stand for far more than the file holds"
	for _, name := range []string{"file-with-an-alias-bomb", "file-with-a-merge-bomb"} {
		assert.ErrorContains(t, bounded(t, fixtures.Get(name).Text, 20*time.Second, 100), tooFar, name)
	}
	scalars := "config:\n  slipway:a: &a " + strings.Repeat("x", 1000) + "\n  slipway:b: [" + strings.Repeat("*a, ", 100000) + "*a]\n"
	assert.ErrorContains(t, bounded(t, scalars, 5*time.Second, 300), tooFar)
}

func TestLoad_NeedsTimeAndMemoryInProportionToTheFile(t *testing.T) {
	minimal := fixtures.Get(fixtures.Minimal).Text
	const large = maxFile / 4 // large enough that an algorithm that is not linear takes minutes
	many := func(format string) string {
		var out strings.Builder
		out.WriteString(minimal)
		for i := 0; out.Len() < large; i++ {
			out.WriteString(strings.ReplaceAll(format, "%d", strconv.Itoa(i)))
		}
		return out.String()
	}
	for name, text := range map[string]string{
		"unknown keys":         many("  slipway:unknown%d: 1\n"),
		"unknown keys, nearly": many("  slipway:clustre%d: 1\n"),
		"keys of others":       many("  other:unknown%d: 1\n"),
		"one key":              many("  slipway:twice: 1\n"),
		"unknown keys beside":  many("unknown%d: 1\n"),
		"unknown keys below":   many("    unknown%d: 1\n"),
		"numbers":              many("  slipway:unknown%d: 0x1\n"),
		"labels of one name": strings.Replace(minimal, "disk: 20GiB\n",
			"disk: 20GiB\n      labels: {"+strings.Repeat("a: b, ", large/6)+"}\n", 1),
		"machines": minimal + "  slipway:unknown: [" + strings.Repeat("{},", large/3) + "]\n",
		"aliases of a fault": strings.Replace(minimal, "role: controlplane\n",
			"role: controlplane\n      dataDisks: [&d {name: x y, size: 1}, "+strings.Repeat("*d, ", large/4)+"]\n", 1),
		"one line":       "config: {" + strings.Repeat("'!': 1, ", large/8) + "}\n",
		"a long key":     minimal + "  slipway:" + strings.Repeat("a", large) + ": 1\n",
		"a long value":   strings.Replace(minimal, "name: home\n", "name: "+strings.Repeat("a", large)+"\n", 1),
		"tags":           many("  slipway:unknown%d: !x 1\n"),
		"anchors":        many("  slipway:unknown%d: &a 1\n"),
		"comments":       many("  # %d\n") + "  slipway:x: 1\n",
		"brackets":       "config: " + strings.Repeat("[", large),
		"braces":         "config: " + strings.Repeat("{a: ", large/4),
		"dashes":         "config:\n  " + strings.Repeat("- ", large/2),
		"questions":      "config:\n  " + strings.Repeat("? ", large/2),
		"five megabytes": strings.Repeat(minimal, 5<<20/len(minimal)),
	} {
		t.Run(name, func(t *testing.T) {
			err := bounded(t, text, 20*time.Second, 1500)
			for line := range strings.Lines(err.Error()) {
				assert.Less(t, utf8.RuneCountInString(line), 1800)
			}
			assert.LessOrEqual(t, strings.Count(err.Error(), "\n"), 50)
		})
	}
}

func TestLoad_ReportsAFaultOnceThatAliasesRepeat(t *testing.T) {
	const size = "cores: 2\n      memory: 4GiB\n      disk: 20GiB\n"
	text := strings.Replace(fixtures.Get("two-machines").Text, size, "<<: &size {cores: 0, memory: 4}\n", 1)
	text = strings.Replace(text, size, "<<: *size\n", 1)
	_, err := loadText(nil, "Pulumi.home.yaml", []byte(text))
	assert.EqualError(t, err, "nodePools[0].memory: 4 has no unit; write a whole number and a unit, such as 512MiB, 8GiB or 1TiB\n"+
		"nodePools[0].disk: is missing; add it, such as 40GiB\n"+
		"nodePools[1].disk: is missing; add it, such as 40GiB\n"+
		"nodePools[0].cores: 0 is out of range; write a number from 1 to 1024")
}
