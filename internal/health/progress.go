package health

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/internal/probe"
)

// Progress prints what a wait waits for: a line for each change, and a line now and then while nothing changes.
type Progress struct {
	to      io.Writer
	results map[key]printed    // what was printed of each condition
	flaps   map[key]printed    // how often each condition was lost, as printed
	checks  map[string]Verdict // of all subjects of a check together, as printed
}

// NewProgress returns a Progress that prints to a writer.
func NewProgress(to io.Writer) *Progress {
	return &Progress{to: to, results: map[key]printed{}, flaps: map[key]printed{}, checks: map[string]Verdict{}}
}

// printed is what was printed last about a condition.
type printed struct {
	verdict Verdict
	text    string
	at      time.Duration
}

// quiet is how long a changed reason is not printed again: with two broken endpoints the reason may alternate many times a second.
const quiet = 5 * time.Second

// Seen prints what has changed, one line for all subjects with the same text.
func (p *Progress) Seen(waited time.Duration, results []Result) {
	for _, group := range groups(results) {
		var news []Result
		for _, result := range group.results {
			p.sayFlaps(waited, result)
			if p.isNews(waited, result) {
				news = append(news, result)
			}
		}
		for _, same := range alike(news) {
			verb := "waits"
			if same[0].remarked() {
				verb = "skips"
			}
			p.say(waited, verb, subjects(same)+same[0].Check+": "+same[0].Reason)
		}
		// A check that passes for all its subjects is one line.
		now := group.verdict()
		if now == Passed && p.checks[group.check] != now {
			p.say(waited, "holds", strings.TrimSpace(strings.TrimPrefix(group.summary(), string(now))))
		}
		p.checks[group.check] = now
	}
}

// isNews reports whether a result has to be printed, and notes it as printed.
func (p *Progress) isNews(waited time.Duration, result Result) bool {
	before := p.results[result.key()]
	same := before.verdict == result.Verdict && (before.text == result.Reason || waited-before.at < quiet && before.at > 0)
	if same || result.Unseen {
		return false
	}
	p.results[result.key()] = printed{verdict: result.Verdict, text: result.Reason, at: waited}
	return result.Verdict == Failed || result.remarked()
}

// sayFlaps prints how often a condition was lost, when the number has changed and at most once in the quiet time.
func (p *Progress) sayFlaps(waited time.Duration, result Result) {
	times, _, flaps := strings.Cut(result.Flapped, " in ")
	if before := p.flaps[result.key()]; flaps && before.text != times && (before.at == 0 || waited-before.at >= quiet) {
		p.flaps[result.key()] = printed{text: times, at: waited}
		p.say(waited, "flaps", result.sentence()+": "+result.Flapped)
	}
}

// Heartbeat prints how many conditions are not met, and the first of them.
func (p *Progress) Heartbeat(waited, left time.Duration, results []Result) {
	failed := xslices.Filter(results, func(r Result) bool { return r.Verdict == Failed })
	if len(failed) == 0 {
		return
	}
	first := failed[0]
	line := fmt.Sprintf("%d of %d conditions missing, %s left; first: %s: %s", len(failed), len(results),
		max(0, left).Round(time.Second), first.sentence(), first.Reason)
	if len(first.Evidence) > 0 {
		line += " (" + first.Evidence[0] + ")"
	}
	p.say(waited, "still", line)
}

func (p *Progress) say(waited time.Duration, verb, text string) {
	probe.Say(p.to, waited, "%-5s  %s", verb, text)
}
