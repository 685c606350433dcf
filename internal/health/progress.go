package health

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Progress tells a person what a wait waits for: every change as it happens, and a sign of life in between.
type Progress struct {
	To    io.Writer
	known map[[2]string]said // by check and subject
}

type said struct {
	verdict Verdict
	reason  string
	at      time.Duration
}

// A reason that goes back and forth, as between two endpoints that are down, is not said again at once.
const quiet = 5 * time.Second

// Seen prints what has changed: one line for all that say the same.
func (p *Progress) Seen(waited time.Duration, results []Result) {
	if p.known == nil {
		p.known = map[[2]string]said{}
	}
	for _, group := range groups(results) {
		var news []Result
		for _, result := range group.results {
			p.flaps(waited, result)
			if p.news(waited, result) {
				news = append(news, result)
			}
		}
		for _, same := range alike(news) {
			verb := "waits"
			if same[0].reported() {
				verb = "skips"
			}
			p.say(waited, verb, subjects(same)+same[0].Check+": "+same[0].Reason)
		}
		// A check that holds for all its subjects is one line, however many of them have just become true.
		key, now := [2]string{group.check, "\x00all"}, group.verdict()
		if p.known[key].verdict != now {
			p.known[key] = said{verdict: now, at: waited}
			if now == Passed {
				p.say(waited, "holds", strings.TrimSpace(strings.TrimPrefix(group.summary(), string(now))))
			}
		}
	}
}

// news reports whether a result says something that has not been said, and notes it as said.
func (p *Progress) news(waited time.Duration, result Result) bool {
	key := [2]string{result.Check, result.Subject}
	before := p.known[key]
	if before.verdict == result.Verdict && (before.reason == result.Reason || waited-before.at < quiet && before.at > 0) || result.Unseen {
		return false
	}
	p.known[key] = said{verdict: result.Verdict, reason: result.Reason, at: waited}
	return result.Verdict == Failed || result.reported()
}

// flaps says how often a condition was lost, now and then.
func (p *Progress) flaps(waited time.Duration, result Result) {
	times, _, flaps := strings.Cut(result.Flapped, " in ")
	key := [2]string{result.Check, result.Subject + "\x00flaps"}
	if before := p.known[key]; flaps && before.reason != times && (before.at == 0 || waited-before.at >= quiet) {
		p.known[key] = said{reason: times, at: waited}
		p.say(waited, "flaps", result.sentence()+": "+result.Flapped)
	}
}

// Heartbeat prints how much is still missing, and the first of it.
func (p *Progress) Heartbeat(waited, left time.Duration, results []Result) {
	var waiting []Result
	for _, result := range results {
		if result.Verdict == Failed {
			waiting = append(waiting, result)
		}
	}
	if len(waiting) == 0 {
		return
	}
	line := fmt.Sprintf("%d of %d conditions missing, %s left; first: %s: %s", len(waiting), len(results),
		max(0, left).Round(time.Second), waiting[0].sentence(), waiting[0].Reason)
	if len(waiting[0].Evidence) > 0 {
		line += " (" + waiting[0].Evidence[0] + ")"
	}
	p.say(waited, "still", line)
}

func (p *Progress) say(waited time.Duration, verb, text string) {
	fmt.Fprintf(p.To, "%7s  %-5s  %s\n", fmt.Sprintf("%.1fs", waited.Seconds()), verb, text)
}
