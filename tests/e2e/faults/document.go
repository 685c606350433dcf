package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Table returns the matrix as a Markdown table, sorted by moment, below the order of the components that it names.
func Table() string {
	var b strings.Builder
	b.WriteString("The components are created in this order:\n" + strings.Join(names(Chain), ", ") + ".\n" +
		"ReadinessGate means the first gate, which waits for the machines. The second gate is between CiliumCore and CoreServices.\n\n")
	b.WriteString("| moment | what breaks | `lab fault` | `up` | it says | exists afterwards |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, moment := range Moments {
		for _, c := range slices.Concat(Lanes...) {
			if c.Moment == moment {
				fmt.Fprintf(&b, "| %s | %s | `%s` | %s | %s | %s |\n", moment, c.Name, c.command(), c.Up, c.words(), c.remains())
			}
		}
	}
	return b.String()
}

// names returns the last parts of type tokens, which are the components' names.
func names(tokens []string) []string {
	var list []string
	for _, token := range tokens {
		list = append(list, token[strings.LastIndex(token, ":")+1:])
	}
	return list
}

// Arguments returns the arguments of `lab fault` for this case, without the detail.
func (c Case) Arguments() []string {
	arguments := []string{c.Kind}
	if c.Target != "" {
		arguments = append(arguments, c.Target)
	}
	return arguments
}

// Absent returns the components of which no resource may exist after a run that the fault has stopped.
func (c Case) Absent() []string {
	if i := slices.Index(Chain, c.Before); i >= 0 {
		return Chain[i:]
	}
	return nil
}

// command returns the whole command line after `lab fault`.
func (c Case) command() string {
	var words []string
	arguments := c.Arguments()
	if c.Detail != "" {
		arguments = append(arguments, "--detail", c.Detail)
	}
	for _, argument := range arguments {
		if strings.ContainsAny(argument, " '") {
			argument = strconv.Quote(argument)
		}
		words = append(words, argument)
	}
	return strings.Join(words, " ")
}

// words returns the regular expression Says, escaped for a cell of a Markdown table.
func (c Case) words() string {
	if c.Says == "" {
		return "–"
	}
	return "`" + strings.ReplaceAll(c.Says, "|", `\|`) + "`"
}

func (c Case) remains() string {
	switch {
	case c.Up != Stops:
		return "everything: it completes"
	case c.Before == "":
		return "all but what Flux applies"
	}
	short := "nothing from " + names([]string{c.Before})[0] + " on"
	if c.Repair != "" {
		short += "; then by hand: `" + c.Repair + "`"
	}
	return short
}
