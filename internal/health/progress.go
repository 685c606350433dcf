package health

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Progress prints what a wait waits for: a line for each change, and a line now and then while nothing changes.
type Progress struct {
	To      io.Writer
	printed map[key]printed
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
	if p.printed == nil {
		p.printed = map[key]printed{}
	}
	for _, group := range groups(results) {
		var news []Result
		for _, result := range group.results {
			p.flaps(waited, result)
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
		// A check that passes for all its subjects is one line, however many of them began to pass just now.
		all, now := key{group.check, "\x00all"}, group.verdict()
		if p.printed[all].verdict != now {
			p.printed[all] = printed{verdict: now, at: waited}
			if now == Passed {
				p.say(waited, "holds", strings.TrimSpace(strings.TrimPrefix(group.summary(), string(now))))
			}
		}
	}
}

// isNews reports whether a result has to be printed, and notes it as printed.
func (p *Progress) isNews(waited time.Duration, result Result) bool {
	before := p.printed[result.key()]
	same := before.verdict == result.Verdict && (before.text == result.Reason || waited-before.at < quiet && before.at > 0)
	if same || result.Unseen {
		return false
	}
	p.printed[result.key()] = printed{verdict: result.Verdict, text: result.Reason, at: waited}
	return result.Verdict == Failed || result.remarked()
}

// flaps prints how often a condition was lost, when the number has changed and at most once in the quiet time.
func (p *Progress) flaps(waited time.Duration, result Result) {
	times, _, flaps := strings.Cut(result.Flapped, " in ")
	at := key{result.Check, result.Subject + "\x00flaps"}
	if before := p.printed[at]; flaps && before.text != times && (before.at == 0 || waited-before.at >= quiet) {
		p.printed[at] = printed{text: times, at: waited}
		p.say(waited, "flaps", result.sentence()+": "+result.Flapped)
	}
}

// Heartbeat prints how many conditions are not met, and the first of them.
func (p *Progress) Heartbeat(waited, left time.Duration, results []Result) {
	var failed []Result
	for _, result := range results {
		if result.Verdict == Failed {
			failed = append(failed, result)
		}
	}
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
	fmt.Fprintf(p.To, "%7s  %-5s  %s\n", fmt.Sprintf("%.1fs", waited.Seconds()), verb, text)
}
