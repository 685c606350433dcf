package workload

import (
	"strconv"
	"strings"
	"time"
)

// fate is what is known about a container before it runs: the lab has no images, so it cannot run their programs.
type fate struct {
	known bool          // the command ends, with this code after this time
	code  int           // its exit code
	after time.Duration // how long its sleeps take
}

// fateOf tells how a container's command ends, as far as the command itself says so: true, false, sleep, and shell
// scripts of exit, true, false, echo, printf and sleep, joined by ;, && and ||. Any other command is not known.
func fateOf(command []string) fate {
	if len(command) == 0 {
		return fate{} // the image's own command
	}
	name := base(command[0])
	switch name {
	case "sh", "bash", "ash", "dash":
		return fateOfShell(command[1:])
	case "true", "false", "sleep", "echo", "printf":
		s := script{}
		s.run(append([]string{name}, command[1:]...))
		return s.fate()
	}
	return fate{}
}

// fateOfShell reads the arguments of a shell: options, among them -c, and the script.
func fateOfShell(args []string) fate {
	s, command := script{}, false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		command = command || strings.Contains(args[0], "c")
		s.strict = s.strict || strings.Contains(args[0], "e")
		args = args[1:]
	}
	if !command || len(args) == 0 {
		return fate{}
	}
	parts, ok := splitScript(args[0])
	if !ok {
		return fate{}
	}
	for _, p := range parts {
		if s.over {
			break
		}
		skip := p.joint == "&&" && s.status != 0 || p.joint == "||" && s.status == 0
		switch {
		case p.joint != ";" && s.unsure:
			// Whether it runs depends on a command that is not known.
			if len(p.words) > 0 && p.words[0] == "exit" {
				return fate{}
			}
		case skip:
		default:
			s.run(p.words)
		}
		if s.strict && !s.unsure && s.status != 0 && p.last && !skip {
			s.over = true
		}
	}
	return s.fate()
}

// script is the state of a shell script.
type script struct {
	strict bool // set -e
	over   bool // it has called exit
	unsure bool // the status of the last command is not known
	status int
	takes  time.Duration
}

func (s *script) fate() fate { return fate{known: !s.unsure, code: s.status, after: s.takes} }

// run runs one command.
func (s *script) run(words []string) {
	s.unsure = false
	if len(words) == 0 {
		return
	}
	switch words[0] {
	case "exit":
		s.over = true
		if len(words) > 1 {
			n, err := strconv.Atoi(words[1])
			s.status, s.unsure = n&0xff, err != nil
		}
	case "true", ":", "echo", "printf":
		s.status = 0
	case "false":
		s.status = 1
	case "set":
		s.status = 0
		s.strict = s.strict || len(words) > 1 && strings.HasPrefix(words[1], "-") && strings.Contains(words[1], "e")
	case "sleep":
		d, ok := sleepTime(words[1:])
		s.status, s.unsure = 0, !ok
		s.takes += d
	default:
		s.unsure = true
	}
}

// sleepTime is the sum of a sleep command's arguments.
func sleepTime(args []string) (sum time.Duration, ok bool) {
	for _, a := range args {
		if a == "infinity" || a == "inf" {
			return 0, false // it runs until somebody ends it, as a container whose command is not known
		}
		if _, err := strconv.ParseFloat(a, 64); err == nil {
			a += "s"
		}
		if number, is := strings.CutSuffix(a, "d"); is {
			n, err := strconv.Atoi(number)
			if err != nil {
				return 0, false
			}
			a = strconv.Itoa(24*n) + "h"
		}
		d, err := time.ParseDuration(a)
		if err != nil {
			return 0, false
		}
		sum += d
	}
	return sum, len(args) > 0
}

// part is a command of a script.
type part struct {
	joint string // what stands before it: ;, && or ||
	words []string
	last  bool // no && or || follows
}

// splitScript splits a script into its commands. It returns false for scripts with other syntax: variables outside of
// quotes are text, but substitutions, pipes, groups, loops and jobs are not read.
func splitScript(text string) (parts []part, ok bool) {
	if strings.Contains(text, "$(") || strings.Contains(text, "`") || strings.Contains(text, "<<") {
		return nil, false
	}
	current := part{joint: ";"}
	word, inWord := "", false
	endWord := func() {
		if inWord {
			current.words = append(current.words, word)
		}
		word, inWord = "", false
	}
	end := func(joint string) {
		endWord()
		current.last = joint == ";"
		parts = append(parts, current)
		current = part{joint: joint}
	}
	for i := 0; i < len(text); i++ {
		next := byte(0)
		if i+1 < len(text) {
			next = text[i+1]
		}
		switch c := text[i]; {
		case c == '\\' && next == '\n':
			i++
		case c == '\\':
			word, inWord = word+string(next), true
			i++
		case c == '\'' || c == '"':
			closing := strings.IndexByte(text[i+1:], c)
			if closing < 0 {
				return nil, false
			}
			word, inWord = word+text[i+1:i+1+closing], true
			i += closing + 1
		case c == '#' && !inWord:
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case c == '&' && next == '&', c == '|' && next == '|':
			end(string([]byte{c, c}))
			i++
		case c == '>' && next == '&': // echo >&2
			word, inWord = word+">&", true
			i++
		case c == ';' && next != ';', c == '\n':
			end(";")
		case c == ' ' || c == '\t' || c == '\r':
			endWord()
		case strings.IndexByte("&|(){}<;", c) >= 0:
			return nil, false
		default:
			word, inWord = word+string(c), true
		}
	}
	end(";")
	for _, p := range parts {
		if len(p.words) == 0 {
			continue
		}
		switch p.words[0] {
		case "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "function", "trap", "exec", "!":
			return nil, false
		}
	}
	return parts, true
}
