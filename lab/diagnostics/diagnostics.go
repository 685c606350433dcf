// Package diagnostics searches Pulumi's output for what a run that succeeded should not say. The exit code alone does not show it: Pulumi
// ends with 0 although it has printed errors about its plugins.
package diagnostics

import (
	"regexp"
	"strings"

	"github.com/slipway-platform/slipway/lab/tools"
)

// message is a kind of message that a successful run prints although nothing is wrong.
type message struct {
	pattern *regexp.Regexp // matches the whole message
	why     string         // why it is printed, and why it does not matter

	only func() bool // whether it is known in this lab; nil: in each
}

// known are the messages that a run may print. The list is short on purpose: each is seen by users, too.
var known = []message{
	{
		regexp.MustCompile(`^warning: [a-zA-Z.]+\.version: \S+ (of .* (has been|is) out of support|is not tested with Kubernetes )[^\n]*$`),
		"`up` warns of releases that are out of support and of pairs that nobody has tested. The lab rehearses such releases, too.", nil,
	},
	{
		regexp.MustCompile(`(?s)^error: Detected that \S+/pulumi-resource-\w+ exited prematurely\.\s*` +
			`(This is \*always\* a bug in the provider\. Please report the issue to the provider author as appropriate\.\s*` +
			`To assist with debugging we have dumped the STDOUT and STDERR streams of the plugin:` +
			`(\s*level=DEBUG msg=(Request|Response) id=\d+ [^\n]*|\s*[IW]\d{4} [^\n]*)*\s*)?$`),
		"The older Proxmox plugin of the lab ignores the signal to end once it has asked a guest agent for addresses. Pulumi from 3.247 on " +
			"closes the plugins one after the other within five seconds, and reports those that come after it. " +
			"Of what the plugin has printed, only the Kubernetes plugin's requests to OCI registries, which Helm logs, and what its " +
			"client notes or warns of are known; an error and a panic are not.",
		tools.OlderProxmox,
	},
}

var (
	// dots are what Pulumi prints while nothing happens. The next row follows on the same line.
	dots = regexp.MustCompile(`^@ [a-z]+\.+`)
	// row is a line of the progress with a message of a severity. Other text in the last column belongs to a plugin's status.
	row = regexp.MustCompile(`^(?:.{0,6}\S+ \S+ \*{0,2}[a-z -]*\*{0,2}(?: \([^)]*\))?(?: \[[^\]]*\];)? )?((?:error|warning): .*)$`)
	// crash is a line of a program that has crashed, wherever it is.
	crash = regexp.MustCompile(`(?:^|\s)(?:panic: |fatal error: |goroutine \d+ \[|runtime error: )|exited prematurely`)
	// severity begins a message below Diagnostics. Messages without one are for information.
	severity = regexp.MustCompile(`^(?:error|warning): `)
)

// Unexpected returns the messages in Pulumi's output that are neither known nor expected: errors and warnings, traces of crashes, and
// whatever is listed below Diagnostics. The output must be without colour, and not interactive. Each message is returned once.
func Unexpected(output string, expected ...*regexp.Regexp) []string {
	var all []string
	seen := map[string]bool{}
	add := func(text string) {
		text = strings.TrimSpace(text)
		if text == "" || seen[text] || explained(text, expected) {
			return
		}
		seen[text] = true
		all = append(all, text)
	}
	var entry []string // lines of the current message below Diagnostics
	flush := func() {
		add(strings.Join(entry, "\n"))
		entry = nil
	}
	listed := false // the lines are below Diagnostics
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, " \r\n")
		text := strings.TrimSpace(line)
		switch {
		case line == "Diagnostics:":
			listed = true
		case listed && line != "" && !strings.HasPrefix(line, "  "): // the next section
			flush()
			listed = false
		case listed && strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "    "): // the resource
			flush()
		case listed:
			if severity.MatchString(text) {
				flush()
			}
			entry = append(entry, text)
		}
		if listed {
			continue
		}
		if found := row.FindStringSubmatch(dots.ReplaceAllString(line, "")); found != nil {
			add(found[1])
		} else if crash.MatchString(line) {
			add(text)
		}
	}
	flush()
	return all
}

func explained(text string, expected []*regexp.Regexp) bool {
	for _, message := range known {
		if message.pattern.MatchString(text) && (message.only == nil || message.only()) {
			return true
		}
	}
	for _, pattern := range expected {
		if pattern.MatchString(text) {
			return true
		}
	}
	return false
}
