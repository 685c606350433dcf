// Package rehearsal implements `make lab`: for every stack file of the checkout it runs the whole chain in a new lab,
// from nothing to Flux and back, and checks the result of each step.
package rehearsal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/lab/control"
	"github.com/slipway-platform/slipway/lab/session"
	"github.com/slipway-platform/slipway/lab/stackfile"
	"github.com/slipway-platform/slipway/lab/wait"
)

// Run rehearses in a lab that was just started, and reports to out. It returns the first error, and leaves the lab in
// that state for a person to examine.
func Run(ctx context.Context, s *session.Session, out io.Writer) error {
	stacks, err := s.Prepare(ctx, out)
	if err != nil {
		return err
	}
	steps := []struct {
		title string
		do    func(context.Context, *session.Session, io.Writer, stackfile.File) error
	}{
		{"pulumi up -s %s", up},
		{"pulumi up -s %s, again: nothing may change", upAgain},
		{"pulumi refresh -s %s: no drift", refresh},
		{"pulumi destroy -s %s", destroy},
	}
	for _, step := range steps {
		for _, stack := range stacks {
			heading(out, step.title, stack.Stack)
			if err := step.do(ctx, s, out, stack); err != nil {
				return err
			}
		}
	}
	heading(out, "nothing may be left on the simulated Proxmox VE")
	return nothingLeft(ctx, s, out)
}

func up(ctx context.Context, s *session.Session, out io.Writer, f stackfile.File) error {
	events := s.Home.Logs() + "/events-" + f.Stack + ".json"
	took, err := pulumi(ctx, s, out, f.Stack+"-up", "up", "--yes", "--skip-preview", "--stack", f.Stack, "--event-log", events)
	if err != nil {
		return errors.Join(err, picture(ctx, s, out, f, events))
	}
	fmt.Fprintf(out, "   done in %s\n", seconds(took))
	return errors.Join(cameUp(ctx, s, out, f, events), picture(ctx, s, out, f, events))
}

// cameUp prints what exists and how long each component took.
func cameUp(ctx context.Context, s *session.Session, out io.Writer, f stackfile.File, events string) error {
	status, err := s.Control.Status(ctx)
	if err != nil {
		return err
	}
	rows := [][]string{{"VM", "ID", "HOST", "STATUS", "TALOS", "ADDRESSES"}}
	for _, vm := range status.VMs {
		if vm.Cluster == f.Cluster {
			rows = append(rows, []string{vm.Name, fmt.Sprint(vm.ID), vm.Host, vm.Status, vm.Stage, strings.Join(vm.Addresses, " ")})
		}
	}
	table(out, rows)
	nodes, err := s.Output(ctx, nil, "kubectl", "--context", "admin@"+f.Cluster, "get", "nodes", "-o", "wide")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s\n", indent(nodes))
	if err := outputs(ctx, s, out, f); err != nil {
		return err
	}
	phases, err := readPhases(events)
	if err != nil {
		return err
	}
	rows = [][]string{{"PHASE", "TIME", "FROM", "TO"}}
	for _, p := range phases {
		rows = append(rows, []string{p.name, seconds(p.last.Sub(p.first)), p.first.Format(time.TimeOnly), p.last.Format(time.TimeOnly)})
	}
	table(out, rows)
	return nil
}

// outputs prints the reports of the gate and the handover, and the stack's other outputs that are not secret.
func outputs(ctx context.Context, s *session.Session, out io.Writer, f stackfile.File) error {
	text, err := s.Output(ctx, nil, "pulumi", "stack", "output", "--json", "--stack", f.Stack)
	if err != nil {
		return err
	}
	var values map[string]any
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		return fmt.Errorf("stack outputs: %w", err)
	}
	var rows [][]string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, isText := values[key].(string)
		switch r := (report{}); {
		case !isText || value == "[secret]":
		case json.Unmarshal([]byte(value), &r) == nil && r.Kind != "":
			r.print(out)
		default:
			first, more, _ := strings.Cut(strings.TrimSpace(value), "\n")
			if more != "" {
				first += " …"
			}
			rows = append(rows, []string{key, first})
		}
	}
	table(out, rows)
	fmt.Fprintln(out)
	return nil
}

func upAgain(ctx context.Context, s *session.Session, out io.Writer, f stackfile.File) error {
	took, err := pulumi(ctx, s, out, f.Stack+"-up-again", "up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", f.Stack)
	if err == nil {
		fmt.Fprintf(out, "   nothing changed, %s\n", seconds(took))
	}
	return err
}

func refresh(ctx context.Context, s *session.Session, out io.Writer, f stackfile.File) error {
	took, err := pulumi(ctx, s, out, f.Stack+"-refresh", "refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", f.Stack)
	if err == nil {
		fmt.Fprintf(out, "   no drift, %s\n", seconds(took))
	}
	return err
}

// destroy unprotects what is protected, then destroys the stack.
func destroy(ctx context.Context, s *session.Session, out io.Writer, f stackfile.File) error {
	if _, err := pulumi(ctx, s, out, f.Stack+"-unprotect", "state", "unprotect", "--all", "--yes", "--stack", f.Stack); err != nil {
		return err
	}
	took, err := pulumi(ctx, s, out, f.Stack+"-destroy", "destroy", "--yes", "--skip-preview", "--stack", f.Stack)
	if err == nil {
		fmt.Fprintf(out, "   destroyed in %s\n", seconds(took))
	}
	return err
}

// goneWithin is how long Proxmox VE may take to delete volumes: its clients do not wait for the task that deletes a
// file.
const goneWithin = 15 * time.Second

// nothingLeft checks that no VM, volume or process of the destroyed stacks exists.
func nothingLeft(ctx context.Context, s *session.Session, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, goneWithin)
	defer cancel()
	for {
		status, err := s.Control.Status(ctx)
		if err != nil {
			return err
		}
		left := remains(status)
		if len(left) == 0 {
			fmt.Fprintf(out, "   no VM, no volume, no process; everything in the lab together took at most %.1f GiB of memory\n",
				float64(status.PeakMemory)/(1<<30))
			return nil
		}
		if !wait.Pause(ctx, 200*time.Millisecond) {
			return fmt.Errorf("rehearsal: left behind after destroy: %s", strings.Join(left, ", "))
		}
	}
}

// remains lists everything that a stack has created and that still exists.
func remains(status control.Status) []string {
	var left []string
	for _, vm := range status.VMs {
		left = append(left, "VM "+vm.Name)
	}
	for _, volume := range status.Volumes {
		left = append(left, "volume "+volume)
	}
	for _, p := range status.Processes {
		left = append(left, fmt.Sprintf("process %s (%s)", p.Name, p.Cluster))
	}
	return left
}
