package local

import (
	"bufio"
	"io"
	"slices"

	"github.com/pulumi/pulumi-go-provider/infer"
)

// Logging selects the outputs of a command that are shown in the Info column of the engine's display.
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

// lineLogger passes complete lines to log when they are written, like the released plugin: it stops to read at a line of more than
// bufio.MaxScanTokenSize, 64 KiB, and further writes block until it is closed.
type lineLogger struct {
	*io.PipeWriter
	ended chan struct{}
}

func newLineLogger(log func(line string)) *lineLogger {
	reader, writer := io.Pipe()
	l := &lineLogger{PipeWriter: writer, ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		lines := bufio.NewScanner(reader)
		for lines.Scan() {
			log(lines.Text())
		}
	}()
	return l
}

// Close passes an unfinished last line, and returns when all lines are passed.
func (l *lineLogger) Close() error {
	err := l.PipeWriter.Close()
	<-l.ended
	return err
}
