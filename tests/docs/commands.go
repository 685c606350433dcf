package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Block is a fenced block of a document.
type Block struct {
	Document string
	Line     int    // of the fence
	Language string // "" without one
	Tag      string // text of the HTML comment on the line above the fence, such as "runs: TestTutorial"; "" without one
	Lines    []string
}

var (
	fence = regexp.MustCompile("^( *)(```|~~~)([a-z]*)")
	tag   = regexp.MustCompile(`^ *<!-- ((?:runs|words): .*[^ ]) -->$`)
)

// Blocks returns the fenced blocks of a document.
func Blocks(document, text string) []Block {
	var all []Block
	var open *Block
	var indent, mark, above string
	for i, line := range strings.Split(text, "\n") {
		found := fence.FindStringSubmatch(line)
		switch {
		case open != nil && strings.TrimSpace(line) == mark:
			all, open = append(all, *open), nil
		case open != nil:
			open.Lines = append(open.Lines, strings.TrimPrefix(line, indent))
		case found != nil:
			open = &Block{Document: document, Line: i + 1, Language: found[3]}
			indent, mark = found[1], found[2]
			if comment := tag.FindStringSubmatch(above); comment != nil {
				open.Tag = comment[1]
			}
		}
		above = line
	}
	return all
}

// Command is a simple command of a block: a program with its arguments.
type Command struct {
	Document string
	Line     int
	Tag      string   // of its block
	Words    []string // without assignments, redirections and quotes; never empty
}

func (c Command) String() string {
	return fmt.Sprintf("%s:%d: %s", c.Document, c.Line, strings.Join(c.Words, " "))
}

// Commands returns the commands of a block of shell, in order.
func (b Block) Commands() []Command {
	var all []Command
	for i := 0; i < len(b.Lines); i++ {
		line, number := b.Lines[i], b.Line+1+i
		for strings.HasSuffix(line, `\`) && i+1 < len(b.Lines) {
			i++
			line = strings.TrimSuffix(line, `\`) + " " + strings.TrimSpace(b.Lines[i])
		}
		for _, words := range Simple(line) {
			all = append(all, Command{b.Document, number, b.Tag, words})
		}
	}
	return all
}

var (
	assignment  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
	redirection = regexp.MustCompile(`^[0-9]*[<>]`)
)

// Words of the shell: those before a command, and those that are none.
var (
	prefixes = []string{"export", "exec", "!", "do", "then", "else", "if", "while"}
	keywords = []string{"for", "done", "fi"}
)

// Simple splits a line of shell into its simple commands, those in a subshell and in $(…) included. It knows quotes, comments, pipes and
// lists, and no here-documents. The tests have bash check the syntax.
func Simple(line string) [][]string {
	var all [][]string
	for _, words := range split(line) {
		var command []string
		for i := 0; i < len(words); i++ {
			switch word := words[i]; {
			case redirection.MatchString(word):
				if strings.Trim(word, "0123456789<>&") == "" && !strings.Contains(word, "&") {
					i++ // the file is a word of its own
				}
			case len(command) == 0 && (assignment.MatchString(word) || slices.Contains(prefixes, word)):
			default:
				command = append(command, word)
			}
		}
		if len(command) > 0 && !slices.Contains(keywords, command[0]) {
			all = append(all, command)
		}
	}
	return all
}

// split returns the words of each command of a line.
func split(line string) [][]string {
	var all [][]string
	var words []string
	var word strings.Builder
	inWord := false
	endWord := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	end := func() {
		endWord()
		if len(words) > 0 {
			all = append(all, words)
		}
		words = nil
	}
	for i := 0; i < len(line); i++ {
		switch char := line[i]; {
		case char == '\'' || char == '"':
			inWord = true
			close := strings.IndexByte(line[i+1:], char)
			if close < 0 {
				close = len(line) - i - 1
			}
			text := line[i+1 : i+1+close]
			word.WriteString(text)
			if _, inner, nested := strings.Cut(text, "$("); nested && char == '"' {
				command, _, _ := strings.Cut(inner, ")")
				all = append(all, split(command)...)
			}
			i += close + 1
		case char == '$' && strings.HasPrefix(line[i:], "$("):
			inner, rest, _ := strings.Cut(line[i+2:], ")")
			all = append(all, split(inner)...)
			word.WriteString("…")
			inWord = true
			i = len(line) - len(rest) - 1
		case char == '#' && !inWord:
			end()
			return all
		case strings.IndexByte("|;()", char) >= 0:
			end()
		case char == '&' && !strings.HasSuffix(word.String(), ">") && !(i+1 < len(line) && line[i+1] == '>'):
			end()
		case char == ' ' || char == '\t':
			endWord()
		case (char == '<' || char == '>') && inWord && strings.Trim(word.String(), "0123456789<>") != "":
			endWord()
			word.WriteByte(char)
			inWord = true
		default:
			word.WriteByte(char)
			inWord = true
		}
	}
	end()
	return all
}
