package syntax

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line checks that a text is one line of visible ASCII: not empty, without white space around it, control characters,
// invisible characters and letters of other scripts.
func Line(text string) *Fault { return lineFault(text, false) }

func lineFault(text string, anyScript bool) *Fault {
	switch {
	case text == "":
		return because("is empty", "give it a value, or remove the key")
	case !utf8.ValidString(text):
		return because("is not UTF-8", "write it anew in an editor that saves UTF-8")
	case strings.ContainsFunc(text, isLineBreak):
		return because("has a line break in it", "write it on one line")
	case strings.TrimFunc(text, unicode.IsSpace) != text:
		return because("has white space around it", "remove it")
	}
	for _, letter := range text {
		if fault := letterFault(letter, anyScript); fault != nil {
			return fault
		}
	}
	return nil
}

func letterFault(letter rune, anyScript bool) *Fault {
	switch {
	case letter >= ' ' && letter <= '~':
		return nil
	case unicode.IsControl(letter):
		return because(fmt.Sprintf("has the control character %U in it", letter), "remove it")
	case isInvisible(letter):
		return because(fmt.Sprintf("has the invisible character %U in it", letter), "remove it")
	case unicode.IsSpace(letter):
		return because(fmt.Sprintf("has %U, which is not the space it looks like", letter), "write an ordinary space, or none")
	case !unicode.IsPrint(letter):
		return because(fmt.Sprintf("has %U, which is no character of any script", letter), "remove it")
	case anyScript:
		return nil
	}
	return because(fmt.Sprintf("has %U, which is not ASCII", letter), "write it in ASCII")
}

// isLineBreak reports whether Unicode lets a line end at the character.
func isLineBreak(letter rune) bool {
	switch letter {
	case '\n', '\v', '\f', '\r', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

// isInvisible reports whether nothing is shown for the character: characters that format text, such as marks of direction, soft hyphens and
// the byte order mark, variation selectors, and blanks that count as letters.
func isInvisible(letter rune) bool {
	switch letter {
	case '\u034f', '\u115f', '\u1160', '\u17b4', '\u17b5', '\u2800', '\u3164', '\uffa0':
		return true
	}
	return unicode.In(letter, unicode.Cf, unicode.Variation_Selector)
}

// cleaned is a text without what lineFault reports, as far as that is obvious.
func cleaned(text string) string {
	text = strings.Map(func(letter rune) rune {
		switch {
		case isInvisible(letter) || letter == utf8.RuneError:
			return -1
		case unicode.IsSpace(letter):
			return ' '
		}
		return letter
	}, text)
	return strings.Trim(text, " ")
}
