package probe

import (
	"bytes"
	"io"
)

// maxLine is how many bytes of a line go to standard error. Pulumi's command plugin reads lines of at most 64 KiB; a longer one makes it
// wait forever.
const maxLine = 32 << 10

// shortLines writes to another writer and leaves out what is more than maxLine of a line.
type shortLines struct {
	to      io.Writer
	written int // of the current line
}

func (s *shortLines) Write(text []byte) (int, error) {
	for line := range bytes.Lines(text) {
		newline := bytes.HasSuffix(line, []byte("\n"))
		content := bytes.TrimSuffix(line, []byte("\n"))
		short := content[:min(len(content), maxLine-s.written)]
		s.written += len(short)
		if newline {
			short, s.written = append(bytes.Clone(short), '\n'), 0
		}
		if _, err := s.to.Write(short); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}
