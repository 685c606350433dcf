package workload

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// fate is what is known about a container before it runs: without images, the lab cannot run their programs.
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
	s := script{}
	switch {
	case slices.Contains(shells, name):
		return fateOfShell(command[1:])
	case slices.Contains([]string{"true", "false", "sleep", "echo", "printf"}, name):
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
	file, err := parseShell(args[0])
	if err != nil || !isList(file) {
		return fate{}
	}
	for _, statement := range file.Stmts {
		if !s.follow(statement, false) {
			return fate{}
		}
	}
	return s.fate()
}

// isList tells whether a script consists of commands joined by ;, && and ||. Variables are text; substitutions, pipes, groups, loops and
// jobs are not read.
func isList(file *syntax.File) bool {
	known := true
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Stmt:
			known = known && !n.Negated && !n.Background
		case *syntax.CallExpr:
			known = known && (len(n.Args) == 0 || !slices.Contains([]string{"exec", "trap"}, n.Args[0].Lit()))
		case *syntax.BinaryCmd:
			known = known && (n.Op == syntax.AndStmt || n.Op == syntax.OrStmt)
		case *syntax.Redirect:
			known = known && (n.Op == syntax.RdrOut || n.Op == syntax.AppOut || n.Op == syntax.DplOut)
		case nil, *syntax.File, *syntax.Comment, *syntax.Assign, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted:
		case *syntax.ParamExp:
			known = known && n.Exp == nil // ${x:?word} may end the script
		default:
			known = false
		}
		return true
	})
	return known
}

// follow follows a statement of a list. tested: && or || follows, so that a failure does not end a strict script. It returns false if
// whether the script ends depends on a command that is not known.
func (s *script) follow(statement *syntax.Stmt, tested bool) bool {
	if s.over {
		return true
	}
	switch c := statement.Cmd.(type) {
	case *syntax.BinaryCmd:
		if !s.follow(c.X, true) {
			return false
		}
		switch {
		case s.over:
		case s.unsure:
			return !callsExit(c.Y)
		case (c.Op == syntax.AndStmt) == (s.status == 0):
			return s.follow(c.Y, tested)
		}
	case *syntax.CallExpr:
		var words []string
		for _, word := range c.Args {
			words = append(words, wordText(word))
		}
		s.run(words)
		s.unsure = s.unsure || len(c.Assigns) > 0
		s.over = s.over || s.strict && !tested && !s.unsure && s.status != 0
	case nil: // a redirection alone
		s.unsure = true
	}
	return true
}

// callsExit tells whether a statement may end the script.
func callsExit(statement *syntax.Stmt) (calls bool) {
	syntax.Walk(statement, func(node syntax.Node) bool {
		call, is := node.(*syntax.CallExpr)
		calls = calls || is && len(call.Args) > 0 && call.Args[0].Lit() == "exit"
		return true
	})
	return calls
}

// wordText is a word without its quotes. A variable is a dollar sign in it.
func wordText(word *syntax.Word) string {
	var text strings.Builder
	syntax.Walk(word, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Lit:
			text.WriteString(n.Value)
		case *syntax.SglQuoted:
			text.WriteString(n.Value)
		case *syntax.ParamExp:
			text.WriteByte('$')
			return false
		}
		return true
	})
	return text.String()
}

// script is the state of a shell script.
type script struct {
	strict bool // set -e
	over   bool // it has called exit, or a command has failed under set -e
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
