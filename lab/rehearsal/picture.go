package rehearsal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/lab/control"
	"github.com/slipway-platform/slipway/lab/latency"
	"github.com/slipway-platform/slipway/lab/session"
	"github.com/slipway-platform/slipway/lab/stackfile"
)

// picture writes the page about a run by a user's command, and prints its path.
func picture(ctx context.Context, s *session.Session, out io.Writer, f stackfile.File, events string) error {
	if ctx.Err() != nil {
		return nil // interrupted: the command would be, too
	}
	spans, err := machineSpans(ctx, s, f)
	if err != nil {
		return err
	}
	state := filepath.Join(s.Home.Logs(), "state-"+f.Stack+".json") // secrets are encrypted in it
	if _, err := s.Output(ctx, nil, "pulumi", "stack", "export", "--stack", f.Stack, "--file", state); err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	page, err := s.Output(ctx, nil, "go", "-C", s.Settings.Checkout, "run", "./cmd/slipway-probe", "picture",
		"--events", events, "--state", state, "--spans", spans)
	if err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	path := s.Home.Picture(s.Settings.Checkout, f.Stack)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	fmt.Fprintf(out, "   as a page: %s\n", path)
	return nil
}

// machineSpans writes a file with the times in which the stack's machines worked, and returns its path.
func machineSpans(ctx context.Context, s *session.Session, f stackfile.File) (string, error) {
	status, err := s.Control.Status(ctx)
	if err != nil {
		return "", err
	}
	all, err := os.ReadFile(s.Home.Spans())
	if err != nil {
		return "", fmt.Errorf("picture: %w", err)
	}
	path := filepath.Join(s.Home.Logs(), "machines-"+f.Stack+".json")
	return path, os.WriteFile(path, withoutOthers(all, status, f.Cluster), 0o600)
}

// withoutOthers leaves out the spans of machines of other clusters, and a last line that is being written.
func withoutOthers(spans []byte, status control.Status, cluster string) []byte {
	others := map[string]bool{}
	for _, vm := range status.VMs {
		other := vm.Cluster != cluster && vm.Cluster != ""
		others[vm.Name], others[strconv.Itoa(vm.ID)] = other, other // a VM has its name once it was created
	}
	var kept bytes.Buffer
	for line := range strings.Lines(string(spans)) {
		var span latency.Span
		if json.Unmarshal([]byte(line), &span) == nil && !others[span.Of] {
			kept.WriteString(line)
		}
	}
	return kept.Bytes()
}
