package tools

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// steppedProgress is a progress whose clock stands still until the returned func moves it.
func steppedProgress(out *bytes.Buffer, tools ...Tool) (*progress, func(time.Duration)) {
	var items []Item
	for _, tool := range tools {
		items = append(items, Item{Tool: tool, State: Missing})
	}
	p := newProgress(out, items)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p.now = func() time.Time { return now }
	p.began = now
	return p, func(d time.Duration) { now = now.Add(d) }
}

func TestProgress_StatusSaysWhatRunsHowLongAndHowFar(t *testing.T) {
	var out bytes.Buffer
	p, pass := steppedProgress(&out, Tool{Name: "a", CPU: time.Hour}, Tool{Name: "b", CPU: time.Hour}, Tool{Name: "c", CPU: time.Hour})
	p.start("a")
	pass(time.Minute)
	p.start("b")
	p.finish("a", Record{Version: "1.0", CPU: 90 * time.Second, Bytes: 3_000_000}, nil)
	pass(10 * time.Second)
	status := p.status()
	for _, want := range []string{"[1/3 done]", "b 10s", "1m10s of about"} {
		if !strings.Contains(status, want) {
			t.Errorf("%q lacks %q", status, want)
		}
	}
	for _, want := range []string{"[1/3] a", "[2/3] b", "a 1.0 in 1m0s (CPU 1m30s, 3 MB)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q lacks %q", out.String(), want)
		}
	}
}

func TestProgress_ASlowBuildIsCalledSlow(t *testing.T) {
	p, pass := steppedProgress(&bytes.Buffer{}, Tool{Name: "a", CPU: time.Minute})
	p.start("a")
	pass(time.Hour)
	if status := p.status(); !strings.Contains(status, "a 1h0m0s; 1h0m0s where an idle machine takes about a minute") {
		t.Errorf("got %q", status)
	}
}

func TestProgress_EstimateFollowsThePace(t *testing.T) {
	p, _ := steppedProgress(&bytes.Buffer{}, Tool{Name: "a", CPU: time.Minute}, Tool{Name: "b", CPU: 3 * time.Minute})
	p.start("a")
	p.finish("a", Record{}, nil)
	if got := p.total(2 * time.Minute); got != 8*time.Minute {
		t.Errorf("a quarter done in 2m: estimated %s, want 8m", got)
	}
	p.start("b")
	p.finish("b", Record{}, nil)
	if got := p.total(time.Hour); got != time.Hour {
		t.Errorf("all done in 1h: estimated %s", got)
	}
}

func TestProgress_AFailureIsShownAndNotCountedAsBuilt(t *testing.T) {
	var out bytes.Buffer
	p, pass := steppedProgress(&out, Tool{Name: "a"})
	p.begin()
	p.start("a")
	pass(3 * time.Second)
	p.finish("a", Record{}, errors.New("no"))
	p.end()
	for _, want := range []string{"a failed after 3s", "built 0 of 1 in 3s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q lacks %q", out.String(), want)
		}
	}
}

func TestProgress_ATerminalLineIsCutToItsWidth(t *testing.T) {
	var out bytes.Buffer
	p, _ := steppedProgress(&out, Tool{Name: strings.Repeat("long", 50)})
	p.terminal = 40
	p.start(strings.Repeat("long", 50))
	out.Reset()
	p.beat()
	line := strings.TrimSuffix(strings.TrimPrefix(out.String(), "\r"), "\x1b[K")
	if len(line) >= 40 {
		t.Errorf("%d characters: %q", len(line), line)
	}
}
