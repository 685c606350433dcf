package local

import (
	"bytes"
	"slices"
	"sync"

	"github.com/pulumi/pulumi-go-provider/infer"
)

// Logging selects the outputs of a command that are written to the engine's log.
type Logging string

// The values of Logging are those of the SDK.
const (
	LogStdout          Logging = "stdout"
	LogStderr          Logging = "stderr"
	LogStdoutAndStderr Logging = "stdoutAndStderr"
	LogNone            Logging = "none"
)

// Values makes Logging an enumeration in the plugin's schema.
func (Logging) Values() []infer.EnumValue[Logging] {
	return []infer.EnumValue[Logging]{
		{Name: "stdout", Value: LogStdout, Description: "Capture stdout in logs but not stderr"},
		{Name: "stderr", Value: LogStderr, Description: "Capture stderr in logs but not stdout"},
		{Name: "stdoutAndStderr", Value: LogStdoutAndStderr, Description: "Capture stdout and stderr in logs"},
		{Name: "none", Value: LogNone, Description: "Capture no logs"},
	}
}

func (l Logging) valid() bool {
	return slices.ContainsFunc(l.Values(), func(v infer.EnumValue[Logging]) bool { return v.Value == l })
}

func (l Logging) stdout() bool { return l == LogStdout || l == LogStdoutAndStderr }
func (l Logging) stderr() bool { return l == LogStderr || l == LogStdoutAndStderr }

// lineWriter passes complete lines to emit when they are written; flush passes an unfinished last one.
type lineWriter struct {
	mu   sync.Mutex
	rest []byte
	emit func(line string)
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, b...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			return len(b), nil
		}
		w.emit(string(w.rest[:i]))
		w.rest = w.rest[i+1:]
	}
}

func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		w.emit(string(w.rest))
		w.rest = nil
	}
}
