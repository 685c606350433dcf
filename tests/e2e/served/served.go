// Package served says how a cluster served while it was changed, from records of that time: answers of its API, samples of its
// nodes, control planes and a PodDisruptionBudget, and the lab's records.
package served

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// Report is how a cluster served in some time. What is counted is 0 where nothing was wrong.
type Report struct {
	Took     time.Duration
	Machines time.Duration // time in which at least one simulated machine booted, installed or pulled
	Asked    int           // requests to the API through the virtual IP
	Answered int
	Silence  time.Duration // longest time without an answer
	Gone     time.Duration // longest time from a request without an answer to the next answer, beyond the longest pause of the control in it
	Starved  int           // such times that count for nothing, because the control paused for so long that the computer was too busy
	Pods     int           // fewest healthy pods of the workload; -1 if none was counted

	BelowBudget   int // samples in which the PodDisruptionBudget was not kept
	WithoutQuorum int // times at which etcd lost its quorum
	Stalled       int // times at which volumes of Ceph stalled
	TwoDown       int // samples in which two control planes that had been Ready were not
	Skewed        int // samples in which a kubelet, or a part of a control plane, was newer than an API server

	ServersAway int             // most API servers that were not Ready, or had no pod, in one sample
	MostAway    int             // most nodes that were cordoned or not Ready in one sample
	Away        map[string]bool // all nodes that were, by name
	Controls    int             // answers of the control
	Samples     int             // samples of nodes
	Statics     int             // samples of static pods
}

// String is the report in a sentence for each subject.
func (r Report) String() string {
	return fmt.Sprintf("took %s, in %s of which machines worked; the API answered %d of %d times (%.2f %%), was silent for at most %s, and "+
		"away for at most %s, and %d times the computer was too busy to say; "+
		"fewest healthy pods %d; in %d and %d samples: etcd without quorum %d, volumes stalled %d, two control planes down %d, "+
		"below the PodDisruptionBudget %d, "+
		"wrong version skew %d; at most %d API servers and %d nodes away at once, %d in turn",
		r.Took.Round(time.Second), r.Machines.Round(time.Second), r.Answered, r.Asked, 100*float64(r.Answered)/float64(max(1, r.Asked)),
		r.Silence.Round(10*time.Millisecond), r.Gone.Round(10*time.Millisecond), r.Starved, r.Pods, r.Samples, r.Statics,
		r.WithoutQuorum, r.Stalled, r.TwoDown, r.BelowBudget, r.Skewed, r.ServersAway, r.MostAway, len(r.Away))
}

// Notes are what was noted, a line for each sample. A line that begins with a time in milliseconds and holds nothing else is a sample that
// could not be taken.
type Notes struct {
	API     io.Reader // TIME CODE: the status code of HTTP, 000 for no answer
	Control io.Reader // the same of a server that no change concerns, asked at the same pace: how long any answer takes on this computer
	Budget  io.Reader // TIME HEALTHY DESIRED: healthy pods of a PodDisruptionBudget, and how many it wants
	Nodes   io.Reader // TIME NAME=UNSCHEDULABLE=READY=VERSION …
	Statics io.Reader // TIME COMPONENT=IMAGE=READY …, of all control planes
	Log     io.Reader // log of the lab
	Spans   io.Reader // work of the lab's machines, latency.Span in JSON
}

// Of reads the notes from a time to another one.
func Of(notes Notes, from, to time.Time) (Report, error) {
	r := reader{Report: Report{Took: to.Sub(from), Pods: -1, Away: map[string]bool{}}, from: from, to: to}
	last, ready, oldest := from, map[string]bool{}, ""
	r.lines(notes.API, func(at time.Time, words []string) { last = r.answer(last, at, words) })
	if r.Asked > 0 {
		r.Silence = max(r.Silence, to.Sub(last))
	}
	if !r.missed.IsZero() {
		r.gone = append(r.gone, gap{r.missed, to})
	}
	r.control(notes.Control)
	r.lines(notes.Budget, func(_ time.Time, words []string) { r.budget(words) })
	servers := map[time.Time]string{} // oldest API server of each sample
	r.lines(notes.Statics, func(at time.Time, words []string) { servers[at] = r.statics(words) })
	times := slices.SortedFunc(maps.Keys(servers), time.Time.Compare)
	r.lines(notes.Nodes, func(at time.Time, words []string) {
		for len(times) > 0 && !times[0].After(at) {
			oldest, times = servers[times[0]], times[1:]
		}
		r.nodes(words, ready, oldest)
	})
	r.log(notes.Log)
	r.spans(notes.Spans)
	return r.Report, r.err
}

// reader fills in a report.
type reader struct {
	Report
	from, to time.Time
	servers  int       // most API servers in one sample
	missed   time.Time // the first request without an answer since the last answer; zero if there is none
	gone     []gap     // from each such request to the next answer
	err      error     // the first one
}

// gap is a time in which something did not answer.
type gap struct{ from, to time.Time }

func (r *reader) fail(err error) { r.err = cmp.Or(r.err, err) }

func (r *reader) within(at time.Time) bool { return !at.Before(r.from) && !at.After(r.to) }

// lines calls a function with the words of each sample in the time.
func (r *reader) lines(of io.Reader, use func(at time.Time, words []string)) {
	scan := bufio.NewScanner(of)
	for scan.Scan() {
		words := strings.Fields(scan.Text())
		if len(words) < 2 {
			continue
		}
		milliseconds, err := strconv.ParseInt(words[0], 10, 64)
		if err != nil {
			r.fail(fmt.Errorf("%q: no time: %w", scan.Text(), err))
			return
		}
		if at := time.UnixMilli(milliseconds); r.within(at) {
			use(at, words[1:])
		}
	}
	r.fail(scan.Err())
}

func (r *reader) answer(last, at time.Time, words []string) time.Time {
	r.Asked++
	if words[0] == "000" {
		if r.missed.IsZero() {
			r.missed = at
		}
		return last
	}
	if !r.missed.IsZero() {
		r.gone, r.missed = append(r.gone, gap{r.missed, at}), time.Time{}
	}
	r.Answered++
	r.Silence = max(r.Silence, at.Sub(last))
	return at
}

// starved is the pause of the control, which is asked ten times a second, from which on the computer was too busy to say anything.
const starved = 500 * time.Millisecond

// control takes from the times without the API those in which the control did not answer either.
func (r *reader) control(of io.Reader) {
	var pauses []gap
	last := r.from
	r.lines(of, func(at time.Time, words []string) {
		if words[0] != "000" {
			pauses, last = append(pauses, gap{last, at}), at
			r.Controls++
		}
	})
	pauses = append(pauses, gap{last, r.to})
	for _, one := range r.gone {
		longest := time.Duration(0)
		for _, pause := range pauses {
			if pause.from.Before(one.to) && pause.to.After(one.from) {
				longest = max(longest, pause.to.Sub(pause.from))
			}
		}
		if longest >= starved {
			r.Starved++
			continue
		}
		r.Gone = max(r.Gone, one.to.Sub(one.from)-longest)
	}
}

func (r *reader) budget(words []string) {
	healthy, err := strconv.Atoi(words[0])
	r.fail(err)
	desired, err := strconv.Atoi(words[len(words)-1])
	r.fail(err)
	if r.Pods < 0 || healthy < r.Pods {
		r.Pods = healthy
	}
	if healthy < desired {
		r.BelowBudget++
	}
}

// statics compares the parts of control planes, and returns the version of the oldest API server.
func (r *reader) statics(words []string) (oldest string) {
	r.Statics++
	newest, servers, ready := "", 0, 0
	for _, word := range words {
		parts := strings.Split(word, "=")
		if len(parts) != 3 {
			r.fail(fmt.Errorf("%q: no static pod", word))
			continue
		}
		component, image := parts[0], parts[1]
		if component == "kube-apiserver" {
			servers++
			if parts[2] == "True" {
				ready++
			}
		}
		version := image[strings.LastIndex(image, ":")+1:]
		switch {
		case !semver.IsValid(version):
			r.fail(fmt.Errorf("%q: no version", word))
		case component == "kube-apiserver" && (oldest == "" || semver.Compare(version, oldest) < 0):
			oldest = version
		case component != "kube-apiserver" && semver.Compare(version, newest) > 0:
			newest = version
		}
	}
	r.servers = max(r.servers, servers)
	r.ServersAway = max(r.ServersAway, r.servers-ready)
	if oldest != "" && newest != "" && semver.Compare(newest, oldest) > 0 {
		r.Skewed++
	}
	return oldest
}

// nodes counts nodes that are away. Those in ready have been Ready before.
func (r *reader) nodes(words []string, ready map[string]bool, server string) {
	r.Samples++
	away, down, skewed := 0, 0, false
	for _, word := range words {
		parts := strings.Split(word, "=")
		if len(parts) != 4 {
			r.fail(fmt.Errorf("%q: no node", word))
			continue
		}
		name, cordoned, isReady, version := parts[0], parts[1] != "", parts[2] == "True", parts[3]
		if cordoned || !isReady {
			away++
			r.Away[name] = true
		}
		if !isReady && ready[name] && strings.Contains(name, "-cp-") {
			down++
		}
		ready[name] = ready[name] || isReady
		skewed = skewed || server != "" && semver.Compare(version, server) > 0
	}
	r.MostAway = max(r.MostAway, away)
	if down > 1 {
		r.TwoDown++
	}
	if skewed {
		r.Skewed++
	}
}

// What the lab writes when etcd has lost its quorum, and when a volume of Ceph answers no more.
const (
	lostQuorum = `msg="etcd has lost its quorum"`
	stalled    = `msg="Ceph's volumes stall"`
)

func (r *reader) log(of io.Reader) {
	scan := bufio.NewScanner(of)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		for line, count := range map[string]*int{lostQuorum: &r.WithoutQuorum, stalled: &r.Stalled} {
			if !strings.Contains(scan.Text(), line) {
				continue
			}
			text, _, _ := strings.Cut(strings.TrimPrefix(scan.Text(), "time="), " ")
			at, err := time.Parse(time.RFC3339, text)
			r.fail(err)
			if r.within(at) {
				*count++
			}
		}
	}
	r.fail(scan.Err())
}

// spans adds up the times in which at least one machine worked.
func (r *reader) spans(of io.Reader) {
	type span struct{ From, To time.Time }
	var all []span
	for scan := bufio.NewScanner(of); scan.Scan(); {
		var one span
		if json.Unmarshal(scan.Bytes(), &one) == nil && one.To.After(r.from) && one.From.Before(r.to) {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b span) int { return a.From.Compare(b.From) })
	until := r.from
	for _, one := range all {
		from, to := one.From, one.To
		if from.Before(until) {
			from = until
		}
		if to.After(r.to) {
			to = r.to
		}
		if to.After(from) {
			r.Machines += to.Sub(from)
			until = to
		}
	}
}
