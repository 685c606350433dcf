package latency

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// Recorder writes when simulated work took place, a JSON object a line. A nil Recorder writes nothing.
type Recorder struct {
	mu sync.Mutex
	to io.Writer
}

// Span is a line that a Recorder writes. `slipway-probe picture --spans` reads it.
type Span struct {
	What string    `json:"what"` // kind of work, e.g. boot
	Of   string    `json:"of"`   // VM, node or file
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// NewRecorder returns a Recorder that writes to w. It may be used concurrently.
func NewRecorder(w io.Writer) *Recorder { return &Recorder{to: w} }

// Begin notes that work begins. The returned function writes that the work has ended.
func (r *Recorder) Begin(what, of string) (end func()) {
	from := time.Now()
	return func() { r.Add(Span{What: what, Of: of, From: from, To: time.Now()}) }
}

// Add writes a span. An error is ignored: the lab works without the record.
func (r *Recorder) Add(s Span) {
	if r == nil {
		return
	}
	s.From, s.To = s.From.UTC(), s.To.UTC()
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = json.NewEncoder(r.to).Encode(s)
}
