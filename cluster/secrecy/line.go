package secrecy

import (
	"strings"
	"unicode"
)

// maxLine is the number of bytes of a line that are shown.
const maxLine = 400

// Line hides what may be a secret in a line that a program wrote to a log, event or error, because reports are stored in the state and
// shown. If in doubt it hides.
func Line(line string) string {
	line = strings.Map(func(r rune) rune {
		if r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, line)
	if strings.Contains(line, "-----BEGIN") {
		return "(hidden: a PEM block)"
	}
	line = tokenWord.ReplaceAllString(line, "(hidden)")
	line = credential.ReplaceAllString(line, "${1}(hidden)")
	line = userInURL.ReplaceAllString(line, "${1}(hidden)@")
	line = encoded.ReplaceAllStringFunc(line, func(word string) string {
		// Keys and tokens have upper and lower case letters and digits; paths, digests and generated names do not have all three.
		has := func(kind func(rune) bool) bool { return strings.ContainsFunc(word, kind) }
		if has(unicode.IsUpper) && has(unicode.IsLower) && has(unicode.IsDigit) {
			return "(hidden)"
		}
		return word
	})
	if len(line) > maxLine {
		line = strings.ToValidUTF8(line[:maxLine], "") + " …"
	}
	return line
}

// Lines is Line for each line of a text, and hides PEM blocks as a whole. Empty lines at the end are left out.
func Lines(text string) []string {
	var lines []string
	inside := false // a PEM block
	for line := range strings.SplitSeq(strings.TrimRight(text, " \r\n\t"), "\n") {
		if !inside {
			lines = append(lines, Line(line))
		}
		// A block on one line begins and ends there. JSON has a block on one line, too, with \n between its lines.
		begins, ends := strings.LastIndex(line, "-----BEGIN"), strings.LastIndex(line, "-----END")
		switch {
		case begins > ends:
			inside = true
		case ends >= 0:
			inside = false
		}
	}
	return lines
}
